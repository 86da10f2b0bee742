"""The store of subscriptions: the current set, and the log of its changes."""

from __future__ import annotations

import os
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import and_, delete, or_, select, update

from tamis.arguments import expect_count, expect_names
from tamis.errors import InputError, StoreError
from tamis.language.moments import read_at
from tamis.language.types.moments import from_microseconds, to_microseconds
from tamis.places import DATABASES
from tamis.subscriptions import reading
from tamis.subscriptions.checking import check, check_end, is_storable
from tamis.subscriptions.clock import StoreClock, read_system_clock
from tamis.subscriptions.failures import translated
from tamis.subscriptions.model import Accepted, Page, State
from tamis.subscriptions.postgres import PostgresDatabase
from tamis.subscriptions.reading import Filters
from tamis.subscriptions.rows import to_change, to_subscription
from tamis.subscriptions.sqlite import SqliteDatabase
from tamis.subscriptions.tables import CHANGES, STORE, expect_format, new_epoch
from tamis.subscriptions.writer import Writer, find_latest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from contextlib import AbstractContextManager
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    from sqlalchemy import Connection

    from tamis.subscriptions.checking import Checked
    from tamis.subscriptions.database import Database
    from tamis.subscriptions.model import Change, Refused, Request, Result, Subscription
    from tamis.subscriptions.rows import Row

_T = TypeVar("_T")

_EXPIRE_SIZE: Final = 5_000  # leases ended in one transaction
_PRUNE_SIZE: Final = 20_000  # rows looked at in one transaction

PATIENCE: Final = 10.0  # seconds: an answer waits no longer for its moment to be on disk


