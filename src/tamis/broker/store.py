"""Everything small that a match server remembers, in the database of its subscriptions."""

from __future__ import annotations

import random
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import inspect, select

from tamis.broker.audit_log import Action, AuditLog, write_entry
from tamis.broker.channels import Channels
from tamis.broker.checking import expect_text
from tamis.broker.cursors import Cursors
from tamis.broker.digests import Digests
from tamis.broker.ending import EndedMailbox, EndedOwner, end_mailbox, end_owner
from tamis.broker.groupings import Groupings
from tamis.broker.histories import Histories
from tamis.broker.keys import Keys
from tamis.broker.mailbox import Mailbox
from tamis.broker.result_feeds import Feeds
from tamis.broker.retries import DEFAULT_POLICY, RetryPolicy
from tamis.broker.rights import Actor, expect_admin
from tamis.broker.secrets import FILE, SERVER_SECRET_BYTES, ServerSecret
from tamis.broker.sessions import Sessions
from tamis.broker.source_fetches import SourceFetches
from tamis.broker.sources import Sources
from tamis.broker.subscriptions import KnownSubscriptions
from tamis.broker.tables import FEEDS, KEYS, expect_format, migrate
from tamis.broker.tickets import Tickets
from tamis.broker.webhooks import Webhooks
from tamis.errors import StoreError
from tamis.subscriptions.tables import CHANGES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection

    from tamis.broker.subscriptions import HasMail
    from tamis.subscriptions import SubscriptionStore


class Pruned(NamedTuple):
    """What went with old changes."""

    n_changes: int
    mailboxes: list[EndedMailbox]  # of subscriptions that have ended and have no more mail


def load_secret(folder: Path, store: SubscriptionStore) -> ServerSecret:
    """The secret in the folder of a server; created if nothing was handed out yet.

    Raises a `StoreError` if it is missing: a new one would make every ticket and key invalid.
    """
    path = folder / FILE
    if not path.exists() and _has_hashes(store):
        raise StoreError(
            f"{path} is missing: without it, no ticket, no key and no address of a feed is valid",
            hint="restore it from a backup; or, to go on with a new one, make it: "
            f"head -c {SERVER_SECRET_BYTES} /dev/urandom > {path}; chmod 600 {path}",
        )
    return ServerSecret.load(folder)


def _has_hashes(store: SubscriptionStore) -> bool:
    """Whether something was handed out whose hash is in the database."""
    has_ticket = CHANGES.c.ticket_hash.is_not(None)
    with store.read() as connection:
        queries = [select(CHANGES.c.number).where(has_ticket)]
        if inspect(connection).has_table(KEYS.name):
            queries += [select(KEYS.c.number), select(FEEDS.c.number)]
        return any(connection.execute(own.limit(1)).first() is not None for own in queries)


class Broker:
    """The tables of a match server; one attribute for each group of them.

    Every method may be called from any thread. A method that changes something returns when the
    change is on disk.
    """

    def __init__(
        self,
        store: SubscriptionStore,
        secret: ServerSecret,
        *,
        timer: Callable[[], float] = time.monotonic,
        policy: RetryPolicy = DEFAULT_POLICY,
        dice: Callable[[], float] = random.random,
    ) -> None:
        """Create the tables if there are none; a store opened for reading only must have them."""
        if store.is_read_only:
            with store.read() as connection:
                expect_format(connection, store.where)
        else:
            store.run(partial(migrate, where=store.where))
        self.store = store
        self.keys = Keys(store, secret, timer=timer)
        self.sessions = Sessions(self.keys, secret, store.now)
        self.tickets = Tickets(secret)
        self.audit_log = AuditLog(store)
        self.subscriptions = KnownSubscriptions(store)
        self.channels = Channels(store)
        self.cursors = Cursors(store)
        self.webhooks = Webhooks(store, policy, dice)
        self.feeds = Feeds(store, secret)
        self.digests = Digests(store)
        self.histories = Histories(store)
        self.groupings = Groupings(store)
        self.sources = Sources(store)
        self.source_fetches = SourceFetches(store)

    def prune(self, before: int, has_mail: HasMail) -> Pruned:
        """Prune the log of changes, and end the mailboxes of ended subscriptions without mail.

        `has_mail` gets numbers of subscriptions and returns those that still have matches in the
        archive. Their mailboxes stay readable although the log no longer has them.
        """
        gone = self.subscriptions.remember_ended(before, has_mail)
        gone += self.subscriptions.list_forgettable(has_mail)
        mailboxes = [self._end_mailbox(Mailbox.of_subscription(number)) for number in gone]
        return Pruned(self.store.prune(before), mailboxes)

    def end_owner(self, actor: Actor, owner: str) -> EndedOwner:
        """End what belongs to an owner, apart from subscriptions; returns what that was."""
        expect_admin(actor, "remove owners")
        owner, now = expect_text(owner, "owner"), self.store.now()

        def write(connection: Connection) -> EndedOwner:
            ended = end_owner(connection, owner, now)
            detail = {"n_keys": len(ended.keys), "n_channels": len(ended.mailboxes)}
            write_entry(connection, now, Action(actor, "owner.end", owner, detail))
            return ended

        ended = self.store.run(write)
        self.keys.forget_cached()
        return ended

    def _end_mailbox(self, mailbox: Mailbox) -> EndedMailbox:
        return self.store.run(partial(end_mailbox, mailbox=mailbox))
