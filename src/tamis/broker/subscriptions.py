"""Which subscription a number is, even after it has ended.

The log of changes answers this as long as it has the subscription. `remember_ended` keeps what the
log is about to lose, for subscriptions that still have mail.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import delete, func, insert, select

from tamis.broker.checking import to_moment
from tamis.broker.tables import ENDED
from tamis.subscriptions.checking import is_storable
from tamis.subscriptions.tables import CHANGES, HAS_STATE, IS_LATEST, IS_REVISED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from tamis.subscriptions import SubscriptionStore

    HasMail = Callable[[Sequence[int]], Collection[int]]

_PAGE_SIZE: Final = 1_000


class KnownSubscription(NamedTuple):
    """A subscription that exists, or has ended and still has a mailbox."""

    number: int
    id: str
    owner: str
    ticket_hash: bytes | None
    ended: int | None  # the change that ended it
    ended_at: datetime | None


class KnownSubscriptions:
    """Finds subscriptions by number and by id."""

    def __init__(self, store: SubscriptionStore) -> None:
        self._store = store

    def get(self, number: int) -> KnownSubscription | None:
        """The subscription with this number."""
        return self.get_many([number]).get(number)

    def get_many(self, numbers: Iterable[int]) -> dict[int, KnownSubscription]:
        """The known subscriptions among these numbers."""
        asked = list(dict.fromkeys(numbers))
        found: dict[int, KnownSubscription] = {}
        for start in range(0, len(asked), _PAGE_SIZE):
            with self._store.read() as connection:
                found |= find_known(connection, asked[start : start + _PAGE_SIZE])
        return found

    def find(self, subscription_id: str) -> KnownSubscription | None:
        """The subscription that has this id; if none has it, the last one that had it."""
        if not isinstance(subscription_id, str) or not is_storable(subscription_id):
            return None
        with self._store.read() as connection:
            return find_by_id(connection, subscription_id)

    def remember_ended(self, before: int, has_mail: HasMail) -> list[int]:
        """Keep the ended subscriptions that the log loses when it is pruned up to a change.

        `has_mail` returns those of some numbers that still have matches in the archive. Returns the
        numbers of the others: their mailboxes can be ended.
        """
        without_mail: list[int] = []
        after = 0
        while ends := self._read_ends(after, before):
            after = ends[-1]["ended"]
            mail = set(has_mail([end["number"] for end in ends]))
            kept = [end for end in ends if end["number"] in mail]
            without_mail += [end["number"] for end in ends if end["number"] not in mail]
            if kept:
                self._store.run(partial(_remember, ends=kept))
        return without_mail

    def list_forgettable(self, has_mail: HasMail) -> list[int]:
        """The numbers of remembered subscriptions that have no more mail."""
        found: list[int] = []
        query = select(ENDED.c.number).order_by(ENDED.c.number).limit(_PAGE_SIZE)
        after, is_more = 0, True
        while is_more:
            with self._store.read() as connection:
                numbers = list(connection.execute(query.where(ENDED.c.number > after)).scalars())
            mail = set(has_mail(numbers)) if numbers else set()
            found += [number for number in numbers if number not in mail]
            after, is_more = max(numbers, default=0), len(numbers) == _PAGE_SIZE
        return found

    def _read_ends(self, after: int, before: int) -> list[dict[str, Any]]:
        """The next subscriptions that ended after one change and not after the other."""
        end = CHANGES.alias("ends")
        query = (
            select(
                CHANGES.c.created.label("number"),
                CHANGES.c.subscription_id,
                CHANGES.c.owner,
                CHANGES.c.ticket_hash,
                end.c.number.label("ended"),
                end.c.moment,
            )
            .join(CHANGES, end.c.previous == CHANGES.c.number)
            .where(end.c.created.is_(None), HAS_STATE)
            .where(end.c.number > after, end.c.number <= before)
            .order_by(end.c.number)
            .limit(_PAGE_SIZE)
        )
        with self._store.read() as connection:
            return [dict(row._mapping) for row in connection.execute(query)]


def find_known(connection: Connection, numbers: Sequence[int]) -> dict[int, KnownSubscription]:
    """The known subscriptions among a page of numbers."""
    changes = CHANGES.c
    # A number is that of a subscription if the change with this number created it.
    newest = {
        number: number
        for number in connection.execute(
            select(changes.number).where(
                changes.number.in_(numbers), changes.created == changes.number
            )
        ).scalars()
    }
    revised = select(changes.created, func.max(changes.number)).where(IS_REVISED)
    revised = revised.where(changes.created.in_(numbers)).group_by(changes.created)
    newest |= {row[0]: row[1] for row in connection.execute(revised)}
    rows = connection.execute(_select_ends().where(changes.number.in_(newest.values())))
    found = {row.number: _to_known(row) for row in rows}
    missing = [number for number in numbers if number not in found]
    if missing:
        remembered = connection.execute(select(ENDED).where(ENDED.c.number.in_(missing)))
        found |= {row.number: _to_known(row) for row in remembered}
    return found


def find_by_id(connection: Connection, subscription_id: str) -> KnownSubscription | None:
    """The subscription that has this id, or the last one that had it."""
    is_asked = CHANGES.c.subscription_id == subscription_id
    latest = connection.execute(
        select(CHANGES.c.number, CHANGES.c.created, CHANGES.c.previous).where(IS_LATEST, is_asked)
    ).one_or_none()
    if latest is not None:
        change = latest.previous if latest.created is None else latest.number
        row = connection.execute(_select_ends().where(CHANGES.c.number == change)).one_or_none()
        if row is not None:
            return _to_known(row)
    query = select(ENDED).where(ENDED.c.subscription_id == subscription_id)
    row = connection.execute(query.order_by(ENDED.c.number.desc()).limit(1)).one_or_none()
    return None if row is None else _to_known(row)


def forget(connection: Connection, number: int) -> None:
    """Forget an ended subscription."""
    connection.execute(delete(ENDED).where(ENDED.c.number == number))


def _select_ends() -> Any:
    """Newest states of subscriptions, each with the change that ended it, if one did."""
    end = CHANGES.alias("ends")
    return select(
        CHANGES.c.created.label("number"),
        CHANGES.c.subscription_id,
        CHANGES.c.owner,
        CHANGES.c.ticket_hash,
        CHANGES.c.superseded_by.label("ended"),
        end.c.moment,
    ).outerjoin(end, end.c.number == CHANGES.c.superseded_by)


def _remember(connection: Connection, ends: list[dict[str, Any]]) -> None:
    numbers = [end["number"] for end in ends]
    known = set(
        connection.execute(select(ENDED.c.number).where(ENDED.c.number.in_(numbers))).scalars()
    )
    new = [end for end in ends if end["number"] not in known]
    if new:
        connection.execute(insert(ENDED), new)


def _to_known(row: Any) -> KnownSubscription:
    moment = None if row.ended is None else to_moment(row.moment)
    return KnownSubscription(
        row.number, row.subscription_id, row.owner, row.ticket_hash, row.ended, moment
    )
