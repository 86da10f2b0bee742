"""How far the furthest behind of those who are sent to is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tamis.subscriptions import SubscriptionStore


class Backlog(NamedTuple):
    """Of several, the least position and the earliest moment."""

    position: int  # events after it are not delivered to all
    since: int  # microseconds since 1970: when the first delivery should have been


def read_backlog(store: SubscriptionStore, query: Any) -> Backlog | None:
    """The row of a query with a position and a moment; None if nobody is behind."""
    with store.read() as connection:
        position, since = connection.execute(query).one()
    return None if position is None or since is None else Backlog(int(position), int(since))
