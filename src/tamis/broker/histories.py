"""Subscriptions that asked for their history: since which event, and with which expression.

Whether an event belongs to the history of a subscription, or was matched live, is decided by the
change that is stored with the event: before the change that made the subscription, it is history.
So there is no moment at which the two must be joined.

A history is written before its subscription, with the hash of the ticket that the subscription will
have, and is tied to its number afterwards. After a crash in between, `settle` does that, or removes
the history if there is no such subscription.
"""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import delete, func, insert, select, update

from tamis.broker.tables import HISTORIES, take_numbers
from tamis.subscriptions.tables import CHANGES, IS_LATEST

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import Connection

    from tamis.live.index import LiveIndex
    from tamis.subscriptions import Subscribe, SubscriptionStore
    from tamis.subscriptions.model import Result


class History(NamedTuple):
    """What a subscription is to be told of the time before it."""

    subscription: int  # its number, which is that of the change that made it
    since: int  # events after this one
    expression: str


class _Unsettled(NamedTuple):
    """A history whose subscription is being made."""

    number: int
    subscription_id: str
    ticket_hash: bytes


class Histories:
    """The histories of a server. Every method may be called from any thread."""

    def __init__(self, store: SubscriptionStore) -> None:
        self._store = store
        self._lock = Lock()
        self._known: dict[int, History] = {}
        self._unsettled: dict[int, _Unsettled] = {}
        self._stamp: tuple[Any, ...] = ()
        self._n_loaded = 0
        self._load()

    def announce(
        self, subscription_id: str, ticket_hash: bytes, since: int, expression: str
    ) -> int:
        """Store the history of a subscription that is made next; returns its number."""

        def write(connection: Connection) -> int:
            number = take_numbers(connection)
            row: dict[str, Any] = {"subscription_id": subscription_id, "ticket_hash": ticket_hash}
            row |= {"number": number, "since": since, "expression": expression}
            connection.execute(insert(HISTORIES), row)
            return number

        number = self._store.run(write)
        with self._lock:
            self._unsettled[number] = _Unsettled(number, subscription_id, ticket_hash)
        return number

    def settle(self) -> None:
        """Tie the announced histories to the subscriptions that were made with their tickets."""
        with self._lock:
            waiting = [*self._unsettled.values()]
        if waiting:
            self._store.run(partial(_settle, waiting=waiting))
            self._load()

    def conclude(self, number: int) -> None:
        """Tie an announced history to its subscription; remove it if that was not made."""
        self._store.run(partial(_conclude, number=number))
        with self._lock:
            self._unsettled.pop(number, None)
        self._load()

    def conclude_all(self) -> None:
        """Conclude all histories: nobody makes their subscriptions any more."""
        with self._lock:
            waiting = [*self._unsettled]
        for number in waiting:
            self.conclude(number)

    def of(self, subscriptions: Collection[int]) -> list[History]:
        """The histories of those of the subscriptions that have one."""
        if self._store.is_read_only:
            self._load()
        elif self._unsettled:  # the subscription may be there, and its maker not yet be back
            self.settle()
        known = self._known
        if len(known) < len(subscriptions):
            return [own for number, own in known.items() if number in subscriptions]
        return [known[number] for number in subscriptions if number in known]

    def _load(self) -> None:
        # One thread reads at a time: a state that was read earlier must not replace a later one, in
        # which a history may have been announced.
        with self._lock, self._store.read() as connection:
            counts = select(
                func.count(), func.max(HISTORIES.c.number), func.count(HISTORIES.c.subscription)
            )
            stamp = tuple(connection.execute(counts).one())
            if stamp == self._stamp:
                return
            rows = connection.execute(select(HISTORIES)).all()
            self._stamp = stamp
            self._n_loaded += 1
            self._known = {
                row.subscription: History(row.subscription, row.since, row.expression)
                for row in rows
                if row.subscription is not None
            }
            self._unsettled = {
                row.number: _Unsettled(row.number, row.subscription_id, row.ticket_hash)
                for row in rows
                if row.subscription is None
            }

    def version(self) -> int:
        """A number that is another one after each change of the list."""
        if self._unsettled:
            self.settle()
        return self._n_loaded

    # Last, since annotations above mean the class `list`.
    def list(self) -> list[History]:
        """All histories whose subscriptions were made."""
        if self._unsettled:
            self.settle()
        return [*self._known.values()]


def subscribe_since(live: LiveIndex, histories: Histories, wanted: Subscribe, since: int) -> Result:
    """Make a subscription, which has a ticket, with a history: a crash leaves both or neither."""
    assert wanted.ticket_hash is not None
    number = histories.announce(wanted.id, wanted.ticket_hash, since, wanted.expression)
    try:
        (result,) = live.submit([wanted]).result()
    finally:
        histories.conclude(number)
    return result


def forget_history(connection: Connection, subscription: int) -> None:
    """Remove the history of a subscription that is forgotten."""
    connection.execute(delete(HISTORIES).where(HISTORIES.c.subscription == subscription))


def _conclude(connection: Connection, number: int) -> None:
    is_own = (HISTORIES.c.number == number) & HISTORIES.c.subscription.is_(None)
    row = connection.execute(select(HISTORIES).where(is_own)).one_or_none()
    if row is None:  # another thread has settled it
        return
    _tie(connection, _Unsettled(number, row.subscription_id, row.ticket_hash))
    connection.execute(delete(HISTORIES).where(is_own))


def _settle(connection: Connection, waiting: Sequence[_Unsettled]) -> None:
    for own in waiting:
        _tie(connection, own)


def _tie(connection: Connection, own: _Unsettled) -> None:
    latest = select(CHANGES.c.created, CHANGES.c.previous, CHANGES.c.number)
    latest = latest.where(IS_LATEST, CHANGES.c.subscription_id == own.subscription_id)
    found = connection.execute(latest).one_or_none()
    if found is None:
        return
    # After an end, the state before it names the subscription.
    place = found.previous if found.created is None else found.number
    state = select(CHANGES.c.created).where(CHANGES.c.number == place)
    created = connection.execute(state).scalar()
    made = select(CHANGES.c.ticket_hash).where(CHANGES.c.number == created)
    if connection.execute(made).scalar() == own.ticket_hash:
        is_own = HISTORIES.c.number == own.number
        connection.execute(update(HISTORIES).where(is_own).values(subscription=created))
