"""Write and read one file of arrays, data frames and JSON, without pickle.

A file is a zip that `numpy.load` can open too: one ``.npy`` member for each array, and
``explanation.json``, which describes how the arrays belong together.

Files may come from strangers, so no file can ask for more memory than a small multiple of its size:
members are not compressed, each array is used once, and the size that a header declares is compared
with the size of the member before anything is allocated. The JSON contains the SHA-256 of every
array, and the comment of the zip contains the SHA-256 of the JSON, so that a changed file is
rejected.
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
from weightedshap.files import dataframes
from weightedshap.files.atomic import atomic_write
from weightedshap.files.dataframes import SIMPLE_TYPES, Json
from weightedshap.inputs.containers import Array, is_frame

HEAD = "explanation.json"
ARRAY_KINDS = "biufcUMm"  # kinds of numpy dtypes: numbers, text and dates
MAX_MEMBERS = 100_000  # enough for a data frame of as many columns
# Bytes read at once: memory grows with the actual content, not with the size a header claims.
CHUNK_BYTES = 2**20

Arrays = dict[str, Array]


class UnreadableFile(ValueError):
    """Raised when a file is damaged, malicious, or of another kind or version."""


def write(
    path: str | os.PathLike[str], kind: str, version: int, content: Mapping[str, Any]
) -> None:
    """Write nested dicts, lists, tuples, numbers, text, arrays and data frames to one file.

    `kind` and `version` are stored with the content, and `read` checks them. The same content gives
    the same bytes.
    """
    arrays: Arrays = {}
    head = {
        "format": f"weightedshap {kind}",
        "version": version,
        "content": _pack(dict(content), "", arrays),
    }
    with (
        atomic_write(path) as unfinished,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive,
    ):
        manifest = {}
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                writer = _HashingWriter(member)
                np.lib.format.write_array(writer, array, allow_pickle=False)
            manifest[f"{name}.npy"] = writer.digest.hexdigest()
        text = json.dumps({**head, "manifest": manifest}, allow_nan=False).encode()
        archive.writestr(zipfile.ZipInfo(HEAD), text)
        archive.comment = hashlib.sha256(text).hexdigest().encode()


class _HashingWriter:
    """A binary file for writing that also computes the SHA-256 of everything written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.digest = hashlib.sha256()

    def write(self, content: bytes) -> int:
        """Write bytes to the file and add them to the hash; return how many were written."""
        self.digest.update(content)
        return self.file.write(content)


def read(path: str | os.PathLike[str], kind: str, version: int) -> dict[str, Any]:
    """Read back the content passed to `write`; raise an `UnreadableFile` if that fails.

    The error says why. A file of another `kind` or `version` is rejected.
    """
    with open_regular(as_path(path)) as file, report_damage(path):
        size = file.seek(0, os.SEEK_END)
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise UnreadableFile("it is not a zip file, or it is truncated.") from error
        with archive:
            members = _list_members(archive, size)
            if HEAD not in members:
                raise UnreadableFile(f"it holds no {HEAD}; it was not written by `save`.")
            text = _read_bytes(archive, members.pop(HEAD))
            head = json.loads(text)
            _check_head(head, kind, version)
            if hashlib.sha256(text).hexdigest().encode() != archive.comment:
                raise UnreadableFile(f"its {HEAD} was changed after it was written.")
            arrays = {
                name.removesuffix(".npy"): _read_array(archive, info, head["manifest"])
                for name, info in members.items()
            }
        content = _unpack(head["content"], arrays)
        if not isinstance(content, dict):
            raise UnreadableFile("its content is not a table of fields.")
        return content


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read its bytes; reject a pipe or a device, which might never end."""
    # Without O_NONBLOCK opening a pipe waits for a writer. Windows lacks it, and pipes in folders.
    non_blocking = getattr(os, "O_NONBLOCK", 0)
    opened = open(  # noqa: SIM115
        path, "rb", opener=lambda name, flags: os.open(name, flags | non_blocking)
    )
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise UnreadableFile(
            f"{os.fspath(path)!r} cannot be loaded: it is no file but a pipe or a device."
        )
    return opened


@contextmanager
def report_damage(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn any error raised in the `with` block, which reads `path`, into an `UnreadableFile`.

    An ImportError is passed on.
    """
    try:
        yield
    except ImportError:
        # The file may be right, but an optional package that it needs is not installed.
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, UnreadableFile) else f"it is damaged ({error!r})."
        raise UnreadableFile(f"{os.fspath(path)!r} cannot be loaded: {reason}") from error


def inconsistent_fields_error(path: str | os.PathLike[str], names: Sequence[str]) -> UnreadableFile:
    """Build the error to raise for a file whose fields `names` contradict each other."""
    return UnreadableFile(
        f"{os.fspath(path)!r} cannot be loaded: {', '.join(names)} do not fit together."
    )


