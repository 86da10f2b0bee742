"""How far each consumer of a mailbox has acknowledged its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, delete, insert, select

from tamis.broker.acknowledging import Acknowledgement, Acknowledger
from tamis.broker.checking import expect_text
from tamis.broker.mailbox import Mailbox, Position, expect_position
from tamis.broker.pages import PAGE_SIZE, Cut, Page, read_page
from tamis.broker.tables import CURSORS
from tamis.errors import InputError
from tamis.language.types.moments import from_microseconds

if TYPE_CHECKING:
    from concurrent.futures import Future
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

    from tamis.subscriptions import SubscriptionStore


class Cursor(NamedTuple):
    """What a consumer has acknowledged."""

    mailbox: Mailbox
    consumer: str
    position: Position  # this event and all before it
    moment: datetime  # of the last acknowledgement that moved it


class Cursors:
    """The cursors of all mailboxes. A cursor that was never moved is before the first event.

    `archive` is the last event of the archive and its epoch, as the caller knows it.
    """

    def __init__(self, store: SubscriptionStore) -> None:
        self._store = store
        self._acknowledger = Acknowledger(store)

    def acknowledge(
        self, mailbox: Mailbox, consumer: str, position: Position, archive: Position
    ) -> Position:
        """Acknowledge all events up to a position; returns the cursor, once it is on disk.

        A cursor never moves back: a late acknowledgement changes nothing. One of another epoch
        raises an `EpochError`, and so does a cursor of another epoch until it is reset.
        """
        return self.submit(mailbox, consumer, position, archive).result()

    def submit(
        self, mailbox: Mailbox, consumer: str, position: Position, archive: Position
    ) -> Future[Position]:
        """As `acknowledge`, without waiting. Those that wait are written together."""
        _where(mailbox, consumer)
        position = expect_position(position, archive, "the acknowledged event")
        asked = Acknowledgement(str(mailbox), consumer, position, self._store.now())
        return self._acknowledger.submit(asked)

    def reset(
        self, mailbox: Mailbox, consumer: str, position: Position, archive: Position
    ) -> Position:
        """Move a cursor anywhere, back too, or into the epoch of the archive."""
        where = _where(mailbox, consumer)
        position = expect_position(position, archive, "the position")
        now = self._store.now()

        def write(connection: Connection) -> Position:
            connection.execute(delete(CURSORS).where(where))
            connection.execute(insert(CURSORS), _make_row(mailbox, consumer, position, now))
            return position

        return self._store.run(write)

    def get(self, mailbox: Mailbox, consumer: str) -> Cursor | None:
        """The cursor of a consumer; None if it has acknowledged nothing."""
        with self._store.read() as connection:
            query = select(CURSORS).where(_where(mailbox, consumer))
            row = connection.execute(query).one_or_none()
        return None if row is None else _to_cursor(row)

    def list(
        self, mailbox: Mailbox, *, after: str | None = None, limit: int = PAGE_SIZE
    ) -> Page[Cursor]:
        """A page of the cursors of a mailbox, by consumer."""
        query = select(CURSORS).where(CURSORS.c.mailbox == str(mailbox))
        return read_page(self._store, query, Cut(CURSORS.c.consumer, after, limit), _to_cursor)

    def delete(self, mailbox: Mailbox, consumer: str) -> bool:
        """Forget a consumer; returns whether it had a cursor."""
        statement = delete(CURSORS).where(_where(mailbox, consumer))
        return self._store.run(lambda connection: connection.execute(statement).rowcount > 0)


def find_missed(acknowledged: int, first_kept: int) -> range | None:
    """The events that retention removed before a consumer saw them; None if there are none.

    `first_kept` is the first event that the archive still has, or the next one if it has none.
    """
    missed = range(acknowledged + 1, first_kept)
    return missed or None


def _where(mailbox: Mailbox, consumer: str) -> ColumnElement[bool]:
    if not isinstance(mailbox, Mailbox):
        raise InputError(f"{mailbox!r:.100} is not a mailbox; a Mailbox is expected")
    name = expect_text(consumer, "consumer")
    return and_(CURSORS.c.mailbox == str(mailbox), CURSORS.c.consumer == name)


def _make_row(mailbox: Mailbox, consumer: str, position: Position, now: int) -> dict[str, Any]:
    row = {"mailbox": str(mailbox), "consumer": consumer, "epoch": position.epoch}
    return row | {"acknowledged": position.event, "moment": now}


def _to_cursor(row: Any) -> Cursor:
    position = Position(row.epoch, row.acknowledged)
    return Cursor(Mailbox.parse(row.mailbox), row.consumer, position, from_microseconds(row.moment))