class SubscriptionStore:
    """A durable set of subscriptions, and the ordered log of its changes.

    Every method may be called from any thread. `apply` returns when its changes are on disk; every
    later call, in this process or another, sees them.
    """

    def __init__(self, database: Database, clock: StoreClock, writer: Writer | None) -> None:
        """Use `open`."""
        self._database = database
        self._clock = clock
        self._writer = writer

    @classmethod
    def open(
        cls,
        place: str | os.PathLike[str],
        *,
        read_only: bool = False,
        clock: Callable[[], datetime] = read_system_clock,
        on_commit: Callable[[Sequence[Change]], None] | None = None,
    ) -> Self:
        """Open the store in a folder, or in a database ("postgresql://…"), or create it.

        Only one process may open it for writing; for a second one, this raises a `StoreInUseError`.
        Any number may read and follow it with `read_only`. `on_commit` gets the changes of each
        transaction in order, on the writer's thread, after they are on disk and before `apply`
        returns; it must neither raise an error nor wait for the store.
        """
        database = _find_database(place, read_only=read_only)
        store_clock = StoreClock(clock)
        if not read_only:
            return cls(database, store_clock, Writer(database, store_clock, on_commit))
        try:
            with reading.reading(database) as connection:
                expect_format(connection, database.where)
        except BaseException:
            database.close()
            raise
        return cls(database, store_clock, None)

    def close(self) -> None:
        """Finish the pending changes and release the store for another writer."""
        if self._writer is not None:
            self._writer.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ── changes ─────────────────────────────────────────────────────────────────────────────

    def apply(self, requests: Iterable[Request]) -> list[Result]:
        """Apply requests in order, in one transaction; returns a result for each.

        A refused request changes nothing and does not affect the others. Requests of other
        threads may be in the same transaction, before or after these, never between them.
        """
        return self.submit(requests).result()

    def submit(self, requests: Iterable[Request]) -> Future[list[Result]]:
        """As `apply`, without waiting; a future cancelled before it is running changes nothing."""
        return self.submit_checked([check(request) for request in requests])

    def submit_checked(self, requests: Sequence[Checked | Refused]) -> Future[list[Result]]:
        """The same for requests that are checked already."""
        return self._expect_writer().submit(requests)

    def expire(self, now: Any = None) -> int:
        """Write an entry for each lease that has ended; return how many.

        A lease ends at its `valid_until`, even if the entry is written later. If `now` is ahead of
        the clock, the store's clock moves to it.
        """
        writer = self._expect_writer()
        if now is not None:
            self._clock.advance(to_microseconds(read_at(now)))
        n_expired = 0
        while due := reading.read_due(self._database, self._clock.now(), _EXPIRE_SIZE):
            results = writer.submit([check_end(one) for one in due]).result()
            n_expired += sum(isinstance(result, Accepted) for result in results)
        return n_expired

    def prune(self, before: int) -> int:
        """Delete what only states before a change need; return how many entries were deleted.

        The state as of that change stays, so this and all later ones can still be rebuilt. For a
        retention by age, ask `change_at` for the number.
        """
        writer = self._expect_writer()
        before = expect_count(before, "before", least=0)
        writer.run(lambda connection: self._set_horizon(connection, before))
        n_deleted, after = 0, -1
        while after < before:
            n_page, after = writer.run(partial(_prune, after=after, before=before))
            n_deleted += n_page
        return n_deleted

    def vacuum(self) -> None:
        """Return free space, such as that of pruned entries, to the file system.

        Without it, later changes use that space. SQLite rewrites the file, and changes wait.
        """
        self._expect_writer().run(self._database.vacuum, has_transaction=False)

    def backup(self, folder: str | os.PathLike[str]) -> int:
        """Copy the store as it is now to a new folder, while it is used; returns the last change
        in the copy. Call `renew_epoch` when you go on with a copy.

        Raises a `StoreError` for PostgreSQL, whose own tools do that.
        """
        with self.read() as connection:
            last_change = reading.read_facts(connection).last_change
            self._database.copy(connection, Path(folder))
        return last_change

    def renew_epoch(self) -> str:
        """Give the store a new epoch after a backup was restored, so that followers start over."""
        return self._expect_writer().run(_renew_epoch)

    # ── other tables in the same database ───────────────────────────────────────────────────

    def run(self, task: Callable[[Connection], _T]) -> _T:
        """The result of a task that writes other tables of the database, once that is on disk.

        Tasks that wait at the same time share a transaction, and with it an fsync. A task that
        raises an error changes nothing and does not affect the others. A task must not call this
        store: it runs on the thread of the only writer.
        """
        return self.submit_task(task).result()

    def submit_task(self, task: Callable[[Connection], _T]) -> Future[_T]:
        """As `run`, without waiting."""
        return self._expect_writer().submit_task(task)

    def read(self) -> AbstractContextManager[Connection]:
        """A connection that reads one page of other tables, in a short transaction."""
        return reading.reading(self._database)

    def now(self) -> int:
        """The store's time, as `moment`, in microseconds since 1970."""
        return self._moment()

    @property
    def is_read_only(self) -> bool:
        """Whether the store was opened for reading only."""
        return self._writer is None

    def _set_horizon(self, connection: Connection, before: int) -> None:
        last_change = reading.read_facts(connection).last_change
        if before > last_change:
            raise InputError(f"before is {before}; the last change is {last_change}")
        connection.execute(update(STORE).where(STORE.c.horizon < before).values(horizon=before))

    def _expect_writer(self) -> Writer:
        if self._writer is None:
            raise StoreError(
                f"the store at {self._database.where} is open for reading only",
                hint="open it without read_only=True",
            )
        return self._writer

    # ── the set ─────────────────────────────────────────────────────────────────────────────

    def get(self, subscription_id: str) -> Subscription | None:
        """The subscription; None if there is none, or its lease has ended."""
        return self.get_many([subscription_id]).get(subscription_id)

    def get_many(self, ids: Iterable[str]) -> dict[str, Subscription]:
        """The existing subscriptions among these ids, without those whose lease has ended."""
        found = self._find(ids)
        now = self._settle(self._clock.now())
        return {
            name: to_subscription(row)
            for name, row in found.items()
            if row.has_state() and not row.has_ended(now)
        }

    def latest(self, subscription_id: str) -> Change | None:
        """The last change of a subscription, even if it ended it; None if the log has none."""
        row = self._find([subscription_id]).get(subscription_id)
        return None if row is None else to_change(row)

    def history(self, subscription_id: str, *, limit: int = reading.PAGE_SIZE) -> Sequence[Change]:
        """The last changes of a subscription, the newest first; those before the horizon may be
        missing.
        """
        limit = expect_count(limit, "limit")
        row = self._find([subscription_id]).get(subscription_id)
        rows = () if row is None else reading.read_history(self._database, row)
        return [to_change(own) for own in islice(rows, limit)]

    def list(  # noqa: PLR0913 - one argument for each way to choose
        self,
        *,
        after: str | None = None,
        owner: str | None = None,
        tag: str | None = None,
        text: str | None = None,
        state: State | str | None = None,
        ends_before: datetime | str | None = None,
        limit: int = reading.PAGE_SIZE,
    ) -> Page:
        """A page of the subscriptions that are waiting or valid, by id; `after` is the cursor of
        the page before.

        A subscription that exists from the first page to the last is on exactly one page, even if
        others change in between. `text` is a part of the id or the expression; ASCII letters match
        in either case. `ends_before` chooses leases that end before a moment.
        """
        limit = expect_count(limit, "limit")
        filters = Filters(owner, tag, text, _read_state(state), _read_end(ends_before))
        now = self._settle(self._moment())
        rows = reading.read_list(self._database, filters, now, after, limit + 1)
        cursor = rows[limit - 1].subscription_id if len(rows) > limit else None
        return Page([to_subscription(row) for row in rows[:limit]], cursor)

    def count(
        self,
        *,
        owner: str | None = None,
        tag: str | None = None,
        text: str | None = None,
        state: State | str | None = None,
        ends_before: datetime | str | None = None,
    ) -> int:
        """How many subscriptions `list` returns on all pages."""
        filters = Filters(owner, tag, text, _read_state(state), _read_end(ends_before))
        return reading.read_count(self._database, filters, self._settle(self._moment()))

    def latest_rows(self, ids: Iterable[str]) -> dict[str, Row]:
        """The newest row of the log of each of these ids, if it has one."""
        names = list(ids)
        return self._find(names) if names else {}

    def _find(self, ids: Iterable[str]) -> dict[str, Row]:
        possible = [name for name in expect_names(ids, "ids") if is_storable(name)]
        with reading.reading(self._database) as connection:
            self._clock.advance(reading.read_facts(connection).moment)
            return find_latest(self._database, connection, possible)

    def _moment(self) -> int:
        if self._writer is None:  # the writer's clock may be ahead of this one
            self._clock.advance(self._facts().moment)
        return self._clock.now()

    def _settle(self, moment: int) -> int:
        """The moment, for an answer that leaves out what has ended by it: if a lease may have, the
        moment is on disk.

        If the store cannot be written, answers go on: the next change writes the moment.
        """
        if self._writer is not None and self._clock.must_settle(moment):
            try:
                self._writer.submit(()).result(PATIENCE)
            except (StoreError, TimeoutError):
                self._clock.give_up()  # otherwise every answer would try again
        return moment

    # ── the log ─────────────────────────────────────────────────────────────────────────────

    @property
    def where(self) -> str:
        """The folder or the address of the store, without a password: for messages."""
        return self._database.where

    @property
    def epoch(self) -> str:
        """The name of this history; change numbers are valid only within one epoch."""
        return self._facts().epoch

    @property
    def last_change(self) -> int:
        """The number of the newest change; 0 if there is none."""
        return self._facts().last_change

    @property
    def horizon(self) -> int:
        """The first change for which the state can be rebuilt."""
        return self._facts().horizon

    @property
    def moment(self) -> datetime:
        """The store's time: the clock, but never before a time that the store has used."""
        return from_microseconds(self._moment())

    def settled_moment(self) -> datetime:
        """The same, for an answer that leaves out the subscriptions that have ended by then.

        It is on disk if one has, so that a crash does not resurrect it even if the clock is set
        back. A store that was opened for reading only writes nothing.
        """
        return from_microseconds(self._settle(self._moment()))

    def changes(
        self, *, after: int, limit: int = reading.PAGE_SIZE, epoch: str | None = None
    ) -> Sequence[Change]:
        """The next changes after a change number, in order; empty if that is the last.

        Raises a `HistoryError` if the log no longer has them all, or if `epoch` is given and is
        not the store's.
        """
        after, limit = expect_count(after, "after", least=0), expect_count(limit, "limit")
        rows = reading.read_changes(self._database, after, limit, epoch)
        return [to_change(row) for row in rows]

    def state_at(
        self, number: int, *, after: int = 0, up_to: int | None = None
    ) -> Iterator[Subscription]:
        """The subscriptions as of a change, by revision, even if their lease has ended since.

        With `after` and `up_to`, only those whose revision is greater than the first and not
        greater than the second. Raises a `HistoryError` if that state was pruned, or is pruned
        while this is read.
        """
        number = expect_count(number, "number", least=0)
        after = expect_count(after, "after", least=0)
        last = number if up_to is None else min(number, expect_count(up_to, "up_to", least=0))
        reading.expect_change(self._facts(), number, self._database.where)
        return map(to_subscription, reading.read_state(self._database, number, after, last))

    def moment_of(self, number: int) -> datetime:
        """The moment of a change; of the nearest earlier one if its entry was pruned."""
        return from_microseconds(reading.read_moment_of(self._database, number))

    def change_at(self, moment: Any) -> int:
        """The last change at or before a moment; at least the horizon."""
        return reading.read_change_at(self._database, to_microseconds(read_at(moment)))

    def _facts(self) -> reading.StoreFacts:
        with reading.reading(self._database) as connection:
            return reading.read_facts(connection)


