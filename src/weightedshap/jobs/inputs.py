"""Tables in CSV and Parquet files, batch by batch: one file, a folder of them, or Hive partitions (``year=2026/…``)."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import pandas as pd

from weightedshap.checks import require
from weightedshap.jobs.stops import INPUT, Stop, reading

pa = require("pyarrow", "stream")
csv, pq = require("pyarrow.csv", "stream"), require("pyarrow.parquet", "stream")

Batch = Any  # a RecordBatch of Arrow
Line = Callable[[Path, str], None]  # what to do with a line of a CSV file that is no row: (file, the line)

SUFFIXES = (".parquet", ".pq", ".csv", ".csv.gz")
BLOCK = 2**22  # bytes of a CSV file that are looked at at once
HEAD = 2**20  # bytes by which the rows of a CSV file are estimated


@dataclass(frozen=True)
class Rows:
    """Rows `first` to ``first + batch.num_rows`` of a file."""

    file: str
    first: int
    batch: Batch

    def digest(self) -> str:
        """Return a hash of names, types and values: whether a finished part was made of these rows."""
        types = [(field.name, str(field.type), field.nullable) for field in self.batch.schema]
        found = hashlib.blake2b(json.dumps(types).encode(), digest_size=16)
        # Values in place of dictionaries, whose order depends on how the rows were cut. Those inside of lists stay, and
        # the stream, unlike a batch alone, holds them.
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
    """Files that hold one table, in order, and the columns that are read of them."""

    root: Path
    files: tuple[Path, ...]
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Self:
        """A file, or all files under a folder by name; hidden ones are left out."""
        root = Path(path)
        if not root.exists():
            raise Stop(f"{root} is not there.", INPUT)
        found = sorted(root.rglob("*")) if root.is_dir() else [root]
        hidden = [any(part.startswith((".", "_")) for part in file.relative_to(root).parts) for file in found]
        files = [file for file, left in zip(found, hidden) if file.name.endswith(SUFFIXES) and not left]
        if not files:
            raise Stop(f"{root} holds no file of rows: none ends with {', '.join(SUFFIXES)}.", INPUT)
        return cls(root, tuple(files), None if columns is None else tuple(dict.fromkeys(columns)))

    def __len__(self) -> int:
        """How many rows there are; of CSV files an estimate."""
        return sum(map(_rows_in, self.files))

    def batches(self, size: int, bad: Line | None = None) -> Iterator[Rows]:
        """All rows, `size` at a time within each file; a file that changes meanwhile is an error."""
        for file in self.files:
            before, first = _state(file), 0
            for batch in _cut(self._read(file, bad), size):
                _check_unchanged(file, before)
                own = batch.take(pa.array(range(batch.num_rows)))  # a slice would be sent with all that it was cut from
                yield Rows(str(file), first, own)
                first += batch.num_rows
            _check_unchanged(file, before)

    def schema(self) -> Any:
        """The schema of the first file, partitions included."""
        return next(_cut(self._read(self.files[0], lambda file, line: None), 1), pa.record_batch({})).schema

    def frame(self) -> pd.DataFrame:
        """All rows as a pandas frame; columns of CSV files get the types that their values have."""
        tables = [pa.Table.from_batches([batch]) for file in self.files for batch in self._read(file, None, typed=True)]
        with reading(self.root):
            return pd.DataFrame(pa.concat_tables(tables, promote_options="permissive").to_pandas())

    def _read(self, file: Path, bad: Line | None, typed: bool = False) -> Iterator[Batch]:
        """The batches of one file as they come, with the columns that its folders name: ``year=2026`` is one."""
        pairs = [part.partition("=") for part in file.relative_to(self.root).parts[:-1] if "=" in part]
        fixed = {name: int(value) if value.isdecimal() else unquote(value) for name, _, value in pairs}
        wanted = None if self.columns is None else [name for name in self.columns if name not in fixed]
        for batch in _csv_batches(file, wanted, bad, typed) if _is_csv(file) else _parquet_batches(file, wanted):
            for name, value in fixed.items():
                batch = batch.append_column(name, pa.repeat(pa.scalar(value), batch.num_rows))
            yield batch if self.columns is None else batch.select(list(self.columns))


def _is_csv(file: Path) -> bool:
    return file.name.endswith((".csv", ".csv.gz"))


def _state(file: Path) -> tuple[int, ...]:
    with reading(file):
        found = file.stat()
        return found.st_size, found.st_mtime_ns, found.st_ino


def _check_unchanged(file: Path, before: tuple[int, ...]) -> None:
    if _state(file) != before:
        said = f"{file} changed while it was read, from {before[0]:,} to {_state(file)[0]:,} bytes."
        raise Stop(f"{said} Finished parts are kept; when it is whole, --resume checks what they were made of.", INPUT)


def _parquet_batches(file: Path, wanted: list[str] | None) -> Iterator[Batch]:
    """Row group by row group, so that a damaged one can be named."""
    with reading(file):
        parquet = pq.ParquetFile(file, pre_buffer=False)
        _check_columns(file, wanted, parquet.schema_arrow.names)
    first = 0
    with parquet:
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            with reading(file, f", row group {group} (rows {first} to {first + rows - 1}, counted from 0),"):
                yield from parquet.iter_batches(row_groups=[group], columns=wanted, use_threads=False)
            first += rows


def _csv_batches(file: Path, wanted: list[str] | None, bad: Line | None, typed: bool) -> Iterator[Batch]:
    """Every column as text, which is turned into what the background holds where the row can be named; or `typed`."""

    def told(line: Any) -> str:
        if bad is not None:
            bad(file, line.text)
        return "error" if bad is None else "skip"

    def opened(way: Callable[..., Any], handler: Callable[[Any], str], **convert: Any) -> Any:
        parse = csv.ParseOptions(newlines_in_values=True, invalid_row_handler=handler)
        return way(file, csv.ReadOptions(use_threads=False, block_size=BLOCK), parse, csv.ConvertOptions(**convert))

    with reading(file):
        names = opened(csv.open_csv, lambda _: "skip").schema.names
        _check_columns(file, wanted, names)
        if typed:
            yield from opened(csv.read_csv, told, include_columns=wanted).to_batches()
        else:
            text = dict.fromkeys(names, pa.string())
            yield from opened(csv.open_csv, told, column_types=text, strings_can_be_null=True, include_columns=wanted)


def _check_columns(file: Path, wanted: Iterable[str] | None, names: Sequence[str]) -> None:
    if missing := [name for name in wanted or () if name not in names]:
        raise Stop(f"{file} lacks the column {missing[0]!r}. It has: {', '.join(map(repr, names))}.", INPUT)


def _cut(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """The same rows, `size` at a time."""
    held: list[Batch] = []
    for batch in batches:
        held.append(batch)
        while (total := sum(one.num_rows for one in held)) >= size:
            whole = pa.concat_batches(held)
            yield whole.slice(0, size)
            held = [whole.slice(size)] if total > size else []
    if held:
        yield pa.concat_batches(held)


def _rows_in(file: Path) -> int:
    with reading(file):
        if not _is_csv(file):
            return int(pq.read_metadata(file).num_rows)
        with file.open("rb") as opened:
            head = opened.read(HEAD)
        times = 1 if file.suffix == ".csv" else 4  # what gzip saves
        return times * file.stat().st_size * head.count(b"\n") // max(len(head), 1)
