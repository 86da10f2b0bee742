"""The writer's thread: it collects waiting requests into one transaction with one fsync."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from sqlalchemy import func, select, update

from tamis.errors import StoreError, StoreInUseError
from tamis.subscriptions.checking import Checked
from tamis.subscriptions.clock import NEVER
from tamis.subscriptions.deciding import RequestGroup
from tamis.subscriptions.failures import is_about_statement, translated
from tamis.subscriptions.rows import Row, to_change
from tamis.subscriptions.tables import CHANGES, HAS_END, IS_LATEST, STORE, TAGS, migrate
from tamis.subscriptions.tags import find_tag_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Connection

    from tamis.subscriptions.clock import StoreClock
    from tamis.subscriptions.database import Database
    from tamis.subscriptions.model import Change, Refused, Result

    Listener = Callable[[Sequence[Change]], None]

_GROUP_SIZE: Final = 10_000  # changes; a group of this size takes no further requests
_TASK_SIZE: Final = 10  # changes that a task counts as

_T = TypeVar("_T")


class _Requests(NamedTuple):
    requests: Sequence[Checked | Refused]
    future: Future[list[Result]]


class _Task(NamedTuple, Generic[_T]):
    run: Callable[[Connection], _T]
    future: Future[_T]
    has_transaction: bool


_Job = _Requests | _Task[Any]


class Writer:
    """Writes the log. Any thread may submit requests; futures return the results."""

    def __init__(
        self, database: Database, clock: StoreClock, on_commit: Listener | None = None
    ) -> None:
        self._database = database
        self._clock = clock
        self._on_commit = on_commit
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._next: _Job | None = None  # taken from the queue, but left for the next group
        self._closing = Lock()
        self._is_closed = False
        self._last_change = 0
        with translated(database.where):
            self._connection: Connection | None = self._open()
        # A daemon: if a program ends without `close`, requests that were not acknowledged are lost.
        self._thread = Thread(target=self._run, name="tamis-subscriptions", daemon=True)
        self._thread.start()

    def submit(self, requests: Sequence[Checked | Refused]) -> Future[list[Result]]:
        """Write the requested changes; the results are available once the changes are on disk.

        So is the clock's moment if a lease has ended by it, even without requests.
        """
        job = _Requests(requests, Future())
        self._put(job)
        return job.future

    def run(self, task: Callable[[Connection], _T], *, has_transaction: bool = True) -> _T:
        """The result of a task, once its transaction is on disk; or of a task without one."""
        return self.submit_task(task, has_transaction=has_transaction).result()

    def submit_task(
        self, task: Callable[[Connection], _T], *, has_transaction: bool = True
    ) -> Future[_T]:
        """As `run`, without waiting.

        Tasks that wait at the same time share a transaction, in order. A task that raises an error
        is undone alone.
        """
        job = _Task(task, Future(), has_transaction)
        self._put(job)
        return job.future

    def close(self) -> None:
        """Finish the submitted requests and release the store for another writer."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            self._queue.put(None)
        self._thread.join()

    def _put(self, job: _Job) -> None:
        with self._closing:
            if self._is_closed:
                raise StoreError(f"the store at {self._database.where} is closed")
            self._queue.put(job)

    # ── on the writer's thread ──────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while jobs := self._gather():
            try:
                with translated(self._database.where):
                    self._commit(jobs)
            except Exception as error:
                if isinstance(error, StoreError):
                    self._drop()
                for job in jobs:
                    if not job.future.done():
                        job.future.set_exception(error)
        self._drop(releases=True)

    def _gather(self) -> list[_Job]:
        """The jobs of the next transaction; none when the store closes."""
        jobs: list[_Job] = []
        n_changes = 0
        for job in self._waiting(jobs):
            if job is None:
                self._queue.put(None)  # taken again after these jobs
                break
            if jobs and not _may_share(jobs[0], job):
                self._next = job
                break
            if job.future.set_running_or_notify_cancel():
                jobs.append(job)
                n_changes += _TASK_SIZE if isinstance(job, _Task) else len(job.requests)
            if n_changes >= _GROUP_SIZE:
                break
        return jobs

    def _waiting(self, jobs: list[_Job]) -> Iterator[_Job | None]:
        """The waiting jobs; waits for one if `jobs` is empty."""
        while True:
            if self._next is not None:
                job, self._next = self._next, None
                yield job
                continue
            try:
                yield self._queue.get(block=not jobs)
            except Empty:
                return

    def _commit(self, jobs: list[_Job]) -> None:
        if self._connection is None:
            self._connection = self._open()
        tasks = [job for job in jobs if isinstance(job, _Task)]
        if tasks:
            self._run_tasks(self._connection, tasks)
            return
        applied = [job for job in jobs if isinstance(job, _Requests)]
        results, rows = self._apply([job.requests for job in applied])
        if self._on_commit is not None and rows:
            self._on_commit([to_change(row) for row in rows])
        for job, its_results in zip(applied, results, strict=True):
            job.future.set_result(its_results)

    def _run_tasks(self, connection: Connection, tasks: list[_Task[Any]]) -> None:
        if not tasks[0].has_transaction:
            (task,) = tasks
            task.future.set_result(task.run(connection))
            return
        with connection.begin():
            done = [(task, self._attempt(connection, task)) for task in tasks]
        for task, result in done:
            if not task.future.done():
                task.future.set_result(result)

    def _attempt(self, connection: Connection, task: _Task[_T]) -> _T | None:
        """The result of a task; None if it raised an error, which undoes this task alone."""
        try:
            with connection.begin_nested():
                return task.run(connection)
        except Exception as error:
            if not is_about_statement(error):
                raise  # the transaction may be lost: all of its tasks fail
            try:
                with translated(self._database.where):
                    raise
            except Exception as translation:
                task.future.set_exception(translation)
            return None

    def _apply(
        self, all_requests: Sequence[Sequence[Checked | Refused]]
    ) -> tuple[list[list[Result]], list[Row]]:
        assert self._connection is not None
        ids = {
            request.subscription_id
            for requests in all_requests
            for request in requests
            if isinstance(request, Checked)
        }
        with self._connection.begin() as transaction:
            latest = find_latest(self._database, self._connection, list(ids))
            moment = self._clock.now()
            group = RequestGroup(latest, self._last_change, moment)
            results = [
                [group.decide(one) if isinstance(one, Checked) else one for one in requests]
                for requests in all_requests
            ]
            # A refusal because a lease has ended is an answer too.
            is_ahead = self._clock.is_ahead(moment)
            if not group.rows and not is_ahead:
                transaction.rollback()
                return results, []
            for end in (row.valid_until for row in group.rows):
                if end is not None:
                    self._clock.expect_end(end)
            if group.rows:
                self._write(self._connection, group, latest)
            self._advance(self._connection, group, moment)
            next_end = _find_next_end(self._connection, moment) if is_ahead else None
        self._last_change = group.last_change
        if next_end is not None:
            self._clock.settle(next_end)
        return results, group.rows

    def _write(self, connection: Connection, group: RequestGroup, latest: dict[str, Row]) -> None:
        # Before the insert, since an id can have only one latest row.
        if group.superseded:
            self._database.supersede(connection, group.superseded)
        self._database.insert(connection, CHANGES, group.rows)
        tags = find_tag_changes(latest, group.rows)
        if tags.gone:
            self._database.untag(connection, tags.gone)
        if tags.new:
            self._database.insert(connection, TAGS, tags.new)

    def _advance(self, connection: Connection, group: RequestGroup, moment: int) -> None:
        advanced = connection.execute(
            update(STORE)
            .where(STORE.c.last_change == self._last_change)
            .values(last_change=group.last_change, moment=moment)
        )
        if advanced.rowcount != 1:
            raise StoreInUseError(
                f"another writer has written to the store at {self._database.where}",
                hint="one writer at a time; are there two copies of its lock?",
            )

    def _open(self) -> Connection:
        connection = None
        try:
            connection = self._database.hold()
            with connection.begin():
                migrate(connection, self._database.where)
                found = connection.execute(select(STORE)).one()
                next_end = _find_next_end(connection, found.moment)
        except BaseException:
            self._database.release(connection)
            raise
        self._last_change = found.last_change
        self._clock.advance(found.moment)
        self._clock.settle(next_end)
        return connection

    def _drop(self, *, releases: bool = False) -> None:
        """Close the connection: after a failure, its state is unknown."""
        connection, self._connection = self._connection, None
        # The earlier failure is reported; the next job opens another connection.
        with suppress(Exception):
            if releases:
                self._database.release(connection)
            elif connection is not None:
                connection.invalidate()
                connection.close()


def _may_share(first: _Job, job: _Job) -> bool:
    """Whether a job may be in the transaction of another one."""
    if isinstance(first, _Task) and isinstance(job, _Task):
        return first.has_transaction and job.has_transaction
    return isinstance(first, _Requests) and isinstance(job, _Requests)


def _find_next_end(connection: Connection, moment: int) -> int:
    """The first end of a lease after a moment."""
    ends = select(func.min(CHANGES.c.valid_until)).where(HAS_END, CHANGES.c.valid_until > moment)
    return connection.execute(ends).scalar_one() or NEVER


def find_latest(database: Database, connection: Connection, ids: Sequence[str]) -> dict[str, Row]:
    """The newest row of each of these ids, if the log has one."""
    found = connection.execute(select(CHANGES).where(IS_LATEST, database.one_of(ids)))
    return {row.subscription_id: Row._make(row) for row in found}
