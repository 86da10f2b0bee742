"""What hangs on a mailbox: which mailbox a request means, and who may handle things of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import Field

from tamis.broker.mailbox import Mailbox, MailboxKind
from tamis.broker.pages import Page
from tamis.broker.rights import Role
from tamis.server.auth import may_see, refuse
from tamis.server.context import in_thread
from tamis.server.mailbox_access import act_for, find_channel, find_subscription
from tamis.server.models import Asked
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tamis.broker.rights import Actor
    from tamis.server.auth import Caller
    from tamis.server.context import ServerContext


_Described = TypeVar("_Described")


class OnMailbox(Asked):
    """Names a mailbox: that of a subscription, or of a channel."""

    subscription: str | None = Field(None, description="The id of a subscription.")
    channel: str | None = Field(None, description="The name of a channel; instead of it.")


class Target(NamedTuple):
    """A mailbox, and the caller with the rights to it."""

    mailbox: Mailbox
    actor: Actor
    name: str  # of the subscription or the channel


async def find_target(
    context: ServerContext, caller: Caller, subscription: str | None, channel: str | None
) -> Target:
    """The mailbox that a request names. It needs a key with the role subscribe, or the ticket."""
    if (subscription is None) == (channel is None):
        raise Problem(422, "bad-request", "either a subscription or a channel is expected")
    if subscription is not None:
        known = await find_subscription(context, caller, subscription)
        mailbox = Mailbox.of_subscription(known.number)
        target = Target(mailbox, act_for(context, caller, [known]), known.id)
    else:
        assert channel is not None
        found = await find_channel(context, caller, channel)
        target = Target(found.mailbox, caller.actor, found.name)
    if not caller.may(Role.SUBSCRIBE) and target.mailbox not in target.actor.mailboxes:
        raise refuse(caller, Role.SUBSCRIBE)
    return target


async def name_mailboxes(
    context: ServerContext, mailboxes: Collection[Mailbox]
) -> dict[Mailbox, str]:
    """The ids of the subscriptions and the names of the channels whose mailboxes these are, as far
    as they are known.
    """
    broker = context.match_server.broker
    of_kind = {kind: [own.number for own in mailboxes if own.kind is kind] for kind in MailboxKind}
    subscriptions = await in_thread(
        broker.subscriptions.get_many, of_kind[MailboxKind.SUBSCRIPTION]
    )
    channels = await in_thread(broker.channels.get_many, of_kind[MailboxKind.CHANNEL])
    return {
        **{Mailbox.of_subscription(number): own.id for number, own in subscriptions.items()},
        **{Mailbox.of_channel(number): own.name for number, own in channels.items()},
    }


async def find_actor(
    context: ServerContext, caller: Caller, mailbox: Mailbox, owner: str, what: str
) -> Actor:
    """The caller, with the right to a thing; the same error if it is hidden or unknown."""
    actor = caller.actor
    if mailbox.kind is MailboxKind.SUBSCRIPTION:
        known = await in_thread(context.match_server.broker.subscriptions.get, mailbox.number)
        actor = act_for(context, caller, [] if known is None else [known])
    if may_see(caller, owner) or mailbox in actor.mailboxes:
        return actor
    raise unknown(what)


def unknown(what: str) -> Problem:
    """The problem of a thing that does not exist, or belongs to somebody else."""
    return Problem(404, "unknown-item", f"there is no {what}")


async def read_list(
    context: ServerContext,
    caller: Caller,
    named: tuple[str | None, str | None],
    read: Callable[..., Page[Any]],
    describe: Callable[[Any, str | None], _Described],
) -> Page[_Described]:
    """A page of the things of the mailbox that is named by a subscription or a channel; without
    one, of those that belong to the caller. Each is described with the name of its mailbox.
    """
    mailbox, owner = await _choose_list(context, caller, *named)
    page = await in_thread(read, mailbox=mailbox, owner=owner)
    names = await name_mailboxes(context, {own.mailbox for own in page.items})
    return Page([describe(own, names.get(own.mailbox)) for own in page.items], page.cursor)


async def _choose_list(
    context: ServerContext, caller: Caller, subscription: str | None, channel: str | None
) -> tuple[Mailbox | None, str | None]:
    """Which things to list: those of a mailbox, or of an owner; all (None, None) for an admin."""
    if subscription is not None or channel is not None:
        return (await find_target(context, caller, subscription, channel)).mailbox, None
    if caller.actor.is_admin:
        return None, None
    if not caller.may(Role.READ) or not caller.actor.owner:
        raise refuse(caller, Role.READ)
    return None, caller.actor.owner
