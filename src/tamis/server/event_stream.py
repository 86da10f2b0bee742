"""Matches as Server-Sent Events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import orjson
from starlette.responses import Response

from tamis.server.mailbox_reader import spell_missed, spell_position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Receive, Scope, Send

    from tamis.broker.followers import Follower, News
    from tamis.broker.mailbox import Position
    from tamis.server.auth import Caller
    from tamis.server.mailbox_reader import MailboxReader
    from tamis.server.problems import Problem
    from tamis.server.stream_rights import OpenStream

HEADERS: Final = {
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # proxies must not hold events back
}
_PIECE: Final = 64 << 10  # bytes that are sent at once
BEGIN: Final = b"retry: 2000\n\n"


class EventStream(Response):
    """The answer that does not end until the client goes, or the server stops.

    Starlette's own would need a task group for each stream.
    """

    media_type = "text/event-stream"

    def __init__(self, reader: MailboxReader, caller: Caller, start: Position) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers(HEADERS)
        self._reader = reader
        self._caller = caller
        self._start = start

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what comes."""
        async with self._reader.follow("stream", self._caller, self._start.event) as stream:
            gone = asyncio.create_task(_stop_when_gone(receive, stream.follower))
            try:
                await self._send_all(stream, send)
            finally:
                gone.cancel()

    async def _send_all(self, stream: OpenStream, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        # A client that is cut off before the first match goes on from here too.
        await send(to_body(b"id: %b\n%b" % (spell_position(*self._start).encode(), BEGIN)))
        while (news := await self._reader.next(stream)) is not None:
            for piece in _join(spell_news(news, self._start.epoch)):
                await send(to_body(piece))
            self._reader.observe("stream", news)
        last = b"" if stream.problem is None else _spell_problem(stream.problem)
        await send(to_body(last, is_last=True))


async def _stop_when_gone(receive: Receive, follower: Follower) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    follower.stop()


def spell_news(news: News, epoch: str) -> Iterator[bytes]:
    """The lines of a stream. The id of each event is the cursor after it."""
    if news.missed is not None:
        cursor = spell_position(epoch, news.missed.stop - 1)
        yield _spell(b"missed", cursor, orjson.dumps(spell_missed(news.missed)))
    for lost in news.lost:  # without an id: the client goes on where it was
        yield b"event: lost-history\ndata: %b\n\n" % orjson.dumps(lost._asdict())
    for match in news.matches:
        yield _spell(b"match", spell_position(epoch, match.event), match.data)
    if not news.matches:
        # The id moves an idle client on, so that retention does not seem to take anything from it.
        yield b": nothing new\nid: %b\n\n" % spell_position(epoch, news.after).encode()


def _spell(kind: bytes, cursor: str, data: bytes) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (cursor.encode(), kind, data)


def _spell_problem(problem: Problem) -> bytes:
    """Why the stream ends. It has no id: a client that comes again goes on where it was."""
    return b"event: problem\ndata: %b\n\n" % orjson.dumps(problem.to_json())


def _join(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Small pieces together, so that not each is a packet."""
    waiting: list[bytes] = []
    n_bytes = 0
    for line in lines:
        waiting.append(line)
        n_bytes += len(line)
        if n_bytes >= _PIECE:
            yield b"".join(waiting)
            waiting, n_bytes = [], 0
    if waiting:
        yield b"".join(waiting)


def to_body(body: bytes, *, is_last: bool = False) -> dict[str, Any]:
    """A piece of an answer."""
    return {"type": "http.response.body", "body": body, "more_body": not is_last}
