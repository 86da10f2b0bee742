"""Channels: mailboxes that several subscriptions share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import delete, insert, select

from tamis.arguments import expect_count
from tamis.broker.audit_log import Action, write_if_admin
from tamis.broker.checking import expect_text
from tamis.broker.ending import EndedMailbox, end_mailbox
from tamis.broker.mailbox import Mailbox, MailboxKind
from tamis.broker.pages import PAGE_SIZE, Cut, Page, read_page
from tamis.broker.quotas import expect_room
from tamis.broker.rights import Actor, expect_right
from tamis.broker.subscriptions import find_known
from tamis.broker.tables import CHANNELS, MEMBERS, take_numbers
from tamis.errors import InputError, NameTakenError, UnknownItemError
from tamis.language.types.moments import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from tamis.subscriptions import SubscriptionStore

_PAGE_SIZE = 1_000


class Channel(NamedTuple):
    """A mailbox with a name. The name may be used again after the channel is deleted."""

    number: int
    name: str
    owner: str
    created: datetime

    @property
    def mailbox(self) -> Mailbox:
        """Where its members' matches are read."""
        return Mailbox.of_channel(self.number)


class Member(NamedTuple):
    """A subscription of a channel."""

    subscription: int  # its number
    subscription_id: str
    added: datetime


