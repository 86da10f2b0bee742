"""Which mailbox a request names, and whether the caller may read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import Query
from starlette.requests import Request

from tamis.broker.mailbox import Mailbox, MailboxKind
from tamis.server.auth import Anybody, Caller, Reading, may_see
from tamis.server.context import context_of, in_thread
from tamis.server.models import PathText
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.broker.channels import Channel
    from tamis.broker.rights import Actor
    from tamis.broker.subscriptions import KnownSubscription
    from tamis.server.context import ServerContext

Number = Annotated[
    int | None,
    Query(ge=1, lt=1 << 63, description="Of several subscriptions that had the id, this one."),
]


class OpenMailbox(NamedTuple):
    """A mailbox that the caller may read."""

    mailbox: Mailbox
    caller: Caller


def may_read(
    context: ServerContext, caller: Caller, found: KnownSubscription | Channel | None
) -> bool:
    """Whether the caller may read the mailbox of a subscription, or of a channel, which has no
    ticket. It takes the same time if there is none.
    """
    ticket_hash = getattr(found, "ticket_hash", None)
    has_ticket = context.match_server.broker.tickets.verify(caller.ticket, ticket_hash)
    return found is not None and (has_ticket or may_see(caller, found.owner))


def unknown_mailbox(kind: MailboxKind) -> Problem:
    """The problem of whoever may no longer read a mailbox."""
    detail = f"the {kind.value} does not exist, or it is not yours any more"
    return Problem(404, f"unknown-{kind.value}", detail)


async def find_subscription(
    context: ServerContext, caller: Caller, subscription_id: str, number: int | None = None
) -> KnownSubscription:
    """A subscription whose mailbox the caller may read, even after it has ended; the same error
    if it is hidden or unknown.
    """
    subscriptions = context.match_server.broker.subscriptions
    if number is None:
        found = await in_thread(subscriptions.find, subscription_id)
    else:
        found = await in_thread(subscriptions.get, number)
    if found is not None and found.id != subscription_id:
        found = None
    if may_read(context, caller, found):
        assert found is not None
        return found
    raise Problem(
        404,
        "unknown-subscription",
        f'there is no subscription "{subscription_id}"',
        hint="others are visible only with the key of their owner, or their ticket",
    )


async def find_channel(context: ServerContext, caller: Caller, name: str) -> Channel:
    """A channel that the caller may read; the same error if it is hidden or unknown."""
    found: Channel | None = await in_thread(context.match_server.broker.channels.get, name)
    if may_read(context, caller, found):
        assert found is not None
        return found
    raise Problem(404, "unknown-channel", f'there is no channel "{name}"')


async def open_subscription(
    request: Request, caller: Anybody, subscription_id: PathText, number: Number = None
) -> OpenMailbox:
    """A dependency: the mailbox of a subscription."""
    found = await find_subscription(context_of(request), caller, subscription_id, number)
    return OpenMailbox(Mailbox.of_subscription(found.number), caller)


async def open_channel(request: Request, caller: Reading, channel: PathText) -> OpenMailbox:
    """A dependency: the mailbox of a channel."""
    found = await find_channel(context_of(request), caller, channel)
    return OpenMailbox(found.mailbox, caller)


def act_for(
    context: ServerContext, caller: Caller, subscriptions: Iterable[KnownSubscription]
) -> Actor:
    """The caller, with the right to the mailboxes of the subscriptions whose ticket was shown."""
    tickets = context.match_server.broker.tickets
    shown = frozenset(
        Mailbox.of_subscription(own.number)
        for own in subscriptions
        if tickets.verify(caller.ticket, own.ticket_hash)
    )
    return caller.actor._replace(mailboxes=shown)
