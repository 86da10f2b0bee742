"""Who owns a mailbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from tamis.broker.mailbox import Mailbox, MailboxKind
from tamis.broker.rights import Actor, expect_right
from tamis.broker.subscriptions import find_known
from tamis.broker.tables import CHANNELS
from tamis.errors import InputError, UnknownItemError

if TYPE_CHECKING:
    from sqlalchemy import Connection


def find_owner(connection: Connection, mailbox: Mailbox) -> str:
    """The owner of a mailbox; empty if it has none. Raises an `UnknownItemError`."""
    if not isinstance(mailbox, Mailbox):
        raise InputError(f"{mailbox!r:.100} is not a mailbox; a Mailbox is expected")
    if mailbox.kind is MailboxKind.SUBSCRIPTION:
        known = find_known(connection, [mailbox.number]).get(mailbox.number)
        owner = None if known is None else known.owner
    else:
        query = select(CHANNELS.c.owner).where(CHANNELS.c.number == mailbox.number)
        owner = connection.execute(query).scalar_one_or_none()
    if owner is None:
        raise UnknownItemError(f"there is no mailbox {mailbox}")
    return owner


def expect_mailbox(connection: Connection, actor: Actor, mailbox: Mailbox) -> str:
    """The owner of a mailbox that the actor may use."""
    owner = find_owner(connection, mailbox)
    expect_right(actor, owner, f"the mailbox {mailbox}", mailbox)
    return owner
