"""Compressed files: recognised by their names and by their first bytes."""

from __future__ import annotations

import io
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from tamis.errors import InputError


class Codec(NamedTuple):
    """One compression format."""

    title: str
    ending: str  # of the names of its files
    openings: tuple[bytes, ...]  # the first bytes of its files
    unpack: str  # the command that unpacks a file
    arrow: str | None = None  # Arrow's codec that reads it; None: not supported

    @property
    def description(self) -> str:
        """The phrase of an error message."""
        return "is a ZIP archive" if self.ending == ".zip" else f"is compressed with {self.title}"


CODECS: Final = (
    Codec("gzip", ".gz", (b"\x1f\x8b",), "gzip -d", "gzip"),
    Codec("Zstandard", ".zst", (b"\x28\xb5\x2f\xfd",), "zstd -d", "zstd"),
    Codec("bzip2", ".bz2", tuple(b"BZh%d1AY&SY" % n for n in range(1, 10)), "bzip2 -d"),
    Codec("xz", ".xz", (b"\xfd7zXZ\0",), "xz -d"),
    Codec("LZ4", ".lz4", (b"\x04\x22\x4d\x18",), "lz4 -d"),
    Codec("ZIP", ".zip", (b"PK\x03\x04",), "unzip"),
)
BY_ENDING: Final = {codec.ending: codec for codec in CODECS}
READ_ENDINGS: Final = tuple(codec.ending for codec in CODECS if codec.arrow)


def codec_of_name(name: str) -> Codec | None:
    """The codec for a file's name; raises an `InputError` if it is not supported."""
    codec = BY_ENDING.get(PurePath(name).suffix.lower())
    if codec is not None and codec.arrow is None:
        read = " and ".join(READ_ENDINGS)
        raise InputError(
            f"{name} is compressed: files that end in {codec.ending} are not read; {read} are",
            hint=f"unpack it first: {codec.unpack} {name}",
        )
    return codec


def codec_of_head(head: bytes) -> Codec | None:
    """The codec for the first bytes of a file."""
    return next((codec for codec in CODECS if head.startswith(codec.openings)), None)


def strip_ending(name: str) -> str:
    """The name without the ending of a compressed file."""
    ending = PurePath(name).suffix.lower()
    return name[: -len(ending)] if ending in BY_ENDING else name


def decompress(file: Any, name: str, codec: Codec) -> io.BufferedReader:
    """The decompressed content of a file; `file` is not closed."""
    import pyarrow as pa

    head = file.peek(1)
    if head and not head.startswith(codec.openings):
        raise _refuse_ending(head, name, codec)
    if not head:  # an empty file, which Arrow reports as truncated
        return io.BufferedReader(io.BytesIO())
    return io.BufferedReader(
        pa.CompressedInputStream(pa.PythonFile(_Borrowed(file), "r"), codec.arrow)
    )


def _refuse_ending(head: bytes, name: str, codec: Codec) -> InputError:
    """The error of a file that is not compressed as its name says."""
    plain, real = PurePath(strip_ending(name)).name, codec_of_head(head)
    problem = f"{name} is not compressed with {codec.title}, as its ending {codec.ending} says"
    if real is None:
        return InputError(problem, hint=f"if it is not compressed, rename it to {plain}")
    hint = f"rename it to {plain}{real.ending}"
    return InputError(
        f"{problem}: it {real.description}", hint=hint if real.arrow else f"{hint} and unpack it"
    )


class _Borrowed:
    """A file that its reader does not close."""

    closed = False

    def __init__(self, file: Any) -> None:
        self.read = file.read

    def close(self) -> None:
        """Does nothing: the owner closes the file."""
