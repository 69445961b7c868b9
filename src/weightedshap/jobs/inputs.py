"""Tables in CSV and Parquet files, batch by batch: one file, a folder of them, or Hive partitions
(``year=2026/…``)."""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import numpy as np
import pandas as pd

from weightedshap._checks import IntArray, require
from weightedshap.jobs import csv_files
from weightedshap.jobs.column_types import Type, common_type, joint_of_features, joint_of_keys
from weightedshap.jobs.csv_files import BY_DEFAULT, CsvRules, OnBad, is_csv
from weightedshap.jobs.exit_codes import INPUT, Stop, reading
from weightedshap.jobs.text_columns import UnreadableCell, typed

pa = require("pyarrow", "stream")
pc = require("pyarrow.compute", "stream")
pq = require("pyarrow.parquet", "stream")

Batch = Any  # a RecordBatch of Arrow
Schema = Any  # its schema
Column = Any  # one of its columns

SUFFIXES = (".parquet", ".pq", *csv_files.SUFFIXES)
HEAD = 2**20  # bytes by which the rows of a CSV file are estimated
BATCH = 2**16  # rows of a batch where parts do not matter
WHOLE_NUMBER = re.compile(r"[0-9]{1,18}")  # of 64 bits for sure


@dataclass(frozen=True)
class Rows:
    """Rows `first` to ``first + batch.num_rows`` of a file."""

    file: str
    first: int
    batch: Batch

    def digest(self) -> str:
        """Return a hash of names, types and values: whether a finished part was made of these
        rows."""
        types = [(field.name, str(field.type), field.nullable) for field in self.batch.schema]
        found = hashlib.blake2b(json.dumps(types).encode(), digest_size=16)
        # Values in place of dictionaries, whose order depends on how the rows were cut. Those
        # inside of lists stay, and the stream, unlike a batch alone, holds them.
        columns = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for column in self.batch.columns
        ]
        plain = pa.record_batch(columns, names=self.batch.schema.names)
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, plain.schema) as writer:
            writer.write_batch(plain)
        found.update(stream.getvalue())
        return found.hexdigest()


