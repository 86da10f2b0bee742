"""Unpacks bodies, a bounded piece at a time."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

from tamis.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

_GZIP: Final = 16 + zlib.MAX_WBITS


class Unpacker:
    """Unpacks a stream. It may consist of several, one after another, as gzip and zstd allow."""

    def __init__(self, make: Callable[[], Any], *, may_repeat: bool) -> None:
        self._make = make
        self._may_repeat = may_repeat
        self._stream = make()
        self._packed = b""
        self._has_begun = False

    def feed(self, packed: bytes) -> None:
        """Add packed bytes, when `read` has returned nothing."""
        self._packed += packed

    def read(self, most: int) -> bytes:
        """At most so many unpacked bytes; none if more packed ones are needed."""
        try:
            return self._read(most)
        except Problem:
            raise
        except Exception:  # each package has its own
            raise damaged() from None

    def _read(self, most: int) -> bytes:
        while True:
            if self._stream.eof:
                if not self._packed:
                    return b""
                if not self._may_repeat:
                    raise damaged()
                self._stream = self._make()
            self._has_begun = self._has_begun or bool(self._packed)
            out: bytes = self._stream.decompress(self._packed, most)
            self._packed = self._stream.unused_data if self._stream.eof else _left(self._stream)
            if out or not self._stream.eof:
                return out

    @property
    def is_complete(self) -> bool:
        """Whether the stream has ended: otherwise it is cut off. No bytes at all are complete."""
        return self._stream.eof or not self._has_begun


def _left(stream: Any) -> bytes:
    """The bytes that zlib has not looked at; zstd keeps them itself."""
    return getattr(stream, "unconsumed_tail", b"")


def make_unpacker(encoding: str) -> Unpacker | None:
    """The unpacker of a content encoding; None if it is not packed."""
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip"):
        return Unpacker(lambda: zlib.decompressobj(_GZIP), may_repeat=True)
    if encoding == "deflate":
        return Unpacker(zlib.decompressobj, may_repeat=False)
    if encoding == "zstd":
        return Unpacker(_make_zstd, may_repeat=True)
    raise Problem(
        415,
        "unknown-encoding",
        f"the content encoding {encoding[:100]!r} is not supported",
        hint="send it unpacked, or packed with gzip, deflate or zstd",
    )


def _make_zstd() -> Any:
    from backports import zstd

    # A frame can ask for a window of gigabytes: 8 MB is what every reader must support.
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 23})


def damaged() -> Problem:
    """The problem of a packed body that cannot be unpacked to its end."""
    return Problem(400, "bad-encoding", "the packed body is damaged or cut off")
