"""A decoder of UBJSON as XGBoost writes it, with limits on memory and on recursion.

`weightedshap.jobs.model_files` decodes a model file with `decode`, and checks the result with
`weightedshap.trees.documents`, before XGBoost opens it.
"""

import struct
from typing import Any

import numpy as np

DEEPEST = 64  # levels of nesting; a model of XGBoost has ten

# The types of numbers, by the letter that precedes them. All are big-endian, and all counts are of
# the type L. XGBoost reads a character, C, as a number.
KINDS = {"i": "b", "U": "B", "I": "h", "l": "i", "L": "q", "d": "f", "D": "d", "C": "b"}
NUMBERS = {letter: struct.Struct(f">{kind}") for letter, kind in KINDS.items()}
DTYPES = {letter.encode(): np.dtype(f">{kind}") for letter, kind in KINDS.items()}
CONSTANTS = {"Z": None, "T": True, "F": False}
COUNT = struct.Struct(">cq")  # L, and the count
TYPED_HEAD = struct.Struct(">ccccq")  # $, the type, #, L, and the count

TOO_LONG = "it claims more values than it has bytes for."


def decode(content: bytes) -> Any:
    """Decode UBJSON; raise a ValueError if `content` is not UBJSON as XGBoost writes it."""
    decoder = _Decoder(content)
    try:
        value = decoder.read_value(DEEPEST)
    except (struct.error, IndexError) as error:
        raise ValueError("it is cut off.") from error
    if decoder.at != len(content):
        extra = len(content) - decoder.at
        raise ValueError(f"it has {extra:,} bytes after the end of its value.")
    return value


class _Decoder:
    """A decoder of UBJSON: each method reads the next item and moves the position `at` past it."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def read_value(self, levels_left: int) -> Any:
        """Read the next value, which may be nested up to `levels_left` levels deep."""
        letter = chr(self.content[self.at])
        self.at += 1
        if letter == "[":
            return self.read_array(levels_left)
        if letter == "S":
            return self.read_text()
        if letter == "{":
            return self.read_table(levels_left)
        if letter in NUMBERS:
            (number,) = NUMBERS[letter].unpack_from(self.content, self.at)
            self.at += NUMBERS[letter].size
            return number
        if letter in CONSTANTS:
            return CONSTANTS[letter]
        raise ValueError(f"it holds a value of the unknown type {letter!r}.")

    def read_table(self, levels_left: int) -> dict[str, Any]:
        """Read a dict of values by name; raise a ValueError if a name occurs twice."""
        self.check_depth(levels_left)
        table: dict[str, Any] = {}
        while self.content[self.at] != ord("}"):
            name = self.read_text()
            if name in table:
                raise ValueError(f"it holds the name {name!r} twice in one table.")
            table[name] = self.read_value(levels_left - 1)
        self.at += 1
        return table

    def read_array(self, levels_left: int) -> Any:
        """Read an array: numbers of one type as a numpy array, other values as a list."""
        if self.content[self.at] == ord("$"):
            return self.read_typed_array()

        self.check_depth(levels_left)
        if self.content[self.at] == ord("#"):
            self.at += 1
            # Every value takes at least one byte, so a list is never much longer than the file.
            return [self.read_value(levels_left - 1) for _ in range(self.read_count())]

        values = []
        while self.content[self.at] != ord("]"):
            values.append(self.read_value(levels_left - 1))
        self.at += 1
        return values

    def read_typed_array(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Read an array of numbers of one type, as a view of the bytes."""
        _, kind, mark, letter, count = TYPED_HEAD.unpack_from(self.content, self.at)
        dtype = DTYPES.get(kind)
        if dtype is None:
            raise ValueError(f"it holds an array of the unknown type {kind.decode('latin-1')!r}.")
        if mark != b"#" or letter != b"L":
            raise ValueError("it holds an array of numbers without '#L', the mark of its length.")
        start = self.at + TYPED_HEAD.size
        self.at = start + count * dtype.itemsize
        if count < 0 or self.at > len(self.content):
            raise ValueError(TOO_LONG)
        return np.frombuffer(self.content, dtype, count, start)

    def read_text(self) -> str:
        """Read a string, which is stored as its length in bytes and then its text."""
        count = self.read_count()
        self.at += count
        return str(self.content[self.at - count : self.at], "utf-8")

    def read_count(self) -> int:
        """Read a count of values or bytes, which must not exceed the number of bytes left."""
        letter, count = COUNT.unpack_from(self.content, self.at)
        self.at += COUNT.size
        if letter != b"L":
            raise ValueError(
                f"its counts must be 64-bit numbers, of the type 'L'; one is {chr(letter[0])!r}."
            )
        if not 0 <= count <= len(self.content) - self.at:
            raise ValueError(TOO_LONG)
        return int(count)

    def check_depth(self, levels_left: int) -> None:
        """Raise a ValueError if no further level of nesting is allowed."""
        if not levels_left:
            raise ValueError(f"it is nested deeper than {DEEPEST} levels.")
