"""Arrays, frames and JSON in one file, without pickle.

A file is a zip that `numpy.load` can open too: one ``.npy`` member for each array and a member ``explanation.json``
that says what they are. Nothing in it can run code. Members are not compressed and each array is used once, so no file
can ask for more memory than a small multiple of its size: what a header declares is held against the bytes that are
there before anything is allocated.
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from weightedshap.files import frames
from weightedshap.files.atomic import replaced
from weightedshap.inputs import is_frame

__all__ = ["UnreadableFile", "read", "write"]

HEAD = "explanation.json"
KINDS = "biufcUMm"
MOST_MEMBERS = 100_000
CHUNK = 2**20

Arrays = dict[str, Any]


class UnreadableFile(ValueError):
    """A file that is damaged, hostile, or of another kind or version."""


def write(path: str | os.PathLike[str], kind: str, version: int, content: Mapping[str, Any]) -> None:
    """Write `content` (nested dicts, lists, tuples, numbers, text, arrays, frames) to one file.

    The same content gives the same bytes. A file that is there is replaced only when the new one is complete.
    """
    arrays: Arrays = {}
    head = {"format": f"weightedshap {kind}", "version": version, "content": _packed(dict(content), "", arrays)}
    with replaced(path) as unfinished, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_member(HEAD), json.dumps(head, allow_nan=False))
        for name, array in arrays.items():
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _member(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


def read(path: str | os.PathLike[str], kind: str, version: int) -> dict[str, Any]:
    """What `write` was given, from a file of this version or an older one; see `read_with_version`."""
    return read_with_version(path, kind, version)[1]


def read_with_version(path: str | os.PathLike[str], kind: str, version: int) -> tuple[int, dict[str, Any]]:
    """The version of a file, up to the given one, and what `write` was given.

    Raises
    ------
    UnreadableFile
        A ValueError that says what is wrong with the file.
    """
    with open(path, "rb") as file:
        try:
            return _read(file, kind, version)
        except UnreadableFile as error:
            raise UnreadableFile(f"{os.fspath(path)!r} cannot be loaded: {error}") from error
        except _DAMAGE as error:
            raise UnreadableFile(f"{os.fspath(path)!r} cannot be loaded: it is damaged ({error}).") from error


@contextmanager
def damage(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of the file whatever goes wrong while its content is made sense of."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(f"{os.fspath(path)!r} cannot be loaded: it is damaged ({error!r}).") from error


def unfitting(path: str | os.PathLike[str], names: Sequence[str]) -> UnreadableFile:
    """The error for a file whose fields contradict each other."""
    return UnreadableFile(f"{os.fspath(path)!r} cannot be loaded: {', '.join(names)} do not fit together.")


_DAMAGE = (
    *(zipfile.BadZipFile, struct.error, OSError, EOFError, RuntimeError, NotImplementedError),
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, SyntaxError, MemoryError),
)


def _read(file: IO[bytes], kind: str, version: int) -> tuple[int, dict[str, Any]]:
    size = file.seek(0, os.SEEK_END)
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise UnreadableFile("it is not a zip file, or it is truncated.") from error
    with archive:
        members = _members(archive, size)
        if HEAD not in members:
            raise UnreadableFile(f"it holds no {HEAD}; it was not written by `save`.")
        head = json.loads(bytes(_bytes(archive, members[HEAD])))
        _check_head(head, kind, version)
        arrays = {
            name.removesuffix(".npy"): _array(name, _bytes(archive, info))
            for name, info in members.items()
            if name != HEAD
        }
    unpacked = _unpacked(head["content"], arrays)
    if not isinstance(unpacked, dict):
        raise UnreadableFile("its content is not a table of fields.")
    return head["version"], unpacked


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The members by name: plainly named, stored as they are, together no larger than the file."""
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if len(infos) > MOST_MEMBERS or len(set(names)) < len(names):
        raise UnreadableFile("it holds too many members, or two of one name.")
    for info in infos:
        if info.filename != HEAD and not _is_plain(info.filename):
            raise UnreadableFile(f"it holds a member that does not belong there: {info.filename!r}.")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 0x1 or info.compress_size != info.file_size:
            raise UnreadableFile(f"its member {info.filename!r} is compressed or encrypted.")
    if sum(info.file_size for info in infos) > size:
        raise UnreadableFile("its members claim to be larger than the file.")
    return dict(zip(names, infos, strict=True))


