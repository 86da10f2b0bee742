"""Unpacks the body of an answer: gzip with one or several members, zlib, or raw deflate."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKED: Final = ("gzip", "x-gzip", "deflate")  # the encodings that can be unpacked
_PIECE: Final = 1 << 16  # bytes that are unpacked at once: a small body may unpack to a huge one
_GZIP: Final = b"\x1f\x8b"
_HEADER: Final = 2  # bytes that show which format a stream has


class Unpacker:
    """Unpacks one body, piece by piece; methods raise a `zlib.error` if it is damaged."""

    def __init__(self, encoding: str) -> None:
        """`encoding`: one of `PACKED`."""
        self._may_be_raw = encoding == "deflate"
        self._stream: zlib._Decompress | None = None
        self._packed = b""  # not yet unpacked
        self._is_first = True
        self._is_ended = False

    @property
    def is_whole(self) -> bool:
        """Whether everything that was begun has ended."""
        return self._stream is None and not self._is_first

    def unpack(self, piece: bytes) -> Iterator[bytes]:
        """The bytes of a further piece of the body, none of them longer than 64 KiB."""
        self._packed += piece
        while not self._is_ended and self._packed:
            stream = self._stream or self._start()
            if stream is None:
                return
            yield stream.decompress(self._packed, _PIECE)
            self._packed = stream.unused_data if stream.eof else stream.unconsumed_tail
            self._stream = None if stream.eof else stream

    def _start(self) -> zlib._Decompress | None:
        """The next stream; None if there is none, or its first bytes are not all there."""
        if len(self._packed) < _HEADER:
            return None
        header = self._packed[:_HEADER]
        if self._is_first:
            window = (
                -zlib.MAX_WBITS if self._may_be_raw and _is_raw(header) else zlib.MAX_WBITS + 32
            )
        elif header == _GZIP:  # files of gzip may be joined
            window = zlib.MAX_WBITS + 16
        else:
            # Padding, which servers add and browsers ignore. If something were missing, the
            # document would not be whole, which its reader reports.
            self._is_ended = True
            return None
        self._is_first = False
        self._stream = zlib.decompressobj(window)
        return self._stream


def _is_raw(header: bytes) -> bool:
    """Whether a stream has neither the header of gzip nor that of zlib (RFC 1950).

    A raw stream never begins as one of zlib: its first block would be stored, with bits set in the
    padding.
    """
    is_zlib = header[0] & 0x0F == 8 and int.from_bytes(header) % 31 == 0
    return header != _GZIP and not is_zlib