@dataclass(frozen=True)
class Source:
    """Files that hold one table, in order, and the columns that are read of them.

    keys : columns that are handed on: of one type in all files, and taken as they stand
    """

    root: Path
    files: tuple[Path, ...]
    columns: tuple[str, ...] | None = None
    keys: tuple[str, ...] = ()
    rules: CsvRules = BY_DEFAULT

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        keys: Sequence[str] = (),
        rules: CsvRules = BY_DEFAULT,
    ) -> Self:
        """A file, or all files under a folder by name; hidden ones are left out."""
        root = Path(path)
        if not root.exists():
            raise Stop(f"{root} is not there.", INPUT)
        found = sorted(root.rglob("*")) if root.is_dir() else [root]
        files = [
            file
            for file in found
            if _may_hold_rows(file) and not _is_hidden(file.relative_to(root))
        ]
        if not files:
            raise Stop(
                f"{root} holds no file of rows: none ends with {', '.join(SUFFIXES)}.", INPUT
            )
        wanted = None if columns is None else tuple(dict.fromkeys((*keys, *columns)))
        return cls(root, tuple(files), wanted, tuple(keys), rules)

    def __len__(self) -> int:
        """How many rows there are; of CSV files an estimate."""
        return sum(map(_rows_in, self.files))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the first file, partitions included; not those in which pandas keeps an
        index."""
        schema = self._schemas[self.files[0]]
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        return tuple(dict.fromkeys(name for name in schema.names if name not in index))

    def schema(self) -> Schema:
        """The schema of the batches: keys have one type in all files, other columns that of the
        first."""
        return self._schema_of(self.files[0])

    def batches(self, size: int, bad: OnBad | None = None) -> Iterator[Rows]:
        """All rows, `size` at a time within each file; where there are none at all, one batch
        without rows.

        A file that changes meanwhile is an error.
        """
        schema = self.schema()
        is_empty = True
        for file in self.files:
            before = _state(file)
            first = 0
            for batch in _cut(self._read(file, bad), size):
                _check_unchanged(file, before)
                # A slice would be sent to a worker with all that it was cut from.
                own = batch.take(pa.array(np.arange(batch.num_rows)))
                yield Rows(str(file), first, own)
                first += batch.num_rows
                is_empty = False
            _check_unchanged(file, before)
        if is_empty:
            nothing = [pa.array([], kind) for kind in schema.types]
            yield Rows(str(self.files[0]), 0, pa.record_batch(nothing, schema=schema))

    def frame(self) -> pd.DataFrame:
        """All rows as a pandas frame; columns of CSV files get the types that their values have."""
        schema = self.schema()
        tables = {
            file: pa.Table.from_batches(self._read(file, None), self._schema_of(file))
            for file in self.files
        }
        with reading(self.root):
            by_name = {
                name: {file: table.column(name) for file, table in tables.items()}
                for name in schema.names
            }
            columns = [self._joined(name, by_file) for name, by_file in by_name.items()]
            return pd.DataFrame(
                pa.table(columns, names=schema.names, metadata=schema.metadata).to_pandas()
            )

    def spread(self, many: int) -> tuple[list[Batch], IntArray]:
        """Some rows, evenly spread over all files, as batches; and their positions."""
        batches = [rows.batch for rows in self.batches(BATCH)]
        ends = np.cumsum([batch.num_rows for batch in batches])
        if ends[-1] == 0:
            raise Stop(f"{self.root} holds no rows.", INPUT)
        positions = np.unique(np.linspace(0, ends[-1] - 1, many).astype(np.intp))
        each = np.split(positions, np.searchsorted(positions, ends[:-1]))
        starts = [0, *ends[:-1].tolist()]
        picked = [
            batch.take(pa.array(rows - start))
            for batch, rows, start in zip(batches, each, starts, strict=True)
        ]
        return [batch for batch in picked if batch.num_rows], positions

    @cached_property
    def _partitions(self) -> dict[Path, dict[str, str]]:
        """The columns that the folders of a file name: ``year=2026`` is one."""
        parts = {
            file: [part.partition("=") for part in file.relative_to(self.root).parts[:-1]]
            for file in self.files
        }
        return {
            file: {name: unquote(value) for name, sign, value in own if sign}
            for file, own in parts.items()
        }

    @cached_property
    def _partition_types(self) -> dict[str, Type]:
        """Whole numbers where all values are, else text."""
        pairs = [pair for own in self._partitions.values() for pair in own.items()]
        texts = {name for name, value in pairs if not WHOLE_NUMBER.fullmatch(value)}
        return {name: pa.string() if name in texts else pa.int64() for name, _ in pairs}

    @cached_property
    def _schemas(self) -> dict[Path, Schema]:
        """What each file holds, by its metadata or its header, and its partitions."""
        found = {}
        for file in self.files:
            with reading(file):
                if is_csv(file):
                    own = pa.schema(
                        [(name, pa.string()) for name in csv_files.names_in(file, self.rules)]
                    )
                else:
                    own = pq.read_schema(file)
            fixed = self._partitions[file]
            fields = [field for field in own if field.name not in fixed]
            fields += [pa.field(name, self._partition_types[name]) for name in fixed]
            found[file] = pa.schema(fields, own.metadata)
        return found

    @cached_property
    def _read_names(self) -> Sequence[str]:
        """The columns that are read, which each file has once."""
        names: Sequence[str] = (
            self._schemas[self.files[0]].names if self.columns is None else self.columns
        )
        for file, schema in self._schemas.items():
            _check_columns(file, names, schema.names)
        return names

    @cached_property
    def _key_types(self) -> dict[str, Type]:
        """One type for each key, in which every file can hand it on."""
        each = {
            name: {file: schema.field(name).type for file, schema in self._schemas.items()}
            for name in self.keys
        }
        return {name: common_type(name, by_file, joint_of_keys) for name, by_file in each.items()}

    def _schema_of(self, file: Path) -> Schema:
        """The schema of the batches of one file."""
        own = self._schemas[file]
        types = {name: own.field(name).type for name in self._read_names} | self._key_types
        return pa.schema(list(types.items()), own.metadata)

    def _read(self, file: Path, bad: OnBad | None) -> Iterator[Batch]:
        """The batches of one file as they come."""
        schema = self._schema_of(file)
        fixed = self._partitions[file]
        own = [name for name in schema.names if name not in fixed]
        nulls: tuple[str, ...] = ()
        if is_csv(file):
            batches = csv_files.batches_of(file, own, bad, self.rules)
            nulls = self.rules.null_values
        else:
            batches = _parquet_batches(file, own)
        for batch in batches:
            columns = {
                name: pa.repeat(pa.scalar(value), batch.num_rows) for name, value in fixed.items()
            }
            columns |= {name: batch.column(name) for name in own}
            columns |= {
                name: _without(columns[name], nulls)
                for name in own
                if nulls and name not in self.keys
            }
            yield pa.record_batch(
                [columns[field.name].cast(field.type) for field in schema], schema=schema
            )

    def _joined(self, name: str, by_file: Mapping[Path, Column]) -> Column:
        """A column of all files; the text of CSV files as what it holds in all of them."""
        columns = dict(by_file)
        texts = [file for file in by_file if is_csv(file) and name not in self._partitions[file]]
        if texts:
            columns |= _typed(name, {file: by_file[file] for file in texts})
        kind = common_type(
            name, {file: column.type for file, column in columns.items()}, joint_of_features
        )
        return pa.chunked_array(
            [chunk for column in columns.values() for chunk in column.cast(kind).chunks], kind
        )


def _may_hold_rows(file: Path) -> bool:
    return file.name.lower().endswith(SUFFIXES) and file.is_file()


def _is_hidden(file: Path) -> bool:
    """Whether a path within a folder is left out, as by Spark and others."""
    return any(part.startswith((".", "_")) for part in file.parts)


def _state(file: Path) -> tuple[int, ...]:
    with reading(file):
        found = file.stat()
        return found.st_size, found.st_mtime_ns, found.st_ino


def _check_unchanged(file: Path, before: tuple[int, ...]) -> None:
    if _state(file) != before:
        said = f"{file} changed while it was read, from {before[0]:,} to {_state(file)[0]:,} bytes."
        raise Stop(
            f"{said} Finished parts are kept; when it is whole, --resume checks what they were"
            " made of.",
            INPUT,
        )


def _check_columns(file: Path, wanted: Iterable[str], names: Sequence[str]) -> None:
    """Refuse a file that lacks a column that is read, or has two of its name."""
    times = Counter(names)
    for name in wanted:
        if times[name] == 0:
            raise Stop(
                f"{file} lacks the column {name!r}. It has: {', '.join(map(repr, names))}.", INPUT
            )
        if times[name] > 1:
            raise Stop(
                f"{file} has {times[name]} columns called {name!r}. Give each a name of its own.",
                INPUT,
            )


def _parquet_batches(file: Path, wanted: list[str]) -> Iterator[Batch]:
    """Row group by row group, so that a damaged one can be named."""
    with reading(file):
        parquet = pq.ParquetFile(file, pre_buffer=False)
    first = 0
    with parquet:
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            with reading(
                file, f", row group {group} (rows {first} to {first + rows - 1}, counted from 0),"
            ):
                yield from parquet.iter_batches(
                    row_groups=[group], columns=wanted, use_threads=False
                )
            first += rows


def _without(column: Column, nulls: Sequence[str]) -> Column:
    """A column of text in which some texts stand for missing values."""
    is_null = pc.is_in(column, value_set=pa.array(nulls, column.type))
    return pc.if_else(is_null, pa.scalar(None, column.type), column)


def _typed(name: str, by_file: Mapping[Path, Column]) -> dict[Path, Column]:
    """A column of text of several files as what it holds in all of them; a Stop names a cell that
    fits nothing."""
    files = list(by_file)
    ends = np.cumsum([len(column) for column in by_file.values()]).tolist()
    starts = [0, *ends[:-1]]
    whole = pa.chunked_array(
        [chunk for column in by_file.values() for chunk in column.chunks], pa.string()
    )
    try:
        found = typed(whole, name)
    except UnreadableCell as error:
        place = int(np.searchsorted(ends, error.position, "right"))
        raise Stop(
            f"{files[place]}, row {error.position - starts[place]} (counted from 0): {error}", INPUT
        ) from error
    return {
        file: found.slice(start, end - start)
        for file, start, end in zip(files, starts, ends, strict=True)
    }


def _cut(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """The same rows, `size` at a time."""
    held: list[Batch] = []
    n = 0
    for batch in batches:
        start = 0
        while n + batch.num_rows - start >= size:
            held.append(batch.slice(start, size - n))
            start += size - n
            yield pa.concat_batches(held)
            held = []
            n = 0
        if start < batch.num_rows:
            held.append(batch.slice(start))
            n += batch.num_rows - start
    if held:
        yield pa.concat_batches(held)


def _rows_in(file: Path) -> int:
    with reading(file):
        if not is_csv(file):
            return int(pq.read_metadata(file).num_rows)
        with file.open("rb") as opened:
            head = opened.read(HEAD)
        times = 1 if file.suffix.lower() == ".csv" else 4  # what gzip saves
        return times * file.stat().st_size * head.count(b"\n") // max(len(head), 1)
