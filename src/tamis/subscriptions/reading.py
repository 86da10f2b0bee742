"""Queries of the store.

Each reads a page in a short transaction: so readers do not delay the writer or its checkpoints, and
never see half a transaction.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import and_, case, func, or_, select

from tamis.errors import HistoryError, InputError, StoreError
from tamis.subscriptions.checking import is_storable
from tamis.subscriptions.failures import translated
from tamis.subscriptions.model import LEFT_SHARE, MOST_LEFT, ChangeKind, State
from tamis.subscriptions.rows import TAG_SEPARATOR, Row
from tamis.subscriptions.tables import CHANGES, HAS_END, HAS_STATE, IS_LATEST, STORE, TAGS
from tamis.subscriptions.tags import make_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import ColumnElement, Connection, Select

    from tamis.subscriptions.database import Database

PAGE_SIZE: Final = 1_000
_MICROSECOND: Final = timedelta(microseconds=1)
_VERSION_HINT: Final = "start from a version, or from `state_at` of the last change"


class StoreFacts(NamedTuple):
    """The one row about the store as a whole."""

    epoch: str  # identifies the history
    last_change: int
    horizon: int  # states before this change were pruned
    moment: int


class Filters(NamedTuple):
    """Which subscriptions a list has; None is no limit."""

    owner: str | None = None
    tag: str | None = None
    text: str | None = None  # part of the id or the expression; ASCII letters in any case
    state: State | None = None  # None: waiting or valid
    ends_before: int | None = None  # microseconds


@contextmanager
def reading(database: Database) -> Iterator[Connection]:
    """A connection for one page."""
    if database.is_closed:
        raise StoreError(f"the store at {database.where} is closed")
    with translated(database.where), database.reader.begin() as connection:
        yield connection


def read_facts(connection: Connection) -> StoreFacts:
    """The current facts."""
    columns = (STORE.c.epoch, STORE.c.last_change, STORE.c.horizon, STORE.c.moment)
    return StoreFacts._make(connection.execute(select(*columns)).one())


def read_changes(database: Database, after: int, limit: int, epoch: str | None) -> list[Row]:
    """The first changes after a change number; raises `HistoryError` if some were pruned."""
    query = select(CHANGES).where(CHANGES.c.number > after).order_by(CHANGES.c.number).limit(limit)
    with reading(database) as connection:
        rows = [Row._make(row) for row in connection.execute(query)]
        # Read after the rows: a prune sets the horizon before it deletes rows.
        facts = read_facts(connection)
    if epoch is not None and epoch != facts.epoch:
        raise HistoryError(
            f"the store at {database.where} has another history: its epoch is {facts.epoch}, "
            f"not {epoch}",
            hint=_VERSION_HINT,
        )
    expect_change(facts, after, database.where)
    return rows


def read_history(database: Database, latest: Row) -> Iterator[Row]:
    """The changes of one subscription from its newest row back, as far as the log has them."""
    row: Row | None = latest
    while row is not None:
        yield row
        if row.previous is None:
            return
        query = select(CHANGES).where(CHANGES.c.number == row.previous)
        with reading(database) as connection:
            found = connection.execute(query).one_or_none()
        row = None if found is None else Row._make(found)


def expect_change(facts: StoreFacts, number: int, where: str) -> None:
    """Raise a `HistoryError` for a change number whose state cannot be rebuilt."""
    if number < facts.horizon:
        raise HistoryError(
            f"the log at {where} begins at change {facts.horizon}; {number} is before that",
            hint=_VERSION_HINT,
        )
    if number > facts.last_change:
        raise HistoryError(
            f"the log at {where} ends at change {facts.last_change}; {number} is after that",
            hint=f"if {number} existed before, history was lost: {_VERSION_HINT}",
        )


def read_state(database: Database, at: int, after: int, up_to: int) -> Iterator[Row]:
    """The rows whose states are valid as of a change, by number; those in (after, up_to].

    A row never changes, except that a later change supersedes it. So pages that are read in several
    transactions are consistent.
    """
    is_there = or_(IS_LATEST, CHANGES.c.superseded_by > at)
    query = select(CHANGES).where(HAS_STATE, CHANGES.c.number <= up_to, is_there)
    query = query.order_by(CHANGES.c.number).limit(PAGE_SIZE)
    is_more = True
    while is_more:
        with reading(database) as connection:
            found = connection.execute(query.where(CHANGES.c.number > after))
            rows = [Row._make(row) for row in found]
            expect_change(read_facts(connection), at, database.where)
        is_more = len(rows) == PAGE_SIZE
        after = rows[-1].number if rows else after
        yield from rows


def read_due(database: Database, now: int, limit: int) -> list[str]:
    """Ids whose leases have ended without an entry in the log, the earliest first."""
    query = select(CHANGES.c.subscription_id).where(HAS_END, CHANGES.c.valid_until <= now)
    query = query.order_by(CHANGES.c.valid_until, CHANGES.c.number).limit(limit)
    with reading(database) as connection:
        return list(connection.execute(query).scalars())


def read_moment_of(database: Database, number: int) -> int:
    """The moment of a change, or of the last one before it that the log has; 0 if it has none."""
    query = select(func.max(CHANGES.c.moment)).where(CHANGES.c.number <= number)
    with reading(database) as connection:
        return connection.execute(query).scalar_one_or_none() or 0


def read_change_at(database: Database, moment: int) -> int:
    """The last change at or before a moment. Moments never decrease, so bisection finds it."""
    with reading(database) as connection:
        facts = read_facts(connection)
        low, high = facts.horizon, facts.last_change
        while low < high:
            middle = (low + high + 1) // 2
            query = select(CHANGES.c.moment).where(CHANGES.c.number == middle)
            found = connection.execute(query).scalar_one()
            low, high = (middle, high) if found <= moment else (low, middle - 1)
    return low


# ── lists ───────────────────────────────────────────────────────────────────────────────────


def read_list(
    database: Database, filters: Filters, now: int, after: str | None, limit: int
) -> list[Row]:
    """A page of the subscriptions that pass the filters, by id."""
    query = _select(database, filters, now, after).limit(limit)
    with reading(database) as connection:
        return [Row._make(row) for row in connection.execute(query)]


def read_count(database: Database, filters: Filters, now: int) -> int:
    """How many subscriptions pass the filters."""
    query = select(func.count()).select_from(_select(database, filters, now, None).subquery())
    with reading(database) as connection:
        return connection.execute(query).scalar_one()


def _select(database: Database, filters: Filters, now: int, after: str | None) -> Select[Any]:
    texts = filters._replace(ends_before=None)._asdict()
    for name, value in (*texts.items(), ("after", after)):
        if value is not None and not (isinstance(value, str) and is_storable(value)):
            raise InputError(f"{name} is {value!r:.100}; text is expected, without NUL")
    ids: ColumnElement[str] = CHANGES.c.subscription_id
    if filters.state is State.EXPIRED:
        # The entry that ends a lease has no state; the entry before it has.
        end = CHANGES.alias("ends")
        ended = case((end.c.kind == ChangeKind.EXPIRE.value, end.c.previous), else_=end.c.number)
        query = select(CHANGES).join(end, CHANGES.c.number == ended)
        is_over = or_(end.c.kind == ChangeKind.EXPIRE.value, end.c.valid_until <= now)
        query = query.where(end.c.superseded_by.is_(None), is_over)
        ids = end.c.subscription_id
    else:
        query = select(CHANGES).where(IS_LATEST, HAS_STATE, _is_held(filters.state, now))
        if filters.tag is not None:
            query = query.join(TAGS, TAGS.c.subscription_id == CHANGES.c.subscription_id)
            query = query.where(TAGS.c.tag == make_key(filters.tag))
            ids = TAGS.c.subscription_id
    if after is not None:
        query = query.where(ids > after)
    return query.where(*_wanted(database, filters)).order_by(ids)


def _is_held(state: State | None, now: int) -> ColumnElement[bool]:
    is_held = or_(CHANGES.c.valid_until.is_(None), CHANGES.c.valid_until > now)
    if state is State.WAITING:
        return and_(is_held, CHANGES.c.valid_from > now)
    is_valid = and_(is_held, or_(CHANGES.c.valid_from.is_(None), CHANGES.c.valid_from <= now))
    if state is State.EXPIRING:
        return and_(is_valid, _expires_soon(now))
    return is_valid if state is State.VALID else is_held


def _expires_soon(now: int) -> ColumnElement[bool]:
    """As `Subscription.expires_soon`; a comparison of the column alone uses the index of ends."""
    until, left = CHANGES.c.valid_until, LEFT_SHARE * (CHANGES.c.valid_until - now)
    begun = or_(CHANGES.c.valid_from.is_(None), left < until - CHANGES.c.valid_from)
    return and_(until < now + MOST_LEFT // _MICROSECOND, left < until - CHANGES.c.moment, begun)


def _wanted(database: Database, filters: Filters) -> Iterator[ColumnElement[bool]]:
    find = func.instr if database.reader.dialect.name == "sqlite" else func.strpos
    if filters.owner is not None:
        yield CHANGES.c.owner == filters.owner
        if filters.owner:
            yield CHANGES.c.owner != ""  # lets the database use the index of owners
    if filters.tag is not None:
        yield find(CHANGES.c.tags, f"{TAG_SEPARATOR}{filters.tag}{TAG_SEPARATOR}") > 0
    if filters.text is not None:
        # As bytes: databases fold letters outside ASCII in different ways.
        text = filters.text.encode().lower().decode()
        places = (CHANGES.c.subscription_id, CHANGES.c.expression)
        yield or_(*(find(func.lower(place), text) > 0 for place in places))
    if filters.ends_before is not None:
        yield CHANGES.c.valid_until < filters.ends_before