def _is_plain(name: str) -> bool:
    stem = name.removesuffix(".npy")
    return stem != name and stem.replace("_", "").replace("-", "").isalnum() and stem.isascii()


def _bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytearray:
    """The bytes of a member; the zip's checksum is verified on the way."""
    content = bytearray()
    with archive.open(info) as member:
        while chunk := member.read(CHUNK):
            content += chunk
    if len(content) != info.file_size:
        raise UnreadableFile(f"its member {info.filename!r} is truncated.")
    return content


def _check_head(head: Any, kind: str, version: int) -> None:
    found = head.get("format") if isinstance(head, dict) else None
    if found != f"weightedshap {kind}":
        raise UnreadableFile(f"it holds {found!r}, not 'weightedshap {kind}'.")
    known = head.get("version")
    if not isinstance(known, int) or isinstance(known, bool) or known < 1:
        raise UnreadableFile(f"its version {known!r} is not a number.")
    if known > version:
        raise UnreadableFile(
            f"it was written in format version {known}, and this weightedshap reads up to {version}. "
            "Install a newer weightedshap."
        )


def _array(name: str, content: bytearray) -> Any:
    """One ``.npy`` member; its header must describe exactly the bytes that follow."""
    stream = io.BytesIO(content)
    magic = np.lib.format.read_magic(stream)
    reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(magic)
    if reader is None:
        raise UnreadableFile(f"its array {name!r} has an unknown npy version {magic}.")
    shape, fortran, dtype = reader(stream)
    start = stream.tell()
    if dtype.hasobject or dtype.kind not in KINDS or dtype.itemsize == 0:
        raise UnreadableFile(f"its array {name!r} holds {dtype}; only numbers, text and dates are read.")
    if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != len(content) - start:
        raise UnreadableFile(f"its array {name!r} declares shape {shape} of {dtype}, which is not what it holds.")
    flat = np.frombuffer(content, dtype=dtype, offset=start) if len(content) > start else np.empty(0, dtype=dtype)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _packed(value: Any, name: str, arrays: Arrays) -> Any:
    """`value` as JSON; arrays are put aside and stand there by name. What JSON lacks is tagged."""
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        return frames.pack_float(value)
    if isinstance(value, np.ndarray):
        return _put(value, name, arrays)
    if is_frame(value):
        return {"frame": frames.pack(value, lambda array, part: _put(array, f"{name}_{part}", arrays))}
    if isinstance(value, Mapping):
        return {"map": [_packed_item(*item, name, place, arrays) for place, item in enumerate(value.items())]}
    if isinstance(value, (list, tuple)):
        items = [_packed(item, f"{name}-{place}", arrays) for place, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    return str(value)


def _packed_item(key: Any, item: Any, name: str, place: int, arrays: Arrays) -> list[Any]:
    plain = key if isinstance(key, str) and _is_plain(f"{key}.npy") else str(place)
    return [_packed(key, f"{name}-key{place}", arrays), _packed(item, f"{name}-{plain}" if name else plain, arrays)]


def _put(array: Any, name: str, arrays: Arrays) -> Any:
    if array.dtype.kind not in KINDS:
        raise TypeError(f"An array of {array.dtype} ({name}) cannot be saved: only numbers, text and dates can.")
    if name in arrays:
        return _put(array, f"{name}-", arrays)
    arrays[name] = array
    return {"array": name}


def _unpacked(value: Any, arrays: Arrays) -> Any:
    """The reverse of `_packed`. Each array is used once, so that a small file cannot unfold into a large frame."""
    if isinstance(value, list):
        return [_unpacked(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, inner),) = value.items()
    if tag == "float":
        return float(inner)
    if tag == "tuple":
        return tuple(_unpacked(item, arrays) for item in inner)
    if tag == "map":
        return {_unpacked(key, arrays): _unpacked(item, arrays) for key, item in inner}
    if tag == "array":
        return arrays.pop(inner)
    if tag == "frame":
        return frames.unpack(inner, lambda reference: arrays.pop(reference["array"]))
    raise UnreadableFile(f"it holds the unknown tag {tag!r}.")