def _list_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members of a zip file by name; reject a zip that `write` cannot have written.

    `size` is the size of the zip file in bytes.
    """
    infos = archive.infolist()
    members = {info.filename: info for info in infos}
    if len(infos) > MAX_MEMBERS or len(members) < len(infos):
        raise UnreadableFile("it holds too many members, or two of one name.")
    for name, info in members.items():
        if name != HEAD and not _is_plain(name):
            raise UnreadableFile(f"it holds a member that does not belong there: {name!r}.")
        is_encrypted = info.flag_bits & 0x1
        is_stored = info.compress_type == zipfile.ZIP_STORED
        if not is_stored or is_encrypted or info.compress_size != info.file_size:
            raise UnreadableFile(f"its member {name!r} is compressed or encrypted.")
    # Members that share their bytes would unfold a small file into a large one.
    if sum(info.file_size for info in infos) > size:
        raise UnreadableFile("its members claim to be larger than the file.")
    return members


def _is_plain(name: str) -> bool:
    """Return whether `name` consists of ASCII letters, digits, _ and -, and the suffix ``.npy``."""
    stem = name.removesuffix(".npy")
    return stem != name and stem.replace("_", "").replace("-", "").isalnum() and stem.isascii()


def _read_bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytearray:
    """Return the bytes of a zip member, after verifying its checksum and its length."""
    content = bytearray()
    with archive.open(info) as member:
        while chunk := member.read(CHUNK_BYTES):
            content += chunk
    if len(content) != info.file_size:
        raise UnreadableFile(f"its member {info.filename!r} is truncated.")
    return content


def _check_head(head: Json, kind: str, version: int) -> None:
    """Raise an error unless the file header `head` states this kind and this version."""
    is_object = isinstance(head, dict)
    file_format = head.get("format") if is_object else None
    file_version = head.get("version") if is_object else None
    if file_format != f"weightedshap {kind}":
        raise UnreadableFile(f"it holds {file_format!r}, not 'weightedshap {kind}'.")
    if not isinstance(file_version, int) or isinstance(file_version, bool) or file_version < 1:
        raise UnreadableFile(f"its version {file_version!r} is not a number.")
    if file_version != version:
        advice = "Save it again with this one."
        if file_version > version:
            advice = "Install a newer weightedshap."
        raise UnreadableFile(
            f"it was written in format version {file_version}, and this weightedshap reads version"
            f" {version}. {advice}"
        )


def _read_array(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, manifest: Mapping[str, str]
) -> Array:
    """Return the array in a zip member, after checking its SHA-256 and its npy header.

    `manifest` maps the name of each member to its SHA-256.
    """
    name = info.filename
    content = _read_bytes(archive, info)
    if manifest.get(name) != hashlib.sha256(content).hexdigest():
        raise UnreadableFile(f"its array {name!r} was changed after it was written.")

    stream = io.BytesIO(content)
    npy_version = np.lib.format.read_magic(stream)
    header_readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if npy_version not in header_readers:
        raise UnreadableFile(f"its array {name!r} has an unknown npy version {npy_version}.")
    shape, is_fortran, dtype = header_readers[npy_version](stream)
    start = stream.tell()

    if dtype.hasobject or dtype.kind not in ARRAY_KINDS or dtype.itemsize == 0:
        raise UnreadableFile(
            f"its array {name!r} holds {dtype}; only numbers, text and dates are read."
        )
    n_bytes = math.prod(shape) * dtype.itemsize
    if any(length < 0 for length in shape) or n_bytes != len(content) - start:
        raise UnreadableFile(
            f"its array {name!r} declares shape {shape} of {dtype}, which is not what it holds."
        )
    return np.ndarray(shape, dtype, content, start, order="F" if is_fortran else "C")


def _pack(value: object, name: str, arrays: Arrays) -> Json:
    """Convert `value` to JSON; add its arrays to the dict `arrays`, and refer to them by name.

    A type that JSON lacks becomes an object with a single key, its tag, such as ``{"tuple": […]}``.
    The names of arrays begin with `name`.
    """
    if isinstance(value, SIMPLE_TYPES):
        return dataframes.pack_simple(value)
    if isinstance(value, np.ndarray):
        return _put_array(value, name, arrays)
    if is_frame(value):
        packed = dataframes.pack(
            value, lambda array, part: _put_array(array, f"{name}_{part}", arrays)
        )
        return {"frame": packed}
    if isinstance(value, Mapping):
        pairs = [
            _pack_item(key, item, name, place, arrays)
            for place, (key, item) in enumerate(value.items())
        ]
        return {"map": pairs}
    if isinstance(value, (list, tuple)):
        items = [_pack(item, f"{name}-{place}", arrays) for place, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    return str(value)


def _pack_item(key: object, item: object, name: str, place: int, arrays: Arrays) -> list[Json]:
    """Convert one item of a mapping to a JSON pair [key, item]; add its arrays to `arrays`.

    The arrays are named after the key if it is plain text, else after `place`, the item's position.
    """
    is_plain = isinstance(key, str) and _is_plain(f"{key}.npy")
    label = key if is_plain else str(place)
    return [
        _pack(key, f"{name}-key{place}", arrays),
        _pack(item, f"{name}-{label}" if name else str(label), arrays),
    ]


def _put_array(array: Array, name: str, arrays: Arrays) -> dict[str, str]:
    """Add an array to `arrays` under an unused name; return the JSON that refers to it."""
    if array.dtype.kind not in ARRAY_KINDS:
        raise TypeError(
            f"An array of {array.dtype} ({name}) cannot be saved: only numbers, text and dates can."
        )
    if name in arrays:
        return _put_array(array, f"{name}-", arrays)
    arrays[name] = array
    return {"array": name}


def _unpack(value: Json, arrays: Arrays) -> Any:
    """Convert the JSON `value`, which `_pack` returned, back to the original value.

    Each array is taken out of `arrays`, and so used only once: a small file cannot unfold into a
    large frame.
    """
    if isinstance(value, list):
        return [_unpack(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, inner),) = value.items()
    if tag == "float":
        return float(inner)
    if tag == "tuple":
        return tuple(_unpack(item, arrays) for item in inner)
    if tag == "map":
        return {_unpack(key, arrays): _unpack(item, arrays) for key, item in inner}
    if tag == "array":
        return arrays.pop(inner)
    if tag == "frame":
        return dataframes.unpack(inner, lambda reference: arrays.pop(reference["array"]))
    raise UnreadableFile(f"it holds the unknown tag {tag!r}.")
