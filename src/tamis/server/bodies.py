"""Reads the body of a request within limits of size and time, packed or not."""

from __future__ import annotations

import asyncio
from typing import IO, TYPE_CHECKING, Final

from tamis.server.context import in_thread
from tamis.server.problems import Problem
from tamis.server.unpacking import Unpacker, damaged, make_unpacker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import timedelta

    from starlette.requests import Request

ALLOWED: Final = "allowed_bytes"  # in the state of a request; see `guard`
_CLOSING: Final = {"connection": "close"}  # the rest of the body is not read
_PIECE: Final = 1 << 20  # bytes that are unpacked at a time
_TIMED: Final = 4 << 20  # bytes of a large body that must arrive within the time of a request


async def read_body(request: Request, most: int, timeout: timedelta) -> bytes:
    """The body, unpacked; raises a `Problem` if it is larger than `most` bytes, or slow."""
    unpacker = _prepare(request, most)
    pieces: list[bytes] = []
    n_bytes = 0
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            async for piece in _unpacked(request.stream(), unpacker):
                n_bytes += len(piece)
                if n_bytes > most:
                    raise too_large(most)
                pieces.append(piece)
    except TimeoutError:
        raise too_slow(timeout, "the body") from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def spool_body(request: Request, file: IO[bytes], most: int, timeout: timedelta) -> None:
    """Write the body, unpacked, to a file; raises a `Problem` if it is larger than `most` bytes, or
    if some megabytes of it take longer than `timeout`.
    """
    unpacker = _prepare(request, most)
    loop, seconds = asyncio.get_running_loop(), timeout.total_seconds()
    n_bytes = n_due = 0
    try:
        async with asyncio.timeout(seconds) as deadline:
            async for piece in _unpacked(request.stream(), unpacker):
                n_bytes += len(piece)
                if n_bytes > most:
                    raise too_large(most)
                await in_thread(file.write, piece)
                if n_bytes >= n_due + _TIMED:
                    n_due = n_bytes
                    deadline.reschedule(loop.time() + seconds)
    except TimeoutError:
        raise too_slow(timeout, "a part of the body") from None


def _prepare(request: Request, most: int) -> Unpacker | None:
    """What unpacks the body; raises a `Problem` if it is too large by its Content-Length."""
    length = request.headers.get("content-length", "")
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if length.isdigit() and int(length) > most and encoding == "identity":
        raise too_large(most)
    # What cannot be packed becomes a little larger by packing.
    allow_body(request, most + (most >> 8) + 4_096)
    return make_unpacker(encoding)


def too_large(most: int) -> Problem:
    """The problem of a body that is too large."""
    return Problem(
        413,
        "too-large",
        f"the body is larger than {most:,} bytes",
        hint="send several smaller requests",
        headers=_CLOSING,
        limit=most,
    )


def too_slow(timeout: timedelta, what: str = "the body") -> Problem:
    """The problem of a body that does not arrive."""
    seconds = timeout.total_seconds()
    return Problem(
        408, "slow-request", f"{what} did not arrive within {seconds:g} s", headers=_CLOSING
    )


def allow_body(request: Request, most: int) -> None:
    """Allow the body of this request more bytes than others."""
    request.scope["state"][ALLOWED] = most


async def _unpacked(
    pieces: AsyncIterator[bytes], unpacker: Unpacker | None
) -> AsyncIterator[bytes]:
    async for piece in pieces:
        if unpacker is None:
            yield piece
            continue
        unpacker.feed(piece)
        # A few bytes may become very many: only as much is unpacked as was asked for.
        while out := await in_thread(unpacker.read, _PIECE):
            yield out
    if unpacker is not None and not unpacker.is_complete:
        raise damaged()
