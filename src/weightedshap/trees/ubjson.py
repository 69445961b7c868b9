"""UBJSON as XGBoost writes it, decoded with limits on memory and on recursion."""

import struct
from typing import Any

import numpy as np

DEEPEST = 64  # values within values; a model of XGBoost has ten

# All numbers are big-endian, all counts are of the type L, and XGBoost reads a character as a
# number.
KINDS = {"i": "b", "U": "B", "I": "h", "l": "i", "L": "q", "d": "f", "D": "d", "C": "b"}
NUMBERS = {letter: struct.Struct(f">{kind}") for letter, kind in KINDS.items()}
DTYPES = {letter.encode(): np.dtype(f">{kind}") for letter, kind in KINDS.items()}
CONSTANTS = {"Z": None, "T": True, "F": False}
COUNT = struct.Struct(">cq")  # L, and the count
TYPED = struct.Struct(">ccccq")  # $, the type, #, L, and the count

CLAIMS = "it claims more values than it has bytes for."


def decode(content: bytes) -> Any:
    """Return the value that `content` holds; a ValueError says why it holds none."""
    decoder = _Decoder(content)
    try:
        value = decoder.value(DEEPEST)
    except (struct.error, IndexError) as error:
        raise ValueError("it is cut off.") from error
    if decoder.at != len(content):
        raise ValueError("it goes on behind its end.")
    return value


class _Decoder:
    """Bytes, and how far they are read."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def value(self, deeper: int) -> Any:
        """Return the next value, within which there may be so many more levels."""
        letter = chr(self.content[self.at])
        self.at += 1
        if letter == "[":
            return self.array(deeper)
        if letter == "S":
            return self.text()
        if letter == "{":
            return self.table(deeper)
        if letter in NUMBERS:
            (number,) = NUMBERS[letter].unpack_from(self.content, self.at)
            self.at += NUMBERS[letter].size
            return number
        if letter in CONSTANTS:
            return CONSTANTS[letter]
        raise ValueError(f"it holds a value of the unknown kind {letter!r}.")

    def table(self, deeper: int) -> dict[str, Any]:
        """Return names and values, each name once."""
        self.check_depth(deeper)
        table: dict[str, Any] = {}
        while self.content[self.at] != ord("}"):
            name = self.text()
            if name in table:
                raise ValueError(f"it says {name!r} twice.")
            table[name] = self.value(deeper - 1)
        self.at += 1
        return table

    def array(self, deeper: int) -> Any:
        """Return numbers of one type as an array of numpy, other values as a list."""
        if self.content[self.at] == ord("$"):
            return self.typed()

        self.check_depth(deeper)
        if self.content[self.at] == ord("#"):
            self.at += 1
            # Every value takes a byte at least, so that a list is never much longer than the file.
            return [self.value(deeper - 1) for _ in range(self.count())]

        values = []
        while self.content[self.at] != ord("]"):
            values.append(self.value(deeper - 1))
        self.at += 1
        return values

    def typed(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Return numbers of one type, as a view of the bytes."""
        _, kind, mark, letter, count = TYPED.unpack_from(self.content, self.at)
        dtype = DTYPES.get(kind)
        if dtype is None or mark != b"#" or letter != b"L":
            raise ValueError(f"it holds an array of the unknown kind {kind.decode('latin-1')!r}.")
        start = self.at + TYPED.size
        self.at = start + count * dtype.itemsize
        if count < 0 or self.at > len(self.content):
            raise ValueError(CLAIMS)
        return np.frombuffer(self.content, dtype, count, start)

    def text(self) -> str:
        """Return a text."""
        count = self.count()
        self.at += count
        return str(self.content[self.at - count : self.at], "utf-8")

    def count(self) -> int:
        """Return how many values or bytes follow."""
        letter, count = COUNT.unpack_from(self.content, self.at)
        self.at += COUNT.size
        if letter != b"L":
            raise ValueError("it counts in another type than 64-bit numbers.")
        if not 0 <= count <= len(self.content) - self.at:
            raise ValueError(CLAIMS)
        return int(count)

    def check_depth(self, deeper: int) -> None:
        """Check that there may be a further level."""
        if not deeper:
            raise ValueError(f"it is nested deeper than {DEEPEST} levels.")
