"""Writes acknowledgements that wait in one go: many consumers, few statements, one fsync."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import and_, bindparam, column, insert, select, update, values

from tamis.broker.mailbox import Position
from tamis.broker.tables import CURSORS
from tamis.errors import EpochError
from tamis.subscriptions.tables import NAME

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select

    from tamis.subscriptions import SubscriptionStore

_BATCH_SIZE: Final = 2_000  # each names two values of a statement, and PostgreSQL has 65,535
_UPDATE: Final = (
    update(CURSORS)
    .where(CURSORS.c.mailbox == bindparam("its_mailbox"))
    .where(CURSORS.c.consumer == bindparam("its_consumer"))
    .values(acknowledged=bindparam("event"), moment=bindparam("at"))
)


class Acknowledgement(NamedTuple):
    """A consumer has seen all events up to a position."""

    mailbox: str
    consumer: str
    position: Position
    moment: int


class _Waiting(NamedTuple):
    acknowledgement: Acknowledgement
    future: Future[Position]


class Acknowledger:
    """Collects acknowledgements until the writer takes them."""

    def __init__(self, store: SubscriptionStore) -> None:
        self._store = store
        self._lock = Lock()
        self._open: list[_Waiting] | None = None  # the batch that the writer has not taken yet

    def submit(self, acknowledgement: Acknowledgement) -> Future[Position]:
        """The cursor after an acknowledgement, once it is on disk."""
        waiting = _Waiting(acknowledgement, Future())
        with self._lock:
            if self._open is not None and len(self._open) < _BATCH_SIZE:
                self._open.append(waiting)
                return waiting.future
            batch = [waiting]
            task = self._store.submit_task(partial(self._write, batch))
            self._open = batch
        task.add_done_callback(partial(_resolve, batch))
        return waiting.future

    def _write(self, batch: list[_Waiting], connection: Connection) -> list[Position | EpochError]:
        with self._lock:
            if self._open is batch:
                self._open = None
        return write_all(connection, [waiting.acknowledgement for waiting in batch])


def write_all(connection: Connection, asked: list[Acknowledgement]) -> list[Position | EpochError]:
    """Write acknowledgements in order; returns the cursor after each, or why it is refused."""
    names = sorted({(one.mailbox, one.consumer) for one in asked})
    stored = {
        (row.mailbox, row.consumer): Position(row.epoch, row.acknowledged)
        for row in connection.execute(select_cursors(names))
    }
    reached = dict(stored)
    moments: dict[tuple[str, str], int] = {}  # of those that move
    results: list[Position | EpochError] = []
    for one in asked:
        name = one.mailbox, one.consumer
        cursor = reached.get(name)
        if cursor is not None and cursor.epoch != one.position.epoch:
            results.append(_refuse(one, cursor))
            continue
        if cursor is None or one.position.event > cursor.event:
            reached[name], moments[name] = one.position, one.moment
        results.append(reached[name])
    _store(connection, stored, {name: (reached[name], at) for name, at in moments.items()})
    return results


def select_cursors(names: list[tuple[str, str]]) -> Select[Any]:
    """The cursors with these names, by a join: SQLite reads the whole table for pairs in a list."""
    columns = (column("its_mailbox", NAME), column("its_consumer", NAME))
    asked = values(*columns, name="asked").data(names).cte()
    is_asked = and_(
        CURSORS.c.mailbox == asked.c.its_mailbox, CURSORS.c.consumer == asked.c.its_consumer
    )
    return select(CURSORS).join_from(asked, CURSORS, is_asked)


def _store(
    connection: Connection,
    stored: dict[tuple[str, str], Position],
    moved: dict[tuple[str, str], tuple[Position, int]],
) -> None:
    new: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for (mailbox, consumer), (position, moment) in moved.items():
        epoch, event = position
        if (mailbox, consumer) in stored:
            names = {"its_mailbox": mailbox, "its_consumer": consumer}
            changed.append(names | {"event": event, "at": moment})
        else:
            names = {"mailbox": mailbox, "consumer": consumer, "epoch": epoch}
            new.append(names | {"acknowledged": event, "moment": moment})
    if changed:
        connection.execute(_UPDATE, changed)
    if new:
        connection.execute(insert(CURSORS), new)


def _refuse(one: Acknowledgement, cursor: Position) -> EpochError:
    return EpochError(
        f'the cursor "{one.consumer}" of {one.mailbox} is at event {cursor.event} of the epoch '
        f"{cursor.epoch!r}; that of the archive is {one.position.epoch!r}",
        hint="history was lost or restored: reset the cursor",
    )


def _resolve(batch: list[_Waiting], task: Future[list[Position | EpochError]]) -> None:
    error = task.exception()
    results = [error] * len(batch) if error is not None else task.result()
    for waiting, result in zip(batch, results, strict=True):
        if not waiting.future.set_running_or_notify_cancel():
            continue
        if isinstance(result, Position):
            waiting.future.set_result(result)
        else:
            waiting.future.set_exception(result)
