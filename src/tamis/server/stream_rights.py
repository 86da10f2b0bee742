"""Streams, sockets and long polls while they are open: each ends when its right is lost.

A right is lost when a key is revoked, expires or loses its role, when a ticket is replaced, when a
subscription or a channel gets another owner or is deleted, and, on a server without keys, when the
first key is made. What this process changes counts at once; what others change, such as `tamis keys
revoke`, is looked up about every second, for all open streams together.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from tamis.broker.mailbox import MailboxKind
from tamis.broker.rights import LOCAL, Role
from tamis.server.auth import refuse, wrong_key
from tamis.server.mailbox_access import may_read, unknown_mailbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tamis.broker.channels import Channel
    from tamis.broker.followers import Follower
    from tamis.broker.keys import Key
    from tamis.broker.mailbox import Mailbox
    from tamis.broker.subscriptions import KnownSubscription
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext
    from tamis.server.problems import Problem

CHECK_SECONDS: Final = 1.0
_SHARE: Final = 20  # with many streams, checks take at most one part in so many of the time
_LOG: Final = logging.getLogger("tamis.server")


class OpenStream:
    """Whoever follows a mailbox, and why that has ended."""

    def __init__(self, kind: str, caller: Caller, mailbox: Mailbox, follower: Follower) -> None:
        self.kind = kind  # stream, socket or page
        self.caller = caller
        self.mailbox = mailbox
        self.follower = follower
        self.problem: Problem | None = None  # the right was lost

    def end(self, problem: Problem) -> None:
        """End the stream: nothing more is handed over."""
        self.problem = problem
        self.follower.stop()


def end_if_expired(context: ServerContext, stream: OpenStream) -> None:
    """End a stream whose key has expired: before anything more is handed over."""
    until = stream.caller.expires
    if until is not None and until <= context.match_server.live.store.moment:
        stream.end(wrong_key())


async def check_streams(context: ServerContext) -> None:
    """End the open streams whose right is lost."""
    streams = list(context.open_streams)
    if streams:
        for stream, problem in await asyncio.to_thread(_find_lost, context, streams):
            stream.end(problem)


@asynccontextmanager
async def checking_streams(context: ServerContext) -> AsyncIterator[None]:
    """End the open streams whose right is lost, again and again until the block ends."""
    task = asyncio.create_task(_check_often(context))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _check_often(context: ServerContext) -> None:
    pause = CHECK_SECONDS
    while True:
        await asyncio.sleep(pause)
        began = time.monotonic()
        try:
            await check_streams(context)
        except Exception:
            _LOG.exception("the rights of open streams could not be read; trying again")
        pause = max(CHECK_SECONDS, _SHARE * (time.monotonic() - began))


def _find_lost(
    context: ServerContext, streams: list[OpenStream]
) -> list[tuple[OpenStream, Problem]]:
    known = _Known(context, streams)
    found = ((stream, known.judge(stream)) for stream in streams)
    return [(stream, problem) for stream, problem in found if problem is not None]


class _Known:
    """What the rights of some streams depend on, as the database has it now."""

    def __init__(self, context: ServerContext, streams: list[OpenStream]) -> None:
        broker = context.match_server.broker
        boxes = {stream.mailbox for stream in streams}
        self._context = context
        self._keys: dict[str, Key] = broker.keys.get_many(
            {stream.caller.actor.key_id for stream in streams}
        )
        self._subscriptions: dict[int, KnownSubscription] = broker.subscriptions.get_many(
            box.number for box in boxes if box.kind is MailboxKind.SUBSCRIPTION
        )
        self._channels: dict[int, Channel] = broker.channels.get_many(
            box.number for box in boxes if box.kind is MailboxKind.CHANNEL
        )
        self._is_open = context.is_open and not broker.keys.exist()

    def judge(self, stream: OpenStream) -> Problem | None:
        """Why a stream may not go on; None if it may."""
        caller, mailbox = self._renew(stream.caller), stream.mailbox
        if caller is None:
            return wrong_key()
        if mailbox.kind is MailboxKind.SUBSCRIPTION:
            is_right = may_read(self._context, caller, self._subscriptions.get(mailbox.number))
        elif not caller.may(Role.READ):
            return refuse(caller, Role.READ)
        else:
            is_right = may_read(self._context, caller, self._channels.get(mailbox.number))
        return None if is_right else unknown_mailbox(mailbox.kind)

    def _renew(self, caller: Caller) -> Caller | None:
        """The caller with the roles that they have now; None if their key is invalid."""
        if caller.runs_server:
            return caller
        if caller.actor is LOCAL:
            return caller if self._is_open else None
        if not caller.actor.key_id:
            return caller  # only a ticket
        key = self._keys.get(caller.actor.key_id)
        if key is None or not self._context.match_server.broker.keys.is_valid(key):
            return None
        return caller._replace(actor=key.actor, roles=key.roles)
