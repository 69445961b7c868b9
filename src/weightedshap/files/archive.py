"""Arrays, frames and JSON in one file, without pickle.

A file is a zip that `numpy.load` can open too: one ``.npy`` member for each array and
``explanation.json``, which says what they are. Members are not compressed, each array is used once,
and what a header declares is held against the bytes that are there before anything is allocated: no
file can ask for more memory than a small multiple of its size. The JSON holds the SHA-256 of every
array, and the zip's comment that of the JSON, so that what was changed later is refused.
"""

import hashlib
import io
import json
import math
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from weightedshap._checks import as_path
from weightedshap.files import dataframes as frames
from weightedshap.files.atomic import replaced
from weightedshap.files.dataframes import SIMPLE, Json
from weightedshap.inputs.containers import Array, is_frame

HEAD = "explanation.json"
KINDS = "biufcUMm"
MOST_MEMBERS = 100_000  # a table of so many columns would still fit
CHUNK = 2**20  # bytes read at once: what a header claims is allocated as it is found

Arrays = dict[str, Array]


class UnreadableFile(ValueError):
    """A file that is damaged, hostile, or of another kind or version."""


def write(
    path: str | os.PathLike[str], kind: str, version: int, content: Mapping[str, Any]
) -> None:
    """Write nested dicts, lists, tuples, numbers, text, arrays and frames to one file; the same
    give the same bytes."""
    arrays: Arrays = {}
    head = {
        "format": f"weightedshap {kind}",
        "version": version,
        "content": _packed(dict(content), "", arrays),
    }
    with (
        replaced(path) as unfinished,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive,
    ):
        manifest = {}
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                hashed = _Hashed(member)
                np.lib.format.write_array(hashed, array, allow_pickle=False)
            manifest[f"{name}.npy"] = hashed.digest.hexdigest()
        text = json.dumps({**head, "manifest": manifest}, allow_nan=False).encode()
        archive.writestr(zipfile.ZipInfo(HEAD), text)
        archive.comment = hashlib.sha256(text).hexdigest().encode()


class _Hashed:
    """A file to write to, and the hash of what was written."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def write(self, content: bytes) -> int:
        self.digest.update(content)
        return self.file.write(content)


def read(path: str | os.PathLike[str], kind: str, version: int) -> dict[str, Any]:
    """What `write` was given, from a file of this version or an older one; an `UnreadableFile` says
    what is wrong."""
    with open_regular(as_path(path)) as file, damage(path):
        size = file.seek(0, os.SEEK_END)
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise UnreadableFile("it is not a zip file, or it is truncated.") from error
        with archive:
            members = _members(archive, size)
            if HEAD not in members:
                raise UnreadableFile(f"it holds no {HEAD}; it was not written by `save`.")
            text = _bytes(archive, members.pop(HEAD))
            head = json.loads(text)
            _check_head(head, kind, version)
            manifest = head.get("manifest")  # early versions have none
            if (
                manifest is not None
                and hashlib.sha256(text).hexdigest().encode() != archive.comment
            ):
                raise UnreadableFile(f"its {HEAD} was changed after it was written.")
            arrays = {
                n.removesuffix(".npy"): _array(archive, info, manifest)
                for n, info in members.items()
            }
        unpacked = _unpacked(head["content"], arrays)
        if not isinstance(unpacked, dict):
            raise UnreadableFile("its content is not a table of fields.")
        return unpacked


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read its bytes; an `UnreadableFile` for a pipe or a device, which would be
    waited for."""
    # There is none on Windows, and no pipe in a folder.
    without_waiting = getattr(os, "O_NONBLOCK", 0)
    opened = open(  # noqa: SIM115
        path, "rb", opener=lambda name, flags: os.open(name, flags | without_waiting)
    )
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise UnreadableFile(
            f"{os.fspath(path)!r} cannot be loaded: it is no file but a pipe or a device."
        )
    return opened


