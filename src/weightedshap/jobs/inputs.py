"""Read tables from CSV and Parquet files, in batches of rows.

A table is one file, a folder of files, or a folder of Hive partitions (``year=2026/…``). Runs
(`weightedshap.jobs.run`) read the background and the rows to explain with it;
`weightedshap.jobs.csv_files` reads CSV, and `weightedshap.jobs.column_types` finds a common type
for a column of several files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import unquote

import numpy as np
import pandas as pd

from weightedshap._checks import IntArray, require
from weightedshap.jobs import csv_files
from weightedshap.jobs.column_types import common_type, join_feature_types, join_key_types
from weightedshap.jobs.csv_files import DEFAULT_RULES, CsvRules, OnBadRecord, is_csv
from weightedshap.jobs.exit_codes import INPUT, CommandError, report_read_errors
from weightedshap.jobs.text_columns import ArrowColumn, UnreadableCellError, infer_and_parse

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
else:
    pa = require("pyarrow", "stream")
    pc = require("pyarrow.compute", "stream")
    pq = require("pyarrow.parquet", "stream")

SUFFIXES = (".parquet", ".pq", *csv_files.SUFFIXES)
HEAD_BYTES = 2**20  # read to estimate the number of rows of a CSV file
GZIP_FACTOR = 4  # approximate compression factor of gzip
BATCH_ROWS = 2**16  # where the size of batches does not matter
INTEGER = re.compile(r"[0-9]{1,18}")  # always fits into 64 bits


@dataclass(frozen=True)
class FileRows:
    """A batch of consecutive rows of one file; `first_row` is the position of the first one."""

    file: str
    first_row: int
    batch: pa.RecordBatch

    def digest(self) -> str:
        """Return a hash of the column names, types and values of the rows.

        It tells whether a finished part of a run was made from the same rows.
        """
        types = [(field.name, str(field.type), field.nullable) for field in self.batch.schema]
        digest = hashlib.blake2b(json.dumps(types).encode(), digest_size=16)
        # Use values in place of dictionaries, whose order depends on how the rows were split.
        # Dictionaries inside of lists stay; a stream, unlike a single batch, contains them.
        columns = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for column in self.batch.columns
        ]
        plain = pa.record_batch(columns, names=self.batch.schema.names)
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, plain.schema) as writer:
            writer.write_batch(plain)
        digest.update(stream.getvalue())
        return digest.hexdigest()


@dataclass(frozen=True)
class TableSource:
    """A table stored in one or more files, and the columns to read from them."""

    root: Path
    files: tuple[Path, ...]
    columns: tuple[str, ...] | None = None  # None for all
    # Columns that are copied to the results: unchanged, and of one type in all files.
    keys: tuple[str, ...] = ()
    rules: CsvRules = DEFAULT_RULES

    @classmethod
    def from_path(
        cls,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        keys: Sequence[str] = (),
        rules: CsvRules = DEFAULT_RULES,
    ) -> Self:
        """Find the files of a table: one file, or all files under a folder, sorted by name.

        Hidden files are left out. The `keys` and `columns` are read, or all columns if `columns` is
        None; `keys` are copied to the results unchanged.
        """
        root = Path(path)
        if not root.exists():
            raise CommandError(f"{root} is not there.", INPUT)
        candidates = sorted(root.rglob("*")) if root.is_dir() else [root]
        files = [
            file
            for file in candidates
            if _may_hold_rows(file) and not _is_hidden(file.relative_to(root))
        ]
        if not files:
            raise CommandError(
                f"{root} holds no file of rows: none ends with {', '.join(SUFFIXES)}.", INPUT
            )
        names = None if columns is None else tuple(dict.fromkeys((*keys, *columns)))
        return cls(root, tuple(files), names, tuple(keys), rules)

    def __len__(self) -> int:
        """Return the number of rows; for CSV files, an estimate."""
        return sum(map(_count_rows, self.files))

    @property
    def names(self) -> tuple[str, ...]:
        """The column names of the first file, with partition columns but no pandas index."""
        schema = self._schemas[self.files[0]]
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        return tuple(dict.fromkeys(name for name in schema.names if name not in index))

    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the batches that `batches` yields.

        A key has one type in all files; another column has the type of the first file.
        """
        return self._schema_of(self.files[0])

    def batches(self, size: int, on_bad_record: OnBadRecord | None = None) -> Iterator[FileRows]:
        """Yield all rows in batches of `size` rows; no batch spans two files.

        A table without rows gives one empty batch. A file that changes meanwhile is an error.
        Invalid CSV records are passed to `on_bad_record`; if that is None, they are errors.
        """
        schema = self.schema()
        is_empty = True
        for file in self.files:
            before = _file_state(file)
            first_row = 0
            for batch in _split_into_parts(self._read(file, on_bad_record), size):
                _check_unchanged(file, before)
                # Copy: a slice would be sent to a worker together with all of its parent batch.
                own = batch.take(pa.array(np.arange(batch.num_rows)))
                yield FileRows(str(file), first_row, own)
                first_row += batch.num_rows
                is_empty = False
            _check_unchanged(file, before)
        if is_empty:
            columns = [pa.array([], column_type) for column_type in schema.types]
            yield FileRows(str(self.files[0]), 0, pa.record_batch(columns, schema=schema))

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a pandas frame; text from CSV files becomes numbers where it can."""
        schema = self.schema()
        tables = {
            file: pa.Table.from_batches(self._read(file, None), self._schema_of(file))
            for file in self.files
        }
        with report_read_errors(self.root):
            columns = []
            for name in schema.names:
                by_file = {file: table.column(name) for file, table in tables.items()}
                columns.append(self._concatenate_column(name, by_file))
            table = pa.table(columns, names=schema.names, metadata=schema.metadata)
            return pd.DataFrame(table.to_pandas())

    def sample(self, n: int) -> tuple[list[pa.RecordBatch], IntArray]:
        """Return up to n evenly spaced rows of the table as batches, and their positions."""
        batches = [rows.batch for rows in self.batches(BATCH_ROWS)]
        ends = np.cumsum([batch.num_rows for batch in batches])
        if ends[-1] == 0:
            raise CommandError(f"{self.root} holds no rows.", INPUT)
        positions = np.unique(np.linspace(0, ends[-1] - 1, n).astype(np.intp))
        by_batch = np.split(positions, np.searchsorted(positions, ends[:-1]))
        starts = [0, *ends[:-1].tolist()]
        samples = [
            batch.take(pa.array(rows - start))
            for batch, rows, start in zip(batches, by_batch, starts, strict=True)
        ]
        return [batch for batch in samples if batch.num_rows], positions

    @cached_property
    def _partitions(self) -> dict[Path, dict[str, str]]:
        """For each file, the columns in its folder names: ``year=2026`` gives {"year": "2026"}."""
        partitions = {}
        for file in self.files:
            parts = [part.partition("=") for part in file.relative_to(self.root).parts[:-1]]
            partitions[file] = {name: unquote(value) for name, sign, value in parts if sign}
        return partitions

    @cached_property
    def _partition_types(self) -> dict[str, pa.DataType]:
        """The type of each partition column: integer if all its values are integers, else text."""
        pairs = [pair for columns in self._partitions.values() for pair in columns.items()]
        text = {name for name, value in pairs if not INTEGER.fullmatch(value)}
        return {name: pa.string() if name in text else pa.int64() for name, _ in pairs}

    @cached_property
    def _schemas(self) -> dict[Path, pa.Schema]:
        """The Arrow schema of each file, from its metadata or header, with partition columns."""
        schemas = {}
        for file in self.files:
            with report_read_errors(file):
                if is_csv(file):
                    names = csv_files.read_names(file, self.rules)
                    schema = pa.schema([(name, pa.string()) for name in names])
                else:
                    schema = pq.read_schema(file)
            partitions = self._partitions[file]
            fields = [field for field in schema if field.name not in partitions]
            fields += [pa.field(name, self._partition_types[name]) for name in partitions]
            schemas[file] = pa.schema(fields, schema.metadata)
        return schemas

    @cached_property
    def _column_names(self) -> Sequence[str]:
        """The names of the columns to read; each must occur exactly once in every file."""
        names: Sequence[str] = self._schemas[self.files[0]].names
        if self.columns is not None:
            names = self.columns
        for file, schema in self._schemas.items():
            _check_columns(file, names, schema.names)
        return names

    @cached_property
    def _key_types(self) -> dict[str, pa.DataType]:
        """The type of each key column, which can hold the values of every file unchanged."""
        key_types = {}
        for name in self.keys:
            by_file = {file: schema.field(name).type for file, schema in self._schemas.items()}
            key_types[name] = common_type(name, by_file, join_key_types)
        return key_types

    def _schema_of(self, file: Path) -> pa.Schema:
        """Return the Arrow schema of the batches that are read from one file."""
        schema = self._schemas[file]
        types = {name: schema.field(name).type for name in self._column_names} | self._key_types
        return pa.schema(list(types.items()), schema.metadata)

    def _read(self, file: Path, on_bad_record: OnBadRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file in batches as they are read, converted to the file's schema.

        Invalid CSV records are passed to `on_bad_record`; if that is None, they are errors.
        """
        schema = self._schema_of(file)
        partitions = self._partitions[file]
        names = [name for name in schema.names if name not in partitions]
        null_values: tuple[str, ...] = ()
        if is_csv(file):
            batches = csv_files.read_batches(file, names, on_bad_record, self.rules)
            null_values = self.rules.null_values
        else:
            batches = _read_parquet(file, names)
        for batch in batches:
            columns = {
                name: pa.repeat(pa.scalar(value), batch.num_rows)
                for name, value in partitions.items()
            }
            for name in names:
                column = batch.column(name)
                if null_values and name not in self.keys:
                    column = _mask_nulls(column, null_values)
                columns[name] = column
            cast = [columns[field.name].cast(field.type) for field in schema]
            yield pa.record_batch(cast, schema=schema)

    def _concatenate_column(self, name: str, by_file: Mapping[Path, ArrowColumn]) -> ArrowColumn:
        """Concatenate one column over all files, converting it to a common type.

        The text of CSV files is converted to numbers or booleans if all its cells, over all files,
        allow it.
        """
        columns = dict(by_file)
        text = {
            file: column
            for file, column in by_file.items()
            if is_csv(file) and name not in self._partitions[file]
        }
        if text:
            columns |= _parse_text(name, text)
        types = {file: column.type for file, column in columns.items()}
        column_type = common_type(name, types, join_feature_types)
        chunks = [chunk for column in columns.values() for chunk in column.cast(column_type).chunks]
        return pa.chunked_array(chunks, column_type)


