"""What ends with a mailbox or an owner, and what that was."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import delete, select

from tamis.broker.histories import forget_history
from tamis.broker.keys import revoke_all
from tamis.broker.mailbox import Mailbox, MailboxKind
from tamis.broker.subscriptions import forget
from tamis.broker.tables import (
    CHANNELS,
    CURSORS,
    DEAD_LETTERS,
    DELIVERIES,
    DIGESTS,
    FEEDS,
    MEMBERS,
    SIGNING_SECRETS,
    WEBHOOKS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Connection, Table


class EndedMailbox(NamedTuple):
    """What hung on a mailbox, by number."""

    mailbox: Mailbox
    webhooks: Sequence[int]
    feeds: Sequence[int]
    digests: Sequence[int]
    n_dead_letters: int
    n_cursors: int
    n_members: int  # of a channel; or channels that the subscription was a member of

    def counts(self) -> dict[str, int]:
        """How much of each there was, for a log."""
        return {
            "n_webhooks": len(self.webhooks),
            "n_feeds": len(self.feeds),
            "n_digests": len(self.digests),
            "n_dead_letters": self.n_dead_letters,
            "n_cursors": self.n_cursors,
            "n_members": self.n_members,
        }


class EndedOwner(NamedTuple):
    """What belonged to an owner, apart from subscriptions."""

    keys: Sequence[str]  # ids; they are revoked
    mailboxes: Sequence[EndedMailbox]  # of channels
    webhooks: Sequence[int]  # of other mailboxes, as feeds and digests
    feeds: Sequence[int]
    digests: Sequence[int]


def end_mailbox(connection: Connection, mailbox: Mailbox) -> EndedMailbox:
    """Delete a mailbox and what hangs on it."""
    name, number = str(mailbox), mailbox.number
    webhooks = _find(connection, WEBHOOKS, WEBHOOKS.c.mailbox == name)
    n_dead_letters = delete_webhooks(connection, webhooks)
    is_channel = mailbox.kind is MailboxKind.CHANNEL
    member = MEMBERS.c.channel if is_channel else MEMBERS.c.subscription
    n_members = connection.execute(delete(MEMBERS).where(member == number)).rowcount
    if is_channel:
        connection.execute(delete(CHANNELS).where(CHANNELS.c.number == number))
    else:
        forget(connection, number)
        forget_history(connection, number)
    return EndedMailbox(
        mailbox,
        webhooks,
        _delete(connection, FEEDS, FEEDS.c.mailbox == name),
        _delete(connection, DIGESTS, DIGESTS.c.mailbox == name),
        n_dead_letters,
        connection.execute(delete(CURSORS).where(CURSORS.c.mailbox == name)).rowcount,
        n_members,
    )


def end_owner(connection: Connection, owner: str, now: int) -> EndedOwner:
    """Revoke the keys of an owner and delete their channels, webhooks, feeds and digests."""
    channels = _find(connection, CHANNELS, CHANNELS.c.owner == owner)
    mailboxes = [end_mailbox(connection, Mailbox.of_channel(number)) for number in channels]
    webhooks = _find(connection, WEBHOOKS, WEBHOOKS.c.owner == owner)
    delete_webhooks(connection, webhooks)
    return EndedOwner(
        revoke_all(connection, owner, now),
        mailboxes,
        webhooks,
        _delete(connection, FEEDS, FEEDS.c.owner == owner),
        _delete(connection, DIGESTS, DIGESTS.c.owner == owner),
    )


def delete_webhooks(connection: Connection, numbers: Sequence[int]) -> int:
    """Delete webhooks with their secrets, logs and dead letters; returns how many of the last."""
    n_dead_letters = 0
    for number in numbers:
        connection.execute(delete(WEBHOOKS).where(WEBHOOKS.c.number == number))
        connection.execute(delete(SIGNING_SECRETS).where(SIGNING_SECRETS.c.webhook == number))
        connection.execute(delete(DELIVERIES).where(DELIVERIES.c.webhook == number))
        dead = delete(DEAD_LETTERS).where(DEAD_LETTERS.c.webhook == number)
        n_dead_letters += connection.execute(dead).rowcount
    return n_dead_letters


def _find(connection: Connection, table: Table, where: ColumnElement[bool]) -> list[int]:
    query = select(table.c.number).where(where).order_by(table.c.number)
    return list(connection.execute(query).scalars())


def _delete(connection: Connection, table: Table, where: ColumnElement[bool]) -> list[int]:
    numbers = _find(connection, table, where)
    connection.execute(delete(table).where(where))
    return numbers
