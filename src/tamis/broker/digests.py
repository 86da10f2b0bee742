"""Digests: one e-mail an hour or a day with the matches of a mailbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import delete, func, insert, select, update

from tamis.arguments import expect_count
from tamis.broker.audit_log import Action, write_if_admin
from tamis.broker.backlogs import Backlog, read_backlog
from tamis.broker.checking import clean_error, expect_address, to_moment
from tamis.broker.confirmations import Confirmations, reserve_question
from tamis.broker.digest_times import DigestTime, Period, check_time, find_next_due
from tamis.broker.mailbox import Mailbox, Position
from tamis.broker.owners import expect_mailbox
from tamis.broker.pages import PAGE_SIZE, Cut, Page, read_page, select_owned
from tamis.broker.retries import DELAYS
from tamis.broker.rights import Actor, expect_right
from tamis.broker.tables import DIGESTS, take_numbers
from tamis.errors import UnknownItemError
from tamis.language.types.moments import from_microseconds, to_microseconds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from tamis.subscriptions import SubscriptionStore

_SECOND: Final = 1_000_000  # microseconds
_NOT_FAILING: Final[dict[str, Any]] = {"failures": 0, "last_error": None, "failing_since": None}


class Digest(NamedTuple):
    """A digest of a mailbox."""

    number: int
    mailbox: Mailbox
    owner: str
    address: str
    at: DigestTime
    created: datetime
    position: Position  # events up to this one were sent
    next_due: datetime
    last_sent: datetime | None
    n_failed: int  # attempts since the last success
    last_error: str | None
    asked: datetime | None  # when the address was asked to confirm it
    confirmed: datetime | None  # None: nothing but that question may be sent


class Digests:
    """The digests of a server."""

    def __init__(self, store: SubscriptionStore) -> None:
        self._store = store
        self.confirmations = Confirmations(store)

    def create(  # noqa: PLR0913 - all that a digest has
        self,
        actor: Actor,
        mailbox: Mailbox,
        address: str,
        at: DigestTime,
        archive: Position,
        *,
        must_confirm: bool = False,
    ) -> Digest:
        """Send digests of the events after the last one of the archive.

        If the address `must_confirm`, it gets a question first, and nothing else until it does.
        """
        address, at, now = expect_address(address), check_time(at), self._store.now()
        row = {
            "mailbox": str(mailbox),
            "address": address,
            "created": now,
            "epoch": archive.epoch,
            "position": archive.event,
            "last_sent": None,
        }

        def write(connection: Connection) -> Digest:
            owner = expect_mailbox(connection, actor, mailbox)
            number = take_numbers(connection)
            values = row | {"number": number, "owner": owner} | _NOT_FAILING
            values |= _to_columns(at, now) | {"asked": None, "confirmed": now}
            if must_confirm:
                reserve_question(connection, address, owner, now)
                values |= {"confirmed": None, "next_due": now}
            connection.execute(insert(DIGESTS), values)
            digest = _get(connection, number)
            _log(connection, now, actor, "create", digest)
            return digest

        return self._store.run(write)

    def get(self, number: int) -> Digest | None:
        """The digest with this number."""
        query = select(DIGESTS).where(DIGESTS.c.number == expect_count(number, "number"))
        with self._store.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _to_digest(row)

    def list(
        self,
        *,
        mailbox: Mailbox | None = None,
        owner: str | None = None,
        after: int | None = None,
        limit: int = PAGE_SIZE,
    ) -> Page[Digest]:
        """A page of the digests, the oldest first."""
        query = select_owned(DIGESTS, mailbox, owner)
        return read_page(self._store, query, Cut(DIGESTS.c.number, after, limit), _to_digest)

    def list_due(self, *, limit: int = PAGE_SIZE) -> Sequence[Digest]:
        """Digests that are due, the longest waiting first."""
        query = select(DIGESTS).where(DIGESTS.c.next_due <= self._store.now())
        query = query.order_by(DIGESTS.c.next_due, DIGESTS.c.number)
        with self._store.read() as connection:
            rows = connection.execute(query.limit(expect_count(limit, "limit")))
            return [_to_digest(row) for row in rows]

    def backlog(self, epoch: str) -> Backlog | None:
        """What digests whose last attempt failed still have to send; None if all succeed."""
        table = DIGESTS.c
        query = select(func.min(table.position), func.min(table.failing_since)).where(
            table.failures > 0, table.epoch == epoch
        )
        return read_backlog(self._store, query)

    def set_time(self, actor: Actor, number: int, at: DigestTime) -> Digest:
        """Send at another time; it is next due then."""
        at, now = check_time(at), self._store.now()

        def write(connection: Connection) -> Digest:
            digest = _expect(connection, actor, number)
            values = _to_columns(at, now)
            if digest.confirmed is None:
                del values["next_due"]
            _update(connection, number, values)
            _log(connection, now, actor, "set_time", digest)
            return _get(connection, number)

        return self._store.run(write)

    def confirm(self, number: int) -> None:
        """The address wants the digest: send it from now on, with what has matched since it was
        made. A digest that is confirmed already stays as it is.
        """
        digest = self.get(number)
        if digest is not None:
            due = _to_columns(digest.at, self._store.now())["next_due"]
            self.confirmations.confirm(number, due)

    def delete(self, actor: Actor, number: int) -> None:
        """Stop sending digests."""
        now = self._store.now()

        def write(connection: Connection) -> None:
            digest = _expect(connection, actor, number)
            connection.execute(delete(DIGESTS).where(DIGESTS.c.number == number))
            _log(connection, now, actor, "delete", digest)

        self._store.run(write)

    def record_sent(self, number: int, position: Position, *, is_empty: bool = False) -> None:
        """Go on after an event; `is_empty`: there was nothing to send, and nothing was sent.

        A digest that was deleted in the meantime stays deleted.
        """
        now = self._store.now()

        def write(connection: Connection) -> None:
            digest = _find(connection, number)
            if digest is None:
                return
            values = {"epoch": position.epoch, "position": position.event}
            values |= _NOT_FAILING | _to_columns(digest.at, now)
            _update(connection, number, values if is_empty else values | {"last_sent": now})

        self._store.run(write)

    def record_failure(self, number: int, error: str) -> None:
        """Try again later; at the latest when the next digest is due, with the same events."""
        now = self._store.now()

        def write(connection: Connection) -> None:
            digest = _find(connection, number)
            if digest is None:
                return
            n_failed = digest.n_failed + 1
            delay = DELAYS[min(n_failed, len(DELAYS) - 1)]
            columns = _to_columns(digest.at, now)
            columns["next_due"] = min(columns["next_due"], now + round(delay * _SECOND))
            failed = {"failures": n_failed, "last_error": clean_error(error)}
            if not digest.n_failed:
                failed["failing_since"] = now
            _update(connection, number, columns | failed)

        self._store.run(write)


def _to_columns(at: DigestTime, now: int) -> dict[str, Any]:
    due = find_next_due(at, from_microseconds(now))
    return at._asdict() | {"period": at.period.value, "next_due": to_microseconds(due)}


def _update(connection: Connection, number: int, values: dict[str, Any]) -> None:
    connection.execute(update(DIGESTS).where(DIGESTS.c.number == number).values(values))


def _find(connection: Connection, number: int) -> Digest | None:
    row = connection.execute(select(DIGESTS).where(DIGESTS.c.number == number)).one_or_none()
    return None if row is None else _to_digest(row)


def _get(connection: Connection, number: int) -> Digest:
    digest = _find(connection, expect_count(number, "number"))
    if digest is None:
        raise UnknownItemError(f"there is no digest {number}")
    return digest


def _expect(connection: Connection, actor: Actor, number: int) -> Digest:
    digest = _get(connection, number)
    expect_right(actor, digest.owner, f"digest {number}", digest.mailbox)
    return digest


def _log(connection: Connection, now: int, actor: Actor, action: str, digest: Digest) -> None:
    detail = {"mailbox": str(digest.mailbox), "owner": digest.owner}
    write_if_admin(connection, now, Action(actor, f"digest.{action}", str(digest.number), detail))


def _to_digest(row: Any) -> Digest:
    return Digest(
        row.number,
        Mailbox.parse(row.mailbox),
        row.owner,
        row.address,
        DigestTime(Period(row.period), row.minute, row.hour, row.zone),
        from_microseconds(row.created),
        Position(row.epoch, row.position),
        from_microseconds(row.next_due),
        to_moment(row.last_sent),
        row.failures,
        row.last_error,
        to_moment(row.asked),
        to_moment(row.confirmed),
    )
