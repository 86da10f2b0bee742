"""How many subscriptions an owner has: counted seldom, since that reads all of them."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.subscriptions import SubscriptionStore


class OwnerCounts:
    """An upper bound for each owner, which is counted again when it reaches a limit."""

    def __init__(self, store: SubscriptionStore) -> None:
        self._store = store
        self._bounds: dict[str, int] = {}
        self._lock = Lock()

    def is_full(self, owner: str, most: int, n_more: int = 1) -> bool:
        """Whether an owner may not have so many more; if not, they count as subscribed."""
        with self._lock:
            bound = self._bounds.get(owner)
            if bound is None or bound + n_more > most:
                bound = self._store.count(owner=owner)
            is_full = bound + n_more > most
            self._bounds[owner] = bound if is_full else bound + n_more
            return is_full
