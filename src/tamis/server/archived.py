"""Events of the archive, for those who may read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.broker.rights import Role
from tamis.server.context import in_thread
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext


def may_read_archive(context: ServerContext, caller: Caller) -> bool:
    """Whether the caller may read events that matched no subscription of theirs."""
    if caller.actor.is_admin:
        return True
    return context.settings.archive.readable == "read" and caller.may(Role.READ)


def expect_reader(context: ServerContext, caller: Caller) -> None:
    """Raise a `Problem` unless the caller may read all events."""
    if not may_read_archive(context, caller):
        raise Problem(
            403,
            "archive-closed",
            "only an admin may read events that matched no subscription of theirs",
            hint='the setting archive.readable = "read" opens them to keys with the role read',
        )


async def read_archived(context: ServerContext, number: int) -> bytes:
    """The JSON text of an event; raises a `Problem` if the archive does not have it."""
    archive = context.match_server.archive
    texts = await in_thread(archive.get_events, [number])
    if number in texts:
        return texts[number]
    if number < archive.first_event:
        raise Problem(410, "event-removed", f"event {number} was removed by retention")
    if number <= archive.last_event:
        raise Problem(
            404,
            "event-not-kept",
            f"the text of event {number} is not archived",
            hint=f'the setting archive.keep is "{context.settings.archive.keep}"',
        )
    raise Problem(
        404, "unknown-event", f"there is no event {number}; the last is {archive.last_event}"
    )


async def has_matched(context: ServerContext, subscription: int, event: int) -> bool:
    """Whether an event is in the mailbox of a subscription, by its number."""
    return await in_thread(context.match_server.mailboxes.has, subscription, event)
