"""Reads a mailbox, and waits for more: what pages, streams and sockets share."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from tamis.broker.followers import PAGE
from tamis.broker.mailbox import Position
from tamis.server.context import in_thread, result_of
from tamis.server.following import refuse_follower
from tamis.server.problems import Problem
from tamis.server.stream_rights import OpenStream, end_if_expired

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractContextManager

    from tamis.broker.followers import News
    from tamis.broker.mail import MailPage
    from tamis.broker.mailbox import Mailbox
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext

DEFAULT_CONSUMER: Final = "default"


def spell_position(epoch: str, event: int) -> str:
    """A cursor as clients see it."""
    return f"{epoch}:{event}"


def read_position(text: str, head: Position) -> Position:
    """The place of a cursor that a client shows; raises a `Problem` if it is not in the archive."""
    epoch, _, number = text.rpartition(":")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise Problem(422, "bad-cursor", f"the cursor {text[:100]!r} is not EPOCH:NUMBER")
    if epoch not in ("", head.epoch):
        raise Problem(
            410,
            "history-lost",
            f"the cursor is of the epoch {epoch[:100]!r}; the server has {head.epoch!r}",
            hint="the server was restored from a backup: read from the start again",
            epoch=head.epoch,
        )
    if int(number) > head.event:
        raise Problem(
            422, "bad-cursor", f"the cursor is at event {number}; the last event is {head.event}"
        )
    return Position(head.epoch, int(number))


def spell_missed(missed: range | None) -> dict[str, int] | None:
    """The events that retention removed before they were read."""
    return None if missed is None else {"first": missed.start, "last": missed.stop - 1}


class MailboxReader:
    """A mailbox, for one request."""

    def __init__(self, context: ServerContext, mailbox: Mailbox) -> None:
        self._context = context
        self._mailbox = mailbox
        self._mailboxes = context.match_server.mailboxes
        self._live = context.live_mail

    @property
    def head(self) -> Position:
        """The last event."""
        return self._mailboxes.head

    def _hold(self, caller: Caller) -> AbstractContextManager[None]:
        """Count a stream of a caller while it is open."""
        own = caller.limits.streams
        most = self._context.settings.limits.streams if own is None else own
        return self._context.streams.hold(caller.actor.key_id or caller.ticket or "", most)

    # ── where to begin ──────────────────────────────────────────────────────────────────────

    async def find_start(self, after: str | None, consumer: str | None, otherwise: int) -> Position:
        """Where to begin: at a shown cursor, else after what a consumer has acknowledged."""
        head = self.head
        if after is not None:
            return read_position(after, head)
        if consumer is None:
            return Position(head.epoch, otherwise)
        cursors = self._context.match_server.broker.cursors
        cursor = await in_thread(cursors.get, self._mailbox, consumer)
        if cursor is None:
            return Position(head.epoch, 0)
        return read_position(spell_position(*cursor.position), head)

    async def acknowledge(self, consumer: str, position: Position) -> Position:
        """Store that a consumer has handled all events up to a position; returns its cursor."""
        refuse_follower(self._context)
        cursors = self._context.match_server.broker.cursors
        return await result_of(cursors.submit(self._mailbox, consumer, position, self.head))

    # ── matches ─────────────────────────────────────────────────────────────────────────────

    async def read(self, after: int, limit: int = PAGE) -> MailPage:
        """A page of matches."""
        page = await in_thread(self._mailboxes.read, self._mailbox, after=after, limit=limit)
        self._context.observe_delivery("page", page.matches)
        return page

    def observe(self, kind: str, news: News) -> None:
        """Measure how late news were sent."""
        self._context.observe_delivery(kind, news.matches)

    async def wait(self, caller: Caller, after: int, limit: int, seconds: float) -> MailPage:
        """A page of matches, as soon as there is one, or an empty one after so many seconds."""
        async with self.follow("page", caller, after) as stream:
            await self.next(stream, seconds)
            if stream.problem is not None:
                raise stream.problem
        return await self.read(after, limit)

    @asynccontextmanager
    async def follow(self, kind: str, caller: Caller, after: int) -> AsyncIterator[OpenStream]:
        """Follow the mailbox; raises a `Problem` if the caller has too many streams."""
        with self._hold(caller):
            follower = await self._live.join(self._mailbox, after)
            stream = OpenStream(kind, caller, self._mailbox, follower)
            self._context.open_streams.add(stream)
            try:
                yield stream
            finally:
                self._context.open_streams.discard(stream)
                self._live.leave(follower)

    async def next(self, stream: OpenStream, patience: float | None = None) -> News | None:
        """What comes next; nothing if none came within the timeout; None at the end."""
        patience = self._context.heartbeat if patience is None else patience
        news = await self._live.next(stream.follower, patience)
        end_if_expired(self._context, stream)
        return None if stream.problem is not None else news


def spell_page(epoch: str, page: MailPage) -> dict[str, Any]:
    """A page as JSON values, for orjson."""
    return {
        "epoch": epoch,
        "matches": [match.to_json() for match in page.matches],
        "cursor": spell_position(epoch, page.after),
        "missed": spell_missed(page.missed),
        "is_complete": page.is_last,
        "lost_histories": [own._asdict() for own in page.lost],
    }
