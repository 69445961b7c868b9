"""UBJSON written by hand, to make files that XGBoost would not write."""

import struct

import numpy as np

TYPES = {"i1": b"i", "u1": b"U", "i4": b"l", "i8": b"L", "f4": b"d"}  # of numpy's


def count(n):
    return b"L" + struct.pack(">q", n)


def encode(value):
    """The bytes of nested dicts, lists, arrays, text and numbers; lists of numbers as XGBoost
    writes plain arrays."""
    if value is None or isinstance(value, bool):
        return {None: b"Z", True: b"T", False: b"F"}[value]
    if isinstance(value, int):
        return b"L" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"d" + struct.pack(">f", value)
    if isinstance(value, str):
        return b"S" + count(len(value.encode())) + value.encode()
    if isinstance(value, np.ndarray):
        kind = value.dtype.str[1:]
        return b"[$" + TYPES[kind] + b"#" + count(len(value)) + value.astype(f">{kind}").tobytes()
    if isinstance(value, list):
        return b"[#" + count(len(value)) + b"".join(map(encode, value))
    pairs = (
        count(len(name.encode())) + name.encode() + encode(inner) for name, inner in value.items()
    )
    return b"{" + b"".join(pairs) + b"}"
