"""Matches over a WebSocket: the same as on a stream, and acknowledgements on the same connection.

Every message is a JSON object with a `type`. The server sends `ready`, `match`, `missed`,
`lost-history`, `idle`, `acknowledged`, `pong` and `problem`; the client sends `authenticate`,
`acknowledge` and `ping`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import orjson
from starlette.websockets import WebSocketDisconnect

from tamis.errors import TamisError
from tamis.server.auth import TICKET, identify, limit_rate
from tamis.server.context import context_of
from tamis.server.guard import SOCKET_CODES, WATCH
from tamis.server.mailbox_reader import (
    DEFAULT_CONSUMER,
    MailboxReader,
    read_position,
    spell_missed,
    spell_position,
)
from tamis.server.problems import Problem, describe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.websockets import WebSocket

    from tamis.broker.followers import News
    from tamis.broker.mailbox import Mailbox
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext
    from tamis.server.stream_rights import OpenStream

    FindMailbox = Callable[[ServerContext, Caller], Awaitable[Mailbox]]

FIRST_MESSAGE_SECONDS: Final = 10.0
GOING_AWAY: Final = 1001
GONE: Final = 1006  # reported for a client that left without a code


async def serve_socket(
    socket: WebSocket, find_mailbox: FindMailbox, after: str | None, consumer: str | None
) -> None:
    """Follow a mailbox until the client goes, breaks the rules, or the server stops."""
    if not is_same_origin(socket):
        await socket.close()  # before it is accepted: the client gets 403
        return
    await socket.accept()
    context = context_of(socket)
    try:
        caller = await _authenticate(context, socket)
        reader = MailboxReader(context, await find_mailbox(context, caller))
        start = await reader.find_start(after, consumer, otherwise=reader.head.event)
        async with reader.follow("socket", caller, start.event) as stream:
            own = _Conversation(socket, reader, consumer or DEFAULT_CONSUMER, start.epoch)
            await own.run(stream, lambda: limit_rate(socket, caller))
    except WebSocketDisconnect:
        return
    except Problem as problem:
        await _refuse(socket, problem)
    except TamisError as error:
        await _refuse(socket, describe(error))
    else:
        with suppress(WebSocketDisconnect, RuntimeError):  # it may be gone
            await socket.close(GOING_AWAY)


def is_same_origin(socket: WebSocket) -> bool:
    """Whether no page of another site opens the socket: browsers do not protect sockets from it."""
    origin = socket.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == socket.headers.get("host")


async def _authenticate(context: ServerContext, socket: WebSocket) -> Caller:
    """The caller, by headers or by the first message: browsers cannot send headers here."""
    shown, ticket = socket.headers.get("authorization"), socket.headers.get(TICKET)
    if shown is None and ticket is None and not context.is_open:
        try:
            async with asyncio.timeout(FIRST_MESSAGE_SECONDS):
                message = await _receive(socket)
        except TimeoutError:
            raise Problem(401, "key-required", "no key was sent in time") from None
        key, ticket = message.get("key"), message.get("ticket")
        if message.get("type") != "authenticate" or not all(
            own is None or isinstance(own, str) for own in (key, ticket)
        ):
            raise Problem(
                401,
                "key-required",
                "the first message is not an authentication",
                hint='send {"type": "authenticate", "key": …} or {…, "ticket": …}',
            )
        # In a message, secrets are as easily guessed as in headers.
        socket.scope["state"][WATCH].add(key, ticket)
        shown = None if key is None else f"Bearer {key}"
    caller = await identify(context, shown, ticket)
    limit_rate(socket, caller)
    return caller


async def _refuse(socket: WebSocket, problem: Problem) -> None:
    with suppress(WebSocketDisconnect, RuntimeError):
        await _send(socket, {"type": "problem", "problem": problem.to_json()})
        await socket.close(SOCKET_CODES + problem.status)


async def _receive(socket: WebSocket) -> dict[str, Any]:
    """The next message."""
    received = await socket.receive()
    if received["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(received.get("code", 1000))
    text = received.get("text") or received.get("bytes") or b""
    try:
        message = orjson.loads(text)
    except orjson.JSONDecodeError:
        message = None
    if not isinstance(message, dict):
        raise Problem(400, "bad-json", "a message is not a JSON object")
    return message


async def _send(socket: WebSocket, message: dict[str, Any]) -> None:
    await _send_text(socket, orjson.dumps(message).decode())


async def _send_text(socket: WebSocket, text: str) -> None:
    """Send a message; raises a `WebSocketDisconnect` if the client has gone meanwhile."""
    try:
        await socket.send_text(text)
    except RuntimeError as error:  # the socket is closed
        raise WebSocketDisconnect(GONE) from error


class _Conversation:
    """Sends matches and takes acknowledgements at the same time."""

    def __init__(self, socket: WebSocket, reader: MailboxReader, consumer: str, epoch: str) -> None:
        self._socket = socket
        self._reader = reader
        self._consumer = consumer
        self._epoch = epoch

    async def run(self, stream: OpenStream, expect_rate: Callable[[], None]) -> None:
        """Talk until one of the two has ended; raises its error."""
        cursor = spell_position(self._epoch, stream.follower.after)
        await _send(self._socket, {"type": "ready", "cursor": cursor})
        talking = [
            asyncio.create_task(self._send_all(stream)),
            asyncio.create_task(self._receive_all(expect_rate)),
        ]
        try:
            done, _ = await asyncio.wait(talking, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in talking:
                task.cancel()
            await asyncio.gather(*talking, return_exceptions=True)

    async def _send_all(self, stream: OpenStream) -> None:
        while (news := await self._reader.next(stream)) is not None:
            for text in spell_messages(news, self._epoch):
                await _send_text(self._socket, text)
            self._reader.observe("socket", news)
        if stream.problem is not None:
            raise stream.problem

    async def _receive_all(self, expect_rate: Callable[[], None]) -> None:
        while True:
            message = await _receive(self._socket)
            expect_rate()
            kind = message.get("type")
            if kind == "ping":
                await _send(self._socket, {"type": "pong"})
            elif kind == "acknowledge":
                await self._acknowledge(message)
            else:
                raise Problem(
                    400,
                    "unknown-message",
                    f"the type of a message is {kind!r:.100}",
                    hint="acknowledge and ping are known",
                )

    async def _acknowledge(self, message: dict[str, Any]) -> None:
        cursor = message.get("cursor")
        if not isinstance(cursor, str):
            raise Problem(422, "bad-cursor", "an acknowledgement has no cursor")
        position = read_position(cursor, self._reader.head)
        reached = await self._reader.acknowledge(self._consumer, position)
        answer = {"type": "acknowledged", "cursor": spell_position(*reached)}
        await _send(self._socket, answer | {"consumer": self._consumer})


def spell_messages(news: News, epoch: str) -> Iterator[str]:
    """The messages of news."""
    if news.missed is not None:
        cursor = spell_position(epoch, news.missed.stop - 1)
        missed = {"type": "missed", "cursor": cursor, "missed": spell_missed(news.missed)}
        yield orjson.dumps(missed).decode()
    for lost in news.lost:
        yield orjson.dumps({"type": "lost-history", **lost._asdict()}).decode()
    for match in news.matches:
        cursor = spell_position(epoch, match.event)
        yield f'{{"type":"match","cursor":"{cursor}","match":{match.data.decode()}}}'
    if not news.matches:
        idle = {"type": "idle", "cursor": spell_position(epoch, news.after)}
        yield orjson.dumps(idle).decode()