@contextmanager
def damage(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of the file whatever goes wrong while it is read, or its content is made sense of."""
    try:
        yield
    except ImportError:  # the file may be right, but what it needs is not installed
        raise
    except Exception as error:
        why = str(error) if isinstance(error, UnreadableFile) else f"it is damaged ({error!r})."
        raise UnreadableFile(f"{os.fspath(path)!r} cannot be loaded: {why}") from error


def unfitting(path: str | os.PathLike[str], names: Sequence[str]) -> UnreadableFile:
    """The error for a file whose fields contradict each other."""
    return UnreadableFile(
        f"{os.fspath(path)!r} cannot be loaded: {', '.join(names)} do not fit together."
    )


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The members by name: plainly named, stored as they are, together no larger than the file."""
    infos = archive.infolist()
    members = {info.filename: info for info in infos}
    if len(infos) > MOST_MEMBERS or len(members) < len(infos):
        raise UnreadableFile("it holds too many members, or two of one name.")
    for name, info in members.items():
        if name != HEAD and not _is_plain(name):
            raise UnreadableFile(f"it holds a member that does not belong there: {name!r}.")
        if (
            info.compress_type != zipfile.ZIP_STORED
            or info.flag_bits & 0x1
            or info.compress_size != info.file_size
        ):
            raise UnreadableFile(f"its member {name!r} is compressed or encrypted.")
    if sum(info.file_size for info in infos) > size:
        raise UnreadableFile("its members claim to be larger than the file.")
    return members


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


def _check_head(head: Json, kind: str, version: int) -> None:
    found, own = (
        (head.get("format"), head.get("version")) if isinstance(head, dict) else (None, None)
    )
    if found != f"weightedshap {kind}":
        raise UnreadableFile(f"it holds {found!r}, not 'weightedshap {kind}'.")
    if not isinstance(own, int) or isinstance(own, bool) or own < 1:
        raise UnreadableFile(f"its version {own!r} is not a number.")
    if own > version:
        newer = (
            f"it was written in format version {own}, and this weightedshap reads up to {version}."
        )
        raise UnreadableFile(f"{newer} Install a newer weightedshap.")


def _array(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, manifest: Mapping[str, str] | None
) -> Array:
    """The array of a member that is what the manifest says; its header must describe exactly the
    bytes that follow."""
    name = info.filename
    content = _bytes(archive, info)
    if manifest is not None and manifest.get(name) != hashlib.sha256(content).hexdigest():
        raise UnreadableFile(f"its array {name!r} was changed after it was written.")
    stream = io.BytesIO(content)
    magic = np.lib.format.read_magic(stream)
    reader = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(magic)
    if reader is None:
        raise UnreadableFile(f"its array {name!r} has an unknown npy version {magic}.")
    shape, fortran, dtype = reader(stream)
    start = stream.tell()
    if dtype.hasobject or dtype.kind not in KINDS or dtype.itemsize == 0:
        raise UnreadableFile(
            f"its array {name!r} holds {dtype}; only numbers, text and dates are read."
        )
    if (
        any(length < 0 for length in shape)
        or math.prod(shape) * dtype.itemsize != len(content) - start
    ):
        raise UnreadableFile(
            f"its array {name!r} declares shape {shape} of {dtype}, which is not what it holds."
        )
    return np.ndarray(shape, dtype, content, start, order="F" if fortran else "C")


def _packed(value: object, name: str, arrays: Arrays) -> Json:
    """`value` as JSON; arrays are put aside and stand there by name. What JSON lacks is tagged."""
    if isinstance(value, SIMPLE):
        return frames.pack_simple(value)
    if isinstance(value, np.ndarray):
        return _put(value, name, arrays)
    if is_frame(value):
        return {
            "frame": frames.pack(value, lambda array, part: _put(array, f"{name}_{part}", arrays))
        }
    if isinstance(value, Mapping):
        return {
            "map": [
                _packed_item(*item, name, place, arrays) for place, item in enumerate(value.items())
            ]
        }
    if isinstance(value, (list, tuple)):
        items = [_packed(item, f"{name}-{place}", arrays) for place, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    return str(value)


def _packed_item(key: object, item: object, name: str, place: int, arrays: Arrays) -> list[Json]:
    plain = key if isinstance(key, str) and _is_plain(f"{key}.npy") else str(place)
    return [
        _packed(key, f"{name}-key{place}", arrays),
        _packed(item, f"{name}-{plain}" if name else plain, arrays),
    ]


def _put(array: Array, name: str, arrays: Arrays) -> dict[str, str]:
    if array.dtype.kind not in KINDS:
        raise TypeError(
            f"An array of {array.dtype} ({name}) cannot be saved: only numbers, text and dates can."
        )
    if name in arrays:
        return _put(array, f"{name}-", arrays)
    arrays[name] = array
    return {"array": name}


def _unpacked(value: Json, arrays: Arrays) -> Any:
    """The reverse of `_packed`. Each array is used once, so that a small file cannot unfold into a
    large frame."""
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
