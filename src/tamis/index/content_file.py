"""The content of an index: one file of named sections, each with its place and checksum.

One file instead of many needs one descriptor and one mapping.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
import stat
import zlib
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar

import numpy as np
import pyarrow as pa

from tamis.durable import replace_file
from tamis.errors import IndexFormatError
from tamis.index.signing import digest_content
from tamis.kernels.arrays import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

REBUILD: Final = "rebuild the index, or restore it from a copy"
_ALIGNMENT: Final = 64  # bytes: a cache line
CONTENT_NAME: Final = re.compile(r"content-[0-9a-f]{16}\.bin")
Group = TypeVar("Group", bound=tuple[Any, ...])  # a NamedTuple of arrays


class Section(NamedTuple):
    """One section to be written to the file."""

    name: str
    content: Any  # a bytes-like object
    described: dict[str, Any]  # its manifest entry, in addition to position and checksum


class MissingContentError(IndexFormatError):
    """The content that the manifest names does not exist."""


def array_section(name: str, array: np.ndarray) -> Section:
    """An array as a section."""
    described = {"dtype": array.dtype.str, "shape": list(array.shape)}
    return Section(name, np.ascontiguousarray(array).reshape(-1).data, described)


def table_section(name: str, table: pa.Table, compression: str | None = None) -> Section:
    """A table as a section, in Arrow's file format."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())
    return Section(name, sink.getvalue(), {})


# ── writing ─────────────────────────────────────────────────────────────────────────────────


def write_content(
    directory: Path, sections: Iterable[Section], *, is_signed: bool = False
) -> dict[str, Any]:
    """Write the sections to a file named after its contents; returns its manifest entry."""
    described: dict[str, dict[str, Any]] = {}
    chunks: list[Any] = []
    offset = 0
    for section in sections:
        content = memoryview(section.content).cast("B")
        padding = bytes(-content.nbytes % _ALIGNMENT)
        described[section.name] = section.described | {
            "offset": offset,
            "bytes": content.nbytes,
            # Including the padding: every bit of the file is covered by a checksum.
            "crc32": zlib.crc32(padding, zlib.crc32(content)),
        }
        chunks += (content, padding)
        offset += content.nbytes + len(padding)
    digest = hashlib.blake2b(json.dumps(described).encode(), digest_size=8).hexdigest()
    name = f"content-{digest}.bin"
    replace_file(directory / name, chunks)
    entry: dict[str, Any] = {"file": name, "bytes": offset, "parts": described}
    return entry | ({"sha256": digest_content(chunks)} if is_signed else {})


def remove_content(directory: Path, *, except_for: str) -> None:
    """Remove all contents but one, as far as possible, and no file of another name."""
    with suppress(OSError):
        for path in directory.iterdir():
            if CONTENT_NAME.fullmatch(path.name) and path.name != except_for:
                path.unlink()


# ── reading ─────────────────────────────────────────────────────────────────────────────────


class Content:
    """The content of an index, mapped or read, with its sections by name."""

    def __init__(self, directory: Path, entry: dict[str, Any], *, is_mapped: bool = True) -> None:
        """`is_mapped=False` reads the file, so that a later truncation cannot harm the reader."""
        name = entry["file"]
        if not isinstance(name, str) or not CONTENT_NAME.fullmatch(name):
            raise IndexFormatError(
                f"{directory}: {name!r} is not a valid name of a content file", hint=REBUILD
            )
        self._path = directory / name
        self._sections: dict[str, dict[str, Any]] = entry["parts"]
        try:
            # Opening must not block if the path is a pipe.
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    self._refuse("is not a file")
                if status.st_size != entry["bytes"]:
                    self._refuse(f"has {status.st_size} bytes instead of {entry['bytes']}")
                self._data: Any = (
                    mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) if is_mapped else file.read()
                )
        except FileNotFoundError:
            raise MissingContentError(f"{self._path} is missing", hint=REBUILD) from None
        except (OSError, ValueError) as error:
            self._refuse(f"cannot be read: {error}")
        self._check_places(len(self._data))

    def _check_places(self, n_bytes: int) -> None:
        """Raise an error unless the sections fill the file one after the other."""
        offset = 0
        for name, section in self._sections.items():
            size = section["bytes"]
            if section["offset"] != offset or not isinstance(size, int) or size < 0:
                self._refuse(f'is damaged: its part "{name}" is at a wrong position')
            offset += size + -size % _ALIGNMENT
        if offset != n_bytes:
            self._refuse(f"is damaged: its parts have {offset} bytes of {n_bytes}")

    def verify(self) -> None:
        """Raise an error if a checksum is wrong."""
        whole = memoryview(self._data)
        for name, section in self._sections.items():
            n_bytes = section["bytes"] + -section["bytes"] % _ALIGNMENT
            if (
                zlib.crc32(whole[section["offset"] : section["offset"] + n_bytes])
                != section["crc32"]
            ):
                self._refuse(f'is damaged: the checksum of its part "{name}" is wrong')

    def expect_digest(self, digest: Any) -> None:
        """Raise an error if the content is not the one that was signed."""
        if digest_content([memoryview(self._data)]) != digest:
            self._refuse("is not the one that was signed")

    def within(self, prefix: str) -> Content:
        """The sections whose names begin with a prefix, without it."""
        own = copy(self)
        own._sections = {
            name.removeprefix(prefix): section
            for name, section in self._sections.items()
            if name.startswith(prefix)
        }
        return own

    def array(self, name: str, kind: str) -> np.ndarray:
        """A section as an array of a kind of `kernels.arrays`."""
        section = self._sections[name]
        dtypes, n_dimensions = KINDS[kind]
        shape, dtype = section["shape"], section["dtype"]
        if dtype not in dtypes or len(shape) != n_dimensions or min(shape, default=0) < 0:
            self._refuse(f'is damaged: its part "{name}" is not an array of the kind {kind}')
        if math.prod(shape) * np.dtype(dtype).itemsize != section["bytes"]:
            self._refuse(f'is damaged: its part "{name}" does not have the size of its shape')
        flat = np.frombuffer(self._data, dtype, math.prod(shape), section["offset"])
        return flat.reshape(shape)

    def group(self, prefix: str, kind: type[Group]) -> Group:
        """Parts as the arrays of one record, whose annotations give their kinds."""
        # A NamedTuple wraps annotations that are strings.
        kinds = {
            name: annotation.__forward_arg__ for name, annotation in kind.__annotations__.items()
        }
        return kind(*(self.array(f"{prefix}.{name}", kinds[name]) for name in kinds))

    def buffer(self, name: str) -> pa.Buffer:
        """The bytes of a section."""
        section = self._sections[name]
        return pa.py_buffer(self._data).slice(section["offset"], section["bytes"])

    def table(self, name: str) -> pa.Table:
        """A section as a table. Arrow does not check offsets when it reads them: they are checked
        here.
        """
        table = pa.ipc.open_file(self.buffer(name)).read_all()
        table.validate(full=True)
        return table

    def _refuse(self, what: str) -> NoReturn:
        raise IndexFormatError(f"{self._path} {what}", hint=REBUILD)
