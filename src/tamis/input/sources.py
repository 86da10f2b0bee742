"""Opens the source of rows: a path, an open file, bytes, or standard input, compressed or not."""

from __future__ import annotations

import io
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tamis.errors import InputError
from tamis.input.batches import MOST_BYTES
from tamis.input.compression import codec_of_head, codec_of_name, decompress
from tamis.input.formats import Format, detect_format

if TYPE_CHECKING:
    from collections.abc import Iterator

Source: TypeAlias = str | Path | bytes | IO[bytes]


class Stream(NamedTuple):
    """An open source."""

    file: Any  # binary and buffered: it has `peek`
    name: str
    file_format: Format
    is_pipe: bool = False  # more may arrive later


@contextmanager
def open_stream(source: Source, file_format: Format | None = None) -> Iterator[Stream]:
    """The stream of a source, closed afterwards if it was opened here.

    The format is that of the name, and JSON if there is no name. Files are decompressed according
    to their names, and other sources according to their first bytes.
    """
    is_named = isinstance(source, str | Path)
    name = str(source) if is_named else _name_of(source)
    codec = codec_of_name(name) if is_named else None
    if is_named and file_format is None and not Path(name).suffix and not Path(name).exists():
        with opened(source):  # raises an error that names the file instead of its format
            pass
    chosen = file_format or (detect_format(name) if is_named else Format.JSONL)
    with opened(source) as file, peeking(file) as buffered:
        if not is_named:
            codec = codec_of_head(buffered.peek(1))
        is_read = codec is not None and codec.arrow is not None
        content = decompress(buffered, name, codec) if codec and is_read else buffered
        try:
            yield Stream(content, name, chosen, not is_named and not _is_file(source))
        except OSError as error:
            reason = error.strerror or str(error).strip().partition("\n")[0]
            packed = f", which {codec.description}" if codec and is_read else ""
            raise InputError(f"cannot read {name}{packed}: {reason}") from None


def _name_of(source: Any) -> str:
    name = getattr(source, "name", None)
    return name.strip("<>") if isinstance(name, str) else "the stream"


def _is_file(source: Any) -> bool:
    if getattr(source, "is_growing", False):
        return False
    try:
        return S_ISREG(os.fstat(source.fileno()).st_mode)
    except (
        OSError,
        ValueError,
        AttributeError,
    ):  # not a file of the operating system: bytes in memory
        return True


@contextmanager
def opened(source: Source) -> Iterator[Any]:
    """The binary file of a source, closed afterwards if it was opened here."""
    if isinstance(source, bytes):
        yield io.BytesIO(source)
        return
    if not isinstance(source, str | Path):
        yield source
        return
    try:
        file = Path(source).open("rb")  # noqa: SIM115 - closed below
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot read {source}: {reason}") from None
    with file:
        yield file


@contextmanager
def peeking(file: Any) -> Iterator[Any]:
    """The file with a method `peek`; it stays open."""
    if hasattr(file, "peek"):
        yield file
        return
    buffered = io.BufferedReader(file)
    try:
        yield buffered
    finally:
        if not file.closed:
            buffered.detach()


@contextmanager
def seekable(stream: Stream) -> Iterator[Any]:
    """The file of a stream, made seekable; a pipe is copied first."""
    if stream.file.seekable():
        yield stream.file
        return
    with SpooledTemporaryFile(max_size=MOST_BYTES) as copy:
        shutil.copyfileobj(stream.file, copy)
        copy.seek(0)
        yield copy
