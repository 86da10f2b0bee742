"""A file of named arrays, mapped into memory when they are first used."""

from __future__ import annotations

import mmap
import struct
import zlib
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from tamis import durable
from tamis.errors import StoreFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT: Final = 1
_MAGIC: Final = b"TamisArr"
_HEAD: Final = struct.Struct("<8sIIII")  # magic, format, checksums of header and body, size
_ALIGNMENT: Final = 64
_HINT: Final = "restore the archive from a backup, then call renew_epoch()"


def write_arrays(path: Path, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write or replace a file with some arrays of one dimension."""
    body: list[Any] = []
    places, at, checksum = {}, 0, 0
    for name, array in arrays.items():
        places[name] = (array.dtype.str, len(array), at)
        data = np.ascontiguousarray(array).tobytes()
        data += bytes(-len(data) % _ALIGNMENT)
        checksum = zlib.crc32(data, checksum)
        body.append(data)
        at += len(data)
    header = orjson.dumps({"facts": facts, "arrays": places, "n_bytes": at})
    header += b" " * (-(_HEAD.size + len(header)) % _ALIGNMENT)
    head = _HEAD.pack(_MAGIC, FORMAT, zlib.crc32(header), checksum, len(header))
    durable.replace_file(path, [head, header, *body])


class ArrayFile:
    """A file of arrays. Opening it reads and checks its header; the arrays are checked once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size or not head.startswith(_MAGIC):
                raise StoreFormatError(f"{path} is not a file of an archive", hint=_HINT)
            _, version, header_checksum, self._checksum, length = _HEAD.unpack(head)
            if version != FORMAT:
                raise StoreFormatError(
                    f"{path} has format {version}; this program reads format {FORMAT}",
                    hint="use the program that wrote it",
                )
            header = file.read(length)
        if zlib.crc32(header) != header_checksum:
            raise self._damaged()
        self._body_at = _HEAD.size + length
        found = orjson.loads(header)
        self.facts: dict[str, Any] = found["facts"]
        self._places: dict[str, tuple[str, int, int]] = found["arrays"]
        self.n_bytes: int = self._body_at + found["n_bytes"]

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays, in mapped memory; raises FileNotFoundError if the file was removed."""
        with self.path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        view = memoryview(data)
        is_whole = len(data) == self.n_bytes
        if not is_whole or zlib.crc32(view[self._body_at :]) != self._checksum:
            raise self._damaged()
        return {
            name: np.frombuffer(data, dtype, length, self._body_at + at)
            for name, (dtype, length, at) in self._places.items()
        }

    def _damaged(self) -> StoreFormatError:
        return StoreFormatError(f"{self.path} is damaged", hint=_HINT)
