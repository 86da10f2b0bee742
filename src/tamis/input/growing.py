"""Lines that arrive while they are read: of a pipe, or of a file that others append to."""

from __future__ import annotations

import io
import os
import select
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import InputError, warn

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_SECONDS: Final = 0.05
CHUNK_BYTES: Final = 1 << 16


class ArrivingLines(io.RawIOBase):
    """The complete lines of a source, each as soon as it is there; `stop` ends the stream."""

    is_growing = True

    def __init__(self, name: str, read_more: Callable[[], bytes | None]) -> None:
        """`read_more` returns some bytes, none if it has waited for a while, or None at the end."""
        self.name = name
        self._read_more = read_more
        self._ready = bytearray()  # complete lines
        self._rest = bytearray()  # of a line whose end is not there yet
        self._has_ended = False
        self._is_stopped = Event()

    def stop(self) -> None:
        """End the stream, even while another thread waits for more; half a line is dropped."""
        self._is_stopped.set()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """As for any file; it waits until there is a line."""
        while not (self._ready or self._has_ended or self._is_stopped.is_set()):
            self._fill()
        n_bytes = min(len(buffer), len(self._ready))
        buffer[:n_bytes] = self._ready[:n_bytes]
        del self._ready[:n_bytes]
        return n_bytes

    def _fill(self) -> None:
        chunk = self._read_more()
        if chunk is None:
            self._has_ended = True
            self._ready += self._rest
            return
        end = chunk.rfind(b"\n") + 1
        if end:
            self._ready += self._rest
            self._rest.clear()
        self._ready += chunk[:end]
        self._rest += chunk[end:]


def follow_pipe(descriptor: int, name: str) -> ArrivingLines:
    """The lines of a pipe, until its end."""

    def read_more() -> bytes | None:
        if not select.select([descriptor], [], [], POLL_SECONDS)[0]:
            return b""
        return os.read(descriptor, CHUNK_BYTES) or None

    return ArrivingLines(name, read_more)


def follow_file(path: str, *, has_header: bool) -> ArrivingLines:
    """The lines of a file, now and later, as `tail -F` prints them.

    If the file is truncated, or replaced by another of the same name, a warning is issued and its
    lines are read from the beginning. A header must then be the same, and is skipped.
    """
    return ArrivingLines(path, _GrowingFile(path, has_header=has_header).read_more)


class _GrowingFile:
    def __init__(self, path: str, *, has_header: bool) -> None:
        self._path = path
        self._file = _open(path)
        self._header: bytes | None = None
        self._has_header = has_header
        self._begins = has_header  # the next line is a header
        self._start = b""  # the start of that line
        self._ends_line = True
        self._pause = Event()  # never set: to wait for a while

    def read_more(self) -> bytes:
        """Some bytes, or none if there are none yet."""
        chunk: bytes = self._file.read(CHUNK_BYTES)
        if not chunk:
            chunk = self._look_again()
        if not chunk:
            self._pause.wait(POLL_SECONDS)
            return b""
        self._ends_line = chunk.endswith(b"\n")
        return self._skip_header(chunk) if self._begins else chunk

    def _look_again(self) -> bytes:
        """Find out whether it is still the same file."""
        own = os.fstat(self._file.fileno())
        if own.st_size < self._file.tell():
            self._file.seek(0)
            return self._begin("was truncated")
        try:
            is_same = os.path.samestat(own, os.stat(self._path))
        except FileNotFoundError:
            return b""  # the next one is not there yet
        if is_same:
            return b""
        left: bytes = self._file.read()  # written before it was replaced
        if left:
            return left
        self._file.close()
        self._file = _open(self._path)
        return self._begin("was replaced by another file")

    def _begin(self, what: str) -> bytes:
        warn(f"{self._path} {what}; it is read from its beginning")
        self._begins = self._has_header
        self._start = b""
        # Half a line stays a line, and cannot be continued by a line of the other file.
        return b"" if self._ends_line else b"\n"

    def _skip_header(self, chunk: bytes) -> bytes:
        self._start += chunk
        line, newline, rest = self._start.partition(b"\n")
        if not newline:
            return b""
        self._begins = False
        if self._header is None:
            self._header = line
            return self._start
        if line != self._header:
            raise InputError(
                f"{self._path} has another header than before",
                hint="match it with a new command",
            )
        return rest


def _open(path: str) -> Any:
    try:
        return Path(path).open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
