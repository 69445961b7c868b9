"""CSV files, the background's and those of rows alike: every column as text, record by record.

What the text stands for is decided later, by `weightedshap.jobs.text_columns`, where the column and
the row can be named.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightedshap._checks import require
from weightedshap.jobs.exit_codes import INPUT, Stop, reading
from weightedshap.jobs.records import MOST_LINES, Records, count_lines, records_of

pa = require("pyarrow", "stream")
csv = require("pyarrow.csv", "stream")

Batch = Any  # a RecordBatch of Arrow

SUFFIXES = (".csv", ".csv.gz")
BLOCK = 2**22  # bytes that are looked at at once
HEADER = 2**16  # bytes in which the header is looked for first
SHOWN = 200  # characters of a record in an error


@dataclass(frozen=True)
class CsvRules:
    """How CSV files are read.

    null_values : texts that stand for a missing value, beside nothing at all
    most_lines : of one record, before a quote is taken for one that was not closed
    """

    null_values: tuple[str, ...] = ()
    most_lines: int = MOST_LINES


@dataclass(frozen=True)
class BadRecord:
    """A record that has another number of cells than the header."""

    file: Path
    line: int  # that it begins on, counted from 1
    text: str
    expected: int  # cells
    actual: int

    @property
    def n_lines(self) -> int:
        return count_lines(self.text)

    def __str__(self) -> str:
        cells = f"Expected {self.expected} columns, got {self.actual}"
        return f"{self.file}, line {self.line}: {cells}: {self.text[:SHOWN]}"


OnBad = Callable[[BadRecord], None]
BY_DEFAULT = CsvRules()


def is_csv(file: Path) -> bool:
    """Return whether a file is CSV, by its name."""
    return file.name.lower().endswith(SUFFIXES)


def names_in(file: Path, rules: CsvRules) -> list[str]:
    """Return the names of the columns, which the first record holds."""
    for records in records_of(file, HEADER, rules.most_lines):
        if header := records.header():
            return _names(header)
    raise Stop(
        f"{file} is empty. A CSV file begins with the names of its columns, even if it holds no"
        " rows.",
        INPUT,
    )


def batches_of(
    file: Path, wanted: list[str], bad: OnBad | None, rules: CsvRules
) -> Iterator[Batch]:
    """Yield the rows, with the columns that are wanted; a record that is no row goes to `bad`, or
    is a Stop.

    A field with nothing in it is missing, and one with nothing in its quotes is an empty text.
    """
    invalid: list[Any] = []

    def keep(row: Any) -> str:
        invalid.append(row)
        return "skip"

    parse = csv.ParseOptions(newlines_in_values=True, invalid_row_handler=keep)
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(wanted, pa.string()),
        include_columns=wanted,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    names: list[str] | None = None
    for records in records_of(file, BLOCK, rules.most_lines):
        # The first record of all names the columns.
        if names is None and not records.header():
            continue
        read = csv.ReadOptions(
            use_threads=False, block_size=len(records.content) + 1, column_names=names
        )
        with reading(file, f", in the records from line {records.line} on,"):
            table = csv.read_csv(pa.BufferReader(records.content), read, parse, convert)
        if names is None:
            names = _names(records.header())
        if invalid:
            _hand_over(records, invalid, bad)
            invalid.clear()
        yield from table.to_batches()


def _names(header: bytes) -> list[str]:
    parse = csv.ParseOptions(newlines_in_values=True)
    return list(csv.read_csv(pa.BufferReader(header), parse_options=parse).column_names)


def _hand_over(records: Records, invalid: list[Any], bad: OnBad | None) -> None:
    """Tell of records that are no rows, or refuse the first."""
    lines = records.starts()
    for row in invalid:
        record = BadRecord(
            records.file, lines[row.number - 1], row.text, row.expected_columns, row.actual_columns
        )
        if bad is None:
            raise Stop(
                f"{record}. `explain --on-error skip` leaves such records of --rows out.", INPUT
            )
        bad(record)