class FileState(NamedTuple):
    """The size, modification time and inode of a file, which show whether it changed."""

    size: int
    modified_ns: int
    inode: int


def _may_hold_rows(file: Path) -> bool:
    """Return whether a path names a CSV or Parquet file, judged by its suffix."""
    return file.name.lower().endswith(SUFFIXES) and file.is_file()


def _is_hidden(file: Path) -> bool:
    """Return whether any name in the path begins with "." or "_"; Spark skips such files, too."""
    return any(part.startswith((".", "_")) for part in file.parts)


def _file_state(file: Path) -> FileState:
    """Return the size, the modification time and the inode of a file."""
    with report_read_errors(file):
        status = file.stat()
        return FileState(status.st_size, status.st_mtime_ns, status.st_ino)


def _check_unchanged(file: Path, before: FileState) -> None:
    """Raise an error if the file has changed since it had the state `before`."""
    after = _file_state(file)
    if after != before:
        raise CommandError(
            f"{file} changed while it was read, from {before.size:,} to {after.size:,} bytes."
            " Finished parts are kept; when it is whole, --resume checks what they were made of.",
            INPUT,
        )


def _check_columns(file: Path, wanted: Iterable[str], names: Sequence[str]) -> None:
    """Raise an error unless each wanted column occurs once in `names`, the columns of the file."""
    times = Counter(names)
    for name in wanted:
        if times[name] == 0:
            raise CommandError(
                f"{file} lacks the column {name!r}. It has: {', '.join(map(repr, names))}.", INPUT
            )
        if times[name] > 1:
            raise CommandError(
                f"{file} has {times[name]} columns called {name!r}. Give each a name of its own.",
                INPUT,
            )


