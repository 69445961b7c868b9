"""Read CSV files of background rows or of rows to explain, with every column as text.

The text is converted later, by `weightedshap.jobs.text_columns`, where an error can name the column
and the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weightedshap._checks import require
from weightedshap.jobs.exit_codes import INPUT, CommandError, report_read_errors
from weightedshap.jobs.records import MAX_LINES, Records, count_lines, read_records

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import csv
else:
    pa = require("pyarrow", "stream")
    csv = require("pyarrow.csv", "stream")

SUFFIXES = (".csv", ".csv.gz")
BLOCK_BYTES = 2**22  # read and parsed at once
HEADER_BYTES = 2**16  # read at once if only the header is needed
MAX_SHOWN = 200  # characters of a record that an error shows


@dataclass(frozen=True)
class CsvRules:
    """Options for reading CSV: which texts mark missing values, and the most lines of a record."""

    null_values: tuple[str, ...] = ()  # texts that mean a missing value, besides an empty field
    max_lines: int = MAX_LINES  # of one record; more suggest that a quote was never closed


DEFAULT_RULES = CsvRules()


@dataclass(frozen=True)
class BadRecord:
    """A CSV record whose number of cells differs from that of the header."""

    file: Path
    line: int  # the number of its first line, counted from 1
    text: str
    expected: int  # the number of cells in the header
    actual: int  # the number of cells in the record

    @property
    def n_lines(self) -> int:
        """The number of lines in the record."""
        return count_lines(self.text)

    def __str__(self) -> str:
        cells = f"Expected {self.expected} columns, got {self.actual}"
        return f"{self.file}, line {self.line}: {cells}: {self.text[:MAX_SHOWN]}"


OnBadRecord = Callable[[BadRecord], None]


def is_csv(file: Path) -> bool:
    """Return whether a file is a CSV file, judged by its name."""
    return file.name.lower().endswith(SUFFIXES)


def read_names(file: Path, rules: CsvRules) -> list[str]:
    """Read the column names of a CSV file from its first record."""
    for records in read_records(file, HEADER_BYTES, rules.max_lines):
        header = records.header()
        if header:
            return _parse_names(header)
    raise CommandError(
        f"{file} is empty. A CSV file begins with the names of its columns, even if it holds no"
        " rows.",
        INPUT,
    )


def read_batches(
    file: Path, columns: list[str], on_bad: OnBadRecord | None, rules: CsvRules
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a CSV file in batches, with the given columns as text.

    A record with another number of cells than the header is passed to `on_bad`; if that is None, it
    is an error. An empty field is a missing value, and an empty field in quotes is an empty text.
    """
    invalid: list[csv.InvalidRow] = []

    def skip(row: csv.InvalidRow) -> str:
        invalid.append(row)
        return "skip"

    parse_options = csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip)
    convert_options = csv.ConvertOptions(
        column_types=dict.fromkeys(columns, pa.string()),
        include_columns=columns,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    names: list[str] | None = None
    for records in read_records(file, BLOCK_BYTES, rules.max_lines):
        # The first record of the file contains the column names; blank lines may come before it.
        if names is None and not records.header():
            continue
        read_options = csv.ReadOptions(
            use_threads=False, block_size=len(records.content) + 1, column_names=names
        )
        with report_read_errors(file, f", in the records from line {records.line} on,"):
            table = csv.read_csv(
                pa.BufferReader(records.content), read_options, parse_options, convert_options
            )
        if names is None:
            names = _parse_names(records.header())
        if invalid:
            _report_invalid(records, invalid, on_bad)
            invalid.clear()
        yield from table.to_batches()


def _parse_names(header: bytes) -> list[str]:
    """Parse the bytes of the header record of a CSV file into column names."""
    parse_options = csv.ParseOptions(newlines_in_values=True)
    return list(csv.read_csv(pa.BufferReader(header), parse_options=parse_options).column_names)


def _report_invalid(
    records: Records, invalid: list[csv.InvalidRow], on_bad: OnBadRecord | None
) -> None:
    """Pass each record that Arrow found invalid to `on_bad`; if that is None, raise an error.

    `records` is the block that contains them, from which their line numbers are taken.
    """
    lines = records.starts()
    for row in invalid:
        line = lines[row.number - 1]
        record = BadRecord(records.file, line, row.text, row.expected_columns, row.actual_columns)
        if on_bad is None:
            raise CommandError(
                f"{record}. `explain --on-error skip` leaves such records of --rows out.", INPUT
            )
        on_bad(record)