def _find_database(place: str | os.PathLike[str], *, read_only: bool) -> Database:
    if isinstance(place, str) and place.startswith(DATABASES):
        return PostgresDatabase(place)
    if not isinstance(place, str | os.PathLike) or "://" in str(place):
        raise InputError(
            f"{place!r} is not the place of a store",
            hint='write the path of a folder, or "postgresql://user@host/database"',
        )
    with translated(str(place)):
        return SqliteDatabase(Path(place), read_only=read_only)


def _read_state(state: State | str | None) -> State | None:
    try:
        return None if state is None else State(state)
    except ValueError:
        allowed = ", ".join(State)
        raise InputError(f"state is {state!r}; one of {allowed} is expected") from None


def _read_end(moment: datetime | str | None) -> int | None:
    return None if moment is None else to_microseconds(read_at(moment))


def _renew_epoch(connection: Connection) -> str:
    epoch = new_epoch()
    connection.execute(update(STORE).values(epoch=epoch))
    return epoch


def _prune(connection: Connection, after: int, before: int) -> tuple[int, int]:
    """Delete rows of the next page that no state needs; how many, and the page's last number."""
    numbers = select(CHANGES.c.number).where(CHANGES.c.number > after, CHANGES.c.number <= before)
    last = numbers.order_by(CHANGES.c.number).offset(_PRUNE_SIZE - 1).limit(1)
    up_to = connection.execute(last).scalar_one_or_none() or before
    is_needless = or_(CHANGES.c.created.is_(None), CHANGES.c.superseded_by <= before)
    in_page = and_(CHANGES.c.number > after, CHANGES.c.number <= up_to)
    deleted = connection.execute(delete(CHANGES).where(in_page, is_needless))
    return deleted.rowcount, up_to