def _read_parquet(file: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the named columns by row group; an error tells which row group is damaged."""
    with report_read_errors(file):
        parquet = pq.ParquetFile(file, pre_buffer=False)
    first = 0
    with parquet:
        for group in range(parquet.num_row_groups):
            n_rows = parquet.metadata.row_group(group).num_rows
            place = f", row group {group} (rows {first} to {first + n_rows - 1}, counted from 0),"
            with report_read_errors(file, place):
                yield from parquet.iter_batches(
                    row_groups=[group], columns=names, use_threads=False
                )
            first += n_rows


def _mask_nulls(column: ArrowColumn, null_values: Sequence[str]) -> ArrowColumn:
    """Replace the texts `null_values` in a text column by missing values."""
    is_null = pc.is_in(column, value_set=pa.array(null_values, column.type))
    return pc.if_else(is_null, pa.scalar(None, column.type), column)


def _parse_text(name: str, by_file: Mapping[Path, ArrowColumn]) -> dict[Path, ArrowColumn]:
    """Convert a text column of several files to one type that fits the cells of all files.

    A word for a missing value, such as "NA" among numbers, is an error that names its file and row.
    """
    files = list(by_file)
    ends = np.cumsum([len(column) for column in by_file.values()]).tolist()
    starts = [0, *ends[:-1]]
    chunks = [chunk for column in by_file.values() for chunk in column.chunks]
    try:
        parsed = infer_and_parse(pa.chunked_array(chunks, pa.string()), name)
    except UnreadableCellError as error:
        place = int(np.searchsorted(ends, error.position, "right"))
        row = error.position - starts[place]
        raise CommandError(f"{files[place]}, row {row} (counted from 0): {error}", INPUT) from error
    return {
        file: parsed.slice(start, end - start)
        for file, start, end in zip(files, starts, ends, strict=True)
    }


def _split_into_parts(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Regroup the rows of all batches into batches of `size` rows; the last one may be smaller."""
    pieces: list[pa.RecordBatch] = []
    n = 0
    for batch in batches:
        start = 0
        while n + batch.num_rows - start >= size:
            pieces.append(batch.slice(start, size - n))
            start += size - n
            yield pa.concat_batches(pieces)
            pieces = []
            n = 0
        if start < batch.num_rows:
            pieces.append(batch.slice(start))
            n += batch.num_rows - start
    if pieces:
        yield pa.concat_batches(pieces)


def _count_rows(file: Path) -> int:
    """Return the number of rows in a file; for CSV, an estimate from the first bytes."""
    with report_read_errors(file):
        if not is_csv(file):
            return int(pq.read_metadata(file).num_rows)
        with file.open("rb") as opened:
            head = opened.read(HEAD_BYTES)
        factor = 1 if file.suffix.lower() == ".csv" else GZIP_FACTOR
        return factor * file.stat().st_size * head.count(b"\n") // max(len(head), 1)
