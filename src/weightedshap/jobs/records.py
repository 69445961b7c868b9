"""Whole records of a CSV file, with the lines that they stand on.

Behind a quote that is never closed every line belongs to one field, and a parser takes that as it
is: hundreds of rows become one. So a file is cut into records here, by the rules of Arrow's parser,
before it is parsed. A quote that is not closed as CSV wants it, and a record longer than anyone
would write, are errors with their line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from weightedshap._checks import BoolArray, IntArray, require
from weightedshap._format import plural
from weightedshap.jobs.exit_codes import INPUT, Stop

pa = require("pyarrow", "stream")

MOST_LINES = 100  # of a record, unless people ask for more
MOST_BYTES = 2**26  # of a record, which is held as a whole
MARK = b"\xef\xbb\xbf"  # some programs begin a file of UTF-8 with it

# A field is quoted if it begins with a quote; a quote inside is doubled. At the end of the bytes it
# may be unclosed.
QUOTED_FIELD = re.compile(rb'"(?<![^,\r\n]")[^"]*+(?:""[^"]*+)*+"?')
FIELD_ENDS = (b"", b",", b"\r", b"\n")
LINE_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Records:
    """Bytes of a file that begin with a record; `line` is the one that they begin on, counted from
    1."""

    file: Path
    line: int
    content: bytes
    is_end: bool = True  # whether nothing follows that they depend on

    @cached_property
    def breaks(self) -> IntArray:
        """The positions of the line breaks; of two bytes that are one break, the second."""
        codes = np.frombuffer(self.content, dtype=np.uint8)
        found = codes == ord("\n")
        if b"\r" in self.content:
            alone = codes == ord("\r")
            alone[:-1] &= ~found[1:]
            alone[-1] &= self.is_end
            found |= alone
        return np.flatnonzero(found)

    @cached_property
    def quoted(self) -> IntArray:
        """(fields, 2) where each quoted field begins, and where it ends."""
        spans = [field.span() for field in QUOTED_FIELD.finditer(self.content)]
        return np.array(spans, dtype=np.intp).reshape(-1, 2)

    @cached_property
    def is_inside(self) -> BoolArray:
        """(breaks,) whether a line break is part of a quoted field."""
        # In most files none is, which is known sooner than where each field stands.
        inside = b"".join(QUOTED_FIELD.findall(self.content))
        if b"\n" not in inside and b"\r" not in inside:
            return np.zeros(len(self.breaks), dtype=np.bool_)
        opened = np.searchsorted(self.quoted[:, 0], self.breaks, "right")
        closed = np.searchsorted(self.quoted[:, 1], self.breaks, "right")
        return opened > closed

    @cached_property
    def whole(self) -> int:
        """How many bytes whole records take, each with its line break."""
        ends = self.breaks[~self.is_inside]
        return int(ends[-1]) + 1 if len(ends) else 0

    def line_at(self, position: int) -> int:
        """Return the line that a byte stands on."""
        return self.line + int(np.searchsorted(self.breaks, position))

    def starts(self) -> list[int]:
        """Return the line on which each record begins. A blank line is no record."""
        ends = [*(self.breaks[~self.is_inside] + 1).tolist(), len(self.content)]
        pieces = zip([0, *ends], ends)
        return [
            self.line_at(start) for start, end in pieces if self.content[start:end].strip(b"\r\n")
        ]

    def header(self) -> bytes:
        """Return the first record that is no blank line; nothing where there is none."""
        ends = [*(self.breaks[~self.is_inside] + 1).tolist(), len(self.content)]
        pieces = (self.content[start:end] for start, end in zip([0, *ends], ends))
        return next((piece for piece in pieces if piece.strip(b"\r\n")), b"")

    def check(self, most_lines: int) -> None:
        """Refuse a record that is too long, and a quote that was not closed where it should have
        been."""
        if len(self.content) - self.whole > MOST_BYTES:
            said = f"the record that begins here takes more than {MOST_BYTES // 2**20} MiB."
            raise self._stop(
                self.line_at(self.whole),
                f"{said} Is a quote missing? Parquet files have no such limit.",
            )
        if not self.is_inside.any():
            return

        # What stands behind the closing quote tells whether it was meant to close, or to open
        # another field.
        lines = self.line + np.searchsorted(self.breaks, self.quoted)  # (fields, 2)
        for field in np.flatnonzero(lines[:, 0] != lines[:, 1]).tolist():
            end = self.quoted[field, 1]
            if self.content[end : end + 1] not in FIELD_ENDS:
                said = (
                    f"a quote is opened here, and the next one, on line {lines[field, 1]}, has text"
                    " behind it."
                )
                said = f"{said} Is a quote missing? Within quotes a quote is written twice."
                raise self._stop(lines[field, 0], said)

        # The breaks outside of quotes end a record each; the last record may be cut off.
        ends = np.flatnonzero(np.append(~self.is_inside, True))
        lengths = np.diff(ends, prepend=-1)  # (records,) in lines
        longest = int(np.argmax(lengths > most_lines))
        if lengths[longest] > most_lines:
            said = (
                f"the record that begins here takes more than {plural(most_lines, 'line')}. Is a"
                " quote missing?"
            )
            said = f"{said} If its text is meant to be so long, pass a larger --record-lines."
            raise self._stop(self.line + int(ends[longest] - lengths[longest]) + 1, said)

    def check_closed(self) -> None:
        """Refuse a quote that is still open at the end."""
        for start, end in self.quoted[-1:].tolist():
            if self.content.count(b'"', start, end) % 2:
                raise self._stop(self.line_at(start), "a quote is opened here and never closed.")

    def _stop(self, line: int, said: str) -> Stop:
        return Stop(f"{self.file}, line {line}: {said}", INPUT)


def records_of(file: Path, block: int, most_lines: int) -> Iterator[Records]:
    """Yield the records of a file, about `block` bytes at a time; a Stop names the line where there
    is none."""
    line = 1
    rest = b""
    with pa.input_stream(str(file)) as stream:
        while read := stream.read(block):
            content = rest + read
            if line == 1:
                content = content.removeprefix(MARK)
            found = Records(file, line, content, is_end=False)
            found.check(most_lines)
            if found.whole:
                yield Records(file, line, content[: found.whole])
            line = found.line_at(found.whole)
            rest = content[found.whole :]

    # The last record of a file may do without a line break, but not within quotes.
    if rest:
        last = Records(file, line, rest)
        last.check_closed()
        last.check(most_lines)
        yield last


def count_lines(record: str) -> int:
    """Return how many lines a record takes."""
    return 1 + len(LINE_BREAK.findall(record.rstrip("\r\n")))