class Channels:
    """The channels of a server. Only its owner, or an administrator, may change a channel."""

    def __init__(self, store: SubscriptionStore) -> None:
        self._store = store

    def create(
        self, actor: Actor, name: str, *, owner: str | None = None, most: int | None = None
    ) -> Channel:
        """Make a channel; only an administrator may make it for another owner. An owner may have
        `most` channels.
        """
        name = expect_text(name, "name")
        owner = actor.owner if owner is None else owner
        # A server without keys has no names of owners, for subscriptions neither.
        if owner or not actor.is_admin:
            owner = expect_text(owner, "owner")
        expect_right(actor, owner, f'a channel for "{owner}"')
        now = self._store.now()

        def write(connection: Connection) -> Channel:
            if _find(connection, name) is not None:
                raise NameTakenError(f'there is a channel "{name}" already')
            expect_room(connection, CHANNELS, owner, most)
            channel = Channel(take_numbers(connection), name, owner, from_microseconds(now))
            connection.execute(insert(CHANNELS), channel._asdict() | {"created": now})
            write_if_admin(connection, now, Action(actor, "channel.create", name))
            return channel

        return self._store.run(write)

    def get(self, name: str) -> Channel | None:
        """The channel of this name."""
        with self._store.read() as connection:
            return _find(connection, expect_text(name, "name"))

    def get_many(self, numbers: Iterable[int]) -> dict[int, Channel]:
        """The channels that exist among these numbers."""
        asked = sorted(set(numbers))
        found: dict[int, Channel] = {}
        for start in range(0, len(asked), _PAGE_SIZE):
            query = select(CHANNELS).where(CHANNELS.c.number.in_(asked[start : start + _PAGE_SIZE]))
            with self._store.read() as connection:
                found |= {row.number: _to_channel(row) for row in connection.execute(query)}
        return found

    def list(
        self, *, owner: str | None = None, after: int | None = None, limit: int = PAGE_SIZE
    ) -> Page[Channel]:
        """A page of the channels, the oldest first."""
        query = select(CHANNELS)
        if owner is not None:
            query = query.where(CHANNELS.c.owner == expect_text(owner, "owner"))
        return read_page(self._store, query, Cut(CHANNELS.c.number, after, limit), _to_channel)

    def delete(self, actor: Actor, name: str) -> EndedMailbox:
        """Delete a channel and all that hangs on it; returns what that was."""
        now = self._store.now()

        def write(connection: Connection) -> EndedMailbox:
            channel = _expect(connection, actor, name)
            ended = end_mailbox(connection, channel.mailbox)
            write_if_admin(connection, now, Action(actor, "channel.delete", name, ended.counts()))
            return ended

        return self._store.run(write)

    def add(self, actor: Actor, name: str, numbers: Iterable[int]) -> int:
        """Let subscriptions, by their numbers, share the channel; returns how many are new.

        The actor must have a right to each of them. If one is wrong, none is added.
        """
        asked, now = _check_numbers(numbers), self._store.now()

        def write(connection: Connection) -> int:
            channel = _expect(connection, actor, name)
            is_there = (MEMBERS.c.channel == channel.number, MEMBERS.c.subscription.in_(asked))
            present = connection.execute(select(MEMBERS.c.subscription).where(*is_there)).scalars()
            new = sorted(set(asked) - set(present))
            known = find_known(connection, new)
            rows = []
            for number in new:
                if number not in known:
                    raise UnknownItemError(f"there is no subscription with the number {number}")
                one = known[number]
                mailbox = Mailbox.of_subscription(number)
                expect_right(actor, one.owner, f'subscription "{one.id}"', mailbox)
                row = {"channel": channel.number, "subscription": number}
                rows.append(row | {"subscription_id": one.id, "added": now})
            if rows:
                connection.execute(insert(MEMBERS), rows)
                detail = {"n_subscriptions": len(rows)}
                write_if_admin(connection, now, Action(actor, "channel.add", name, detail))
            return len(rows)

        return self._store.run(write)

    def remove(self, actor: Actor, name: str, numbers: Iterable[int]) -> int:
        """Take subscriptions out of the channel; returns how many were in it."""
        asked, now = _check_numbers(numbers), self._store.now()

        def write(connection: Connection) -> int:
            channel = _expect(connection, actor, name)
            is_there = (MEMBERS.c.channel == channel.number, MEMBERS.c.subscription.in_(asked))
            n_removed = connection.execute(delete(MEMBERS).where(*is_there)).rowcount
            detail = {"n_subscriptions": n_removed}
            write_if_admin(connection, now, Action(actor, "channel.remove", name, detail))
            return n_removed

        return self._store.run(write)

    def members(
        self, number: int, *, after: int | None = None, limit: int = PAGE_SIZE
    ) -> Page[Member]:
        """A page of the subscriptions of a channel, by their numbers."""
        query = select(MEMBERS).where(MEMBERS.c.channel == expect_count(number, "number"))
        return read_page(self._store, query, Cut(MEMBERS.c.subscription, after, limit), _to_member)

    def numbers(self, mailbox: Mailbox) -> Sequence[int]:
        """The numbers of all subscriptions whose matches are in a mailbox, sorted."""
        if mailbox.kind is MailboxKind.SUBSCRIPTION:
            return [mailbox.number]
        query = select(MEMBERS.c.subscription).where(MEMBERS.c.channel == mailbox.number)
        with self._store.read() as connection:
            return list(connection.execute(query.order_by(MEMBERS.c.subscription)).scalars())


def _find(connection: Connection, name: str) -> Channel | None:
    row = connection.execute(select(CHANNELS).where(CHANNELS.c.name == name)).one_or_none()
    return None if row is None else _to_channel(row)


def _expect(connection: Connection, actor: Actor, name: str) -> Channel:
    channel = _find(connection, expect_text(name, "name"))
    if channel is None:
        raise UnknownItemError(f'there is no channel "{name}"')
    expect_right(actor, channel.owner, f'channel "{name}"')
    return channel


def _check_numbers(numbers: Iterable[int]) -> list[int]:
    asked = [expect_count(number, "a subscription's number") for number in numbers]
    if len(asked) > _PAGE_SIZE:
        raise InputError(f"{len(asked):,} subscriptions; at most {_PAGE_SIZE:,} at once")
    return asked


def _to_channel(row: Any) -> Channel:
    return Channel(row.number, row.name, row.owner, from_microseconds(row.created))


def _to_member(row: Any) -> Member:
    return Member(row.subscription, row.subscription_id, from_microseconds(row.added))
