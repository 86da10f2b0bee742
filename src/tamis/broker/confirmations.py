"""Addresses confirm digests before they get any (double opt-in).

A digest that is not confirmed is due at once: then its address gets one message with a link. It is
due again when the link expires, and is then deleted. How often an address, and on behalf of an
owner, may be asked within a day is limited, also if digests are deleted in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, func, insert, select, update

from tamis.broker.tables import CONFIRMATIONS, DIGESTS, take_numbers
from tamis.errors import TooOftenError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from tamis.subscriptions import SubscriptionStore

MOST_PER_ADDRESS: Final = 5  # questions within a day
MOST_PER_OWNER: Final = 100
VALID_SECONDS: Final = 3 * 86_400  # of a link
_SECOND: Final = 1_000_000  # microseconds
_DAY: Final = 86_400 * _SECOND


class Confirmations:
    """Which digests are confirmed."""

    def __init__(self, store: SubscriptionStore) -> None:
        self._store = store

    def record_asked(self, number: int) -> None:
        """The address of a digest has its link, which is valid for some days."""
        now = self._store.now()
        values: dict[str, Any] = {"asked": now, "next_due": now + VALID_SECONDS * _SECOND}
        values |= {"failures": 0, "last_error": None, "failing_since": None}
        self._update(number, values)

    def confirm(self, number: int, next_due: int) -> bool:
        """The address wants the digest; returns whether it was new."""
        return self._update(number, {"confirmed": self._store.now(), "next_due": next_due})

    def give_up(self, number: int) -> bool:
        """Delete a digest whose link has expired; returns whether it was still unconfirmed."""
        is_waiting = (DIGESTS.c.number == number, DIGESTS.c.confirmed.is_(None))
        statement = delete(DIGESTS).where(*is_waiting)
        return self._store.run(lambda connection: connection.execute(statement).rowcount > 0)

    def _update(self, number: int, values: dict[str, Any]) -> bool:
        is_waiting = (DIGESTS.c.number == number, DIGESTS.c.confirmed.is_(None))
        statement = update(DIGESTS).where(*is_waiting).values(values)
        return self._store.run(lambda connection: connection.execute(statement).rowcount > 0)


def reserve_question(connection: Connection, address: str, owner: str, now: int) -> None:
    """Count a question to an address; raises a `TooOftenError` if there were too many."""
    table = CONFIRMATIONS.c
    connection.execute(delete(CONFIRMATIONS).where(table.moment <= now - _DAY))
    folded = address.lower()
    for column, value, most, whom in (
        (table.address, folded, MOST_PER_ADDRESS, "this address"),
        (table.owner, owner, MOST_PER_OWNER, "addresses on behalf of this owner"),
    ):
        query = select(func.count(), func.min(table.moment)).where(column == value)
        n_asked, first = connection.execute(query).one()
        if n_asked >= most:
            raise TooOftenError(
                f"{whom} had {n_asked} requests to confirm a digest within a day",
                seconds=max(1, (first + _DAY - now) // _SECOND),
                hint="confirm those, or try again later",
            )
    row = {"number": take_numbers(connection), "address": folded, "owner": owner, "moment": now}
    connection.execute(insert(CONFIRMATIONS), row)
