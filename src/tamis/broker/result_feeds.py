"""Result feeds: a mailbox behind an address that nobody can guess, until it is revoked."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import insert, select, update

from tamis.arguments import expect_count
from tamis.broker.audit_log import Action, write_if_admin
from tamis.broker.checking import expect_member, expect_text, to_moment
from tamis.broker.mailbox import Mailbox
from tamis.broker.owners import expect_mailbox
from tamis.broker.pages import PAGE_SIZE, Cut, Page, read_page, select_owned
from tamis.broker.quotas import expect_room
from tamis.broker.rights import Actor, expect_right
from tamis.broker.secrets import Purpose, Secret, ServerSecret, new_feed_token
from tamis.broker.tables import FEEDS, take_numbers
from tamis.errors import UnknownItemError
from tamis.language.types.moments import from_microseconds

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from tamis.subscriptions import SubscriptionStore


class FeedKind(StrEnum):
    """The format of a feed."""

    ATOM = "atom"
    JSON = "json"


class Feed(NamedTuple):
    """A feed, without its token."""

    number: int
    mailbox: Mailbox
    owner: str
    title: str
    kind: FeedKind
    created: datetime
    revoked: datetime | None


class NewFeed(NamedTuple):
    """A feed that was just made."""

    feed: Feed
    token: Secret  # for its address, shown once


class Feeds:
    """The feeds of a server."""

    def __init__(self, store: SubscriptionStore, secret: ServerSecret) -> None:
        self._store = store
        self._secret = secret

    def create(
        self,
        actor: Actor,
        mailbox: Mailbox,
        title: str,
        kind: FeedKind | str = FeedKind.ATOM,
        *,
        most: int | None = None,
    ) -> NewFeed:
        """Make a feed; its token is returned here and never again. An owner may have `most` feeds
        that are not revoked.
        """
        title, kind = expect_text(title, "title"), expect_member(kind, FeedKind, "kind")
        token, now = new_feed_token(), self._store.now()
        token_hash = self._secret.hash(Purpose.FEED, token.reveal())

        def write(connection: Connection) -> Feed:
            owner = expect_mailbox(connection, actor, mailbox)
            expect_room(connection, FEEDS, owner, most, FEEDS.c.revoked.is_(None))
            number = take_numbers(connection)
            feed = Feed(number, mailbox, owner, title, kind, from_microseconds(now), None)
            stored = {"mailbox": str(mailbox), "kind": kind.value, "created": now}
            row = feed._asdict() | stored | {"hash": token_hash}
            connection.execute(insert(FEEDS), row)
            _log(connection, now, actor, "create", feed)
            return feed

        return NewFeed(self._store.run(write), token)

    def authenticate(self, token: Any) -> Feed | None:
        """The feed with this token; None if there is none, or it was revoked.

        It is found by the keyed hash of the token, so the time it takes tells nothing about others.
        """
        shown = token if isinstance(token, str) else ""
        query = select(FEEDS).where(FEEDS.c.hash == self._secret.hash(Purpose.FEED, shown))
        with self._store.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None or not self._secret.verify(Purpose.FEED, shown, row.hash):
            return None
        return None if row.revoked is not None else _to_feed(row)

    def get(self, number: int) -> Feed | None:
        """The feed with this number."""
        query = select(FEEDS).where(FEEDS.c.number == expect_count(number, "number"))
        with self._store.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _to_feed(row)

    def list(
        self,
        *,
        mailbox: Mailbox | None = None,
        owner: str | None = None,
        after: int | None = None,
        limit: int = PAGE_SIZE,
    ) -> Page[Feed]:
        """A page of the feeds, the oldest first; revoked ones too."""
        query = select_owned(FEEDS, mailbox, owner)
        return read_page(self._store, query, Cut(FEEDS.c.number, after, limit), _to_feed)

    def revoke(self, actor: Actor, number: int) -> Feed:
        """Make the address of a feed invalid; one that is revoked already stays as it is."""
        number, now = expect_count(number, "number"), self._store.now()

        def write(connection: Connection) -> Feed:
            is_asked = FEEDS.c.number == number
            row = connection.execute(select(FEEDS).where(is_asked)).one_or_none()
            if row is None:
                raise UnknownItemError(f"there is no feed {number}")
            feed = _to_feed(row)
            expect_right(actor, feed.owner, f"feed {number}", feed.mailbox)
            if feed.revoked is not None:
                return feed
            connection.execute(update(FEEDS).where(is_asked).values(revoked=now))
            _log(connection, now, actor, "revoke", feed)
            return feed._replace(revoked=from_microseconds(now))

        return self._store.run(write)


def _log(connection: Connection, now: int, actor: Actor, action: str, feed: Feed) -> None:
    detail = {"mailbox": str(feed.mailbox), "owner": feed.owner}
    write_if_admin(connection, now, Action(actor, f"feed.{action}", str(feed.number), detail))


def _to_feed(row: Any) -> Feed:
    return Feed(
        row.number,
        Mailbox.parse(row.mailbox),
        row.owner,
        row.title,
        FeedKind(row.kind),
        from_microseconds(row.created),
        to_moment(row.revoked),
    )
