"""Split CSV files into complete records, with the number of the line on which each begins.

After an unclosed quote every line belongs to one field, and a parser accepts that: hundreds of rows
become one. So a file is split into records here, by the rules of Arrow's parser, before it is
parsed. A quote that is not closed as CSV requires, and a record that is implausibly long, are
errors that name the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weightedshap._checks import BoolArray, IntArray, require
from weightedshap._format import plural
from weightedshap.jobs.exit_codes import INPUT, CommandError

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = require("pyarrow", "stream")

MAX_LINES = 100  # of one record, unless the user allows more
MAX_BYTES = 2**26  # of one record, which must fit into memory
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some programs write it at the start of a UTF-8 file

# A field is quoted if it begins with a quote; a quote inside is doubled. At the end of the bytes it
# may be unclosed.
QUOTED_FIELD = re.compile(rb'"(?<![^,\r\n]")[^"]*+(?:""[^"]*+)*+"?')
FIELD_ENDS = (b"", b",", b"\r", b"\n")
LINE_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Records:
    """Consecutive bytes of a CSV file, which start at the beginning of a record."""

    file: Path
    line: int  # the number of the line on which the bytes begin, counted from 1
    content: bytes
    is_end: bool = True  # False if the next bytes of the file may continue the last record

    @cached_property
    def breaks(self) -> IntArray:
        """The positions of all line breaks (breaks,); a CRLF counts once, at its second byte."""
        codes = np.frombuffer(self.content, dtype=np.uint8)
        is_break = codes == ord("\n")
        if b"\r" in self.content:
            is_lone_return = codes == ord("\r")
            is_lone_return[:-1] &= ~is_break[1:]
            is_lone_return[-1] &= self.is_end
            is_break |= is_lone_return
        return np.flatnonzero(is_break)

    @cached_property
    def quoted_spans(self) -> IntArray:
        """The start and end position of each quoted field (fields, 2)."""
        spans = [field.span() for field in QUOTED_FIELD.finditer(self.content)]
        return np.array(spans, dtype=np.intp).reshape(-1, 2)

    @cached_property
    def is_quoted(self) -> BoolArray:
        """Whether each line break is inside a quoted field (breaks,)."""
        # In most files none is, and checking that is faster than locating each field.
        quoted = b"".join(QUOTED_FIELD.findall(self.content))
        if b"\n" not in quoted and b"\r" not in quoted:
            return np.zeros(len(self.breaks), dtype=np.bool_)
        opened = np.searchsorted(self.quoted_spans[:, 0], self.breaks, "right")
        closed = np.searchsorted(self.quoted_spans[:, 1], self.breaks, "right")
        return opened > closed

    @cached_property
    def complete_bytes(self) -> int:
        """The number of bytes up to the end of the last record that ends with a line break."""
        ends = self.breaks[~self.is_quoted]
        return int(ends[-1]) + 1 if len(ends) else 0

    def line_at(self, position: int) -> int:
        """Return the number of the line that contains the byte at `position`."""
        return self.line + int(np.searchsorted(self.breaks, position))

    def starts(self) -> list[int]:
        """Return the number of the line on which each record begins; blank lines are left out."""
        return [
            self.line_at(start)
            for start, end in self._spans()
            if self.content[start:end].strip(b"\r\n")
        ]

    def header(self) -> bytes:
        """Return the bytes of the first record that is not blank; b"" if there is none."""
        records = (self.content[start:end] for start, end in self._spans())
        return next((record for record in records if record.strip(b"\r\n")), b"")

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Yield the start and end position of each record, including blank lines."""
        ends = [*(self.breaks[~self.is_quoted] + 1).tolist(), len(self.content)]
        return zip([0, *ends], ends)

    def check(self, max_lines: int) -> None:
        """Raise an error for a record that is too long or a quote that is not closed properly."""
        if len(self.content) - self.complete_bytes > MAX_BYTES:
            raise self._error(
                self.line_at(self.complete_bytes),
                f"the record that begins here takes more than {MAX_BYTES // 2**20} MiB. Is a quote"
                " missing? Parquet files have no such limit.",
            )
        if not self.is_quoted.any():
            return

        # The text after a closing quote shows whether the quote closes a field, or was meant to
        # open the next one.
        lines = self.line + np.searchsorted(self.breaks, self.quoted_spans)  # (fields, 2)
        for field in np.flatnonzero(lines[:, 0] != lines[:, 1]).tolist():
            end = self.quoted_spans[field, 1]
            if self.content[end : end + 1] not in FIELD_ENDS:
                raise self._error(
                    lines[field, 0],
                    f"a quote is opened here, and the next one, on line {lines[field, 1]}, has text"
                    " behind it. Is a quote missing? Within quotes a quote is written twice.",
                )

        # Each line break outside of quotes ends a record; the last record may be incomplete.
        ends = np.flatnonzero(np.append(~self.is_quoted, True))
        lengths = np.diff(ends, prepend=-1)  # (records,) in lines
        longest = int(np.argmax(lengths > max_lines))
        if lengths[longest] > max_lines:
            raise self._error(
                self.line + int(ends[longest] - lengths[longest]) + 1,
                f"the record that begins here takes more than {plural(max_lines, 'line')}. Is a"
                " quote missing? If the record really is so long, pass a larger --record-lines.",
            )

    def check_closed(self) -> None:
        """Raise an error if a quote is still open at the end of the bytes."""
        for start, end in self.quoted_spans[-1:].tolist():
            if self.content.count(b'"', start, end) % 2:
                raise self._error(self.line_at(start), "a quote is opened here and never closed.")

    def _error(self, line: int, message: str) -> CommandError:
        """Return an error whose message names the file and the line."""
        return CommandError(f"{self.file}, line {line}: {message}", INPUT)


def read_records(file: Path, block_bytes: int, max_lines: int) -> Iterator[Records]:
    """Yield the records of a CSV file, in blocks of about `block_bytes` bytes.

    A record of more than `max_lines` lines, or with an unclosed quote, is an error that names its
    line.
    """
    line = 1
    rest = b""
    with pa.input_stream(str(file)) as stream:
        while block := stream.read(block_bytes):
            content = rest + block
            if line == 1:
                content = content.removeprefix(BYTE_ORDER_MARK)
            records = Records(file, line, content, is_end=False)
            records.check(max_lines)
            complete = records.complete_bytes
            if complete:
                yield Records(file, line, content[:complete])
            line = records.line_at(complete)
            rest = content[complete:]

    # The last record of a file needs no line break, but its quotes must be closed.
    if rest:
        last = Records(file, line, rest)
        last.check_closed()
        last.check(max_lines)
        yield last


def count_lines(record: str) -> int:
    """Return the number of lines in the text of one record."""
    return 1 + len(LINE_BREAK.findall(record.rstrip("\r\n")))
