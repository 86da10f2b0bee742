"""Events as they pass, as Server-Sent Events."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import orjson
from starlette.responses import Response

from tamis.broker.event_texts import to_strict_json
from tamis.language.moments import spell_moment
from tamis.server.archived import expect_reader
from tamis.server.auth import find_caller
from tamis.server.context import context_of, in_thread
from tamis.server.event_stream import BEGIN, HEADERS, to_body
from tamis.server.problems import Problem
from tamis.server.visible import keep_visible

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from tamis.broker.tapping import Tap, Tapped
    from tamis.server.auth import Caller

MOST_NAMED: Final = 20  # subscriptions that are listed with an event
_PAUSE: Final = 0.25  # seconds between messages: more is too fast to read


class TapStream(Response):
    """The answer that does not end until the client goes, or the server stops."""

    media_type = "text/event-stream"

    def __init__(self, request: Request, caller: Caller, tap: Tap) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers(HEADERS)
        self._request = request
        self._context = context_of(request)
        self._caller = caller
        self._tap = tap
        self._news = asyncio.Event()
        self._is_gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what passes."""
        limits, server = self._context.settings.limits, self._context.match_server
        own = self._caller.limits.streams
        most = limits.streams if own is None else own
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._news.set)

        with (
            self._context.streams.hold(self._caller.actor.key_id, most),
            server.hub.watch(None, wake),
        ):
            watching = [
                asyncio.create_task(self._stop_when_gone(receive)),
                asyncio.create_task(self._stop_when_closing()),
            ]
            try:
                await self._send_all(send)
            finally:
                for task in watching:
                    task.cancel()

    async def _send_all(self, send: Send) -> None:
        # Before the client knows that the stream is open: it gets all that is published after that.
        after = self._context.match_server.archive.last_event
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send(to_body(BEGIN))
        while not self._is_gone:
            try:
                async with asyncio.timeout(self._context.heartbeat):
                    await self._news.wait()
            except TimeoutError:
                await send(to_body(b": nothing new\n\n"))
            self._news.clear()
            if self._is_gone or not await self._may_go_on():
                break
            found = await in_thread(self._tap.read, after)
            after = found.after
            if found.n_passed:
                await send(to_body(await self._spell(found)))
                await asyncio.sleep(_PAUSE)
        await send(to_body(b"", is_last=True))

    async def _may_go_on(self) -> bool:
        """Whether the caller may still read events: a key may have been revoked."""
        try:
            self._caller = await find_caller(self._request)
            expect_reader(self._context, self._caller)
        except Problem:
            return False
        return True

    async def _spell(self, found: Tapped) -> bytes:
        by_event = found.subscriptions
        lists = await keep_visible(self._context, self._caller, list(by_event.values()))
        named = dict(zip(by_event, lists, strict=True))
        events: list[dict[str, Any]] = [
            {
                "event": own.number,
                "moment": spell_moment(own.moment),
                "change": own.change,
                "content": None
                if own.event is None
                else orjson.Fragment(to_strict_json(own.event)),
                "matches": len(named.get(own.number, ())),
                "subscriptions": named.get(own.number, [])[:MOST_NAMED],
            }
            for own in found.events
        ]
        data = {"passed": found.n_passed, "chosen": found.n_chosen, "events": events}
        return b"event: events\ndata: %b\n\n" % orjson.dumps(data)

    async def _stop_when_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._stop()

    async def _stop_when_closing(self) -> None:
        await self._context.is_closing.wait()
        self._stop()

    def _stop(self) -> None:
        self._is_gone = True
        self._news.set()
