"""A small memory of keys, so that not every request reads the database."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.broker.keys import Key

CAPACITY: Final = 10_000
MOST_MET: Final = 100_000  # ids of keys that exist
# A key that another process revokes is refused after at most this time.
FRESH_SECONDS: Final = 1.0


class StoredKey(NamedTuple):
    """A key with its hash, as the database has it."""

    key: Key
    hash: bytes

    def __repr__(self) -> str:
        return f"StoredKey({self.key!r})"


class KeyCache:
    """The keys that were used last, each for a second."""

    def __init__(
        self, timer: Callable[[], float] = time.monotonic, capacity: int = CAPACITY
    ) -> None:
        self._timer = timer
        self._capacity = capacity
        self._lock = Lock()
        self._kept: OrderedDict[str, tuple[float, StoredKey]] = OrderedDict()
        self._met: OrderedDict[str, None] = OrderedDict()
        self._n_forgotten = 0

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key_id: str, read: Callable[[str], StoredKey | None]) -> StoredKey | None:
        """The key, from memory or by reading it."""
        now = self._timer()
        with self._lock:
            since, stored = self._kept.get(key_id, (0.0, None))
            if stored is not None and now - since < FRESH_SECONDS:
                self._kept.move_to_end(key_id)
                return stored
            n_forgotten = self._n_forgotten
        stored = read(key_id)
        if stored is not None:
            self.meet(key_id)
        with self._lock:
            # What was read before a revocation must not be kept after it. Unknown ids are not kept:
            # whoever invents them would push out the keys in use.
            if stored is not None and n_forgotten == self._n_forgotten:
                self._kept[key_id] = now, stored
                self._kept.move_to_end(key_id)
                while len(self._kept) > self._capacity:
                    self._kept.popitem(last=False)
        return stored

    def meet(self, key_id: str) -> None:
        """Remember that there is a key with this id, valid or not."""
        with self._lock:
            self._met[key_id] = None
            self._met.move_to_end(key_id)
            while len(self._met) > MOST_MET:
                self._met.popitem(last=False)

    def has_met(self, key_id: str) -> bool:
        """Whether there is a key with this id, as far as this process has seen."""
        return key_id in self._met

    def clear(self) -> None:
        """Forget all keys: some have changed."""
        with self._lock:
            self._n_forgotten += 1
            self._kept.clear()


class KeyExistence:
    """Whether there are keys: once there are, there always will be."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._exist = False
        self._since: float | None = None

    def recall(self) -> bool | None:
        """What is known; None if it is too old."""
        if self._exist:
            return True
        since = self._since
        is_fresh = since is not None and self._timer() - since < FRESH_SECONDS
        return False if is_fresh else None

    def note(self, *, exist: bool) -> None:
        """Remember what was found. A late answer of an earlier look does not undo a new key."""
        self._since = self._timer()
        self._exist = self._exist or exist
