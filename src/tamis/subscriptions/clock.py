"""The store's clock: it never goes back."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING

from tamis.language.moments import read_at
from tamis.language.types.moments import to_microseconds

if TYPE_CHECKING:
    from collections.abc import Callable


def read_system_clock() -> datetime:
    """The time of this machine's clock."""
    return datetime.now(UTC)


class StoreClock:
    """A clock that never goes back: an ended lease stays ended if the system clock is set back."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._latest = 0
        self._lock = Lock()

    def now(self) -> int:
        """The current moment, in microseconds since 1970."""
        return self.advance(to_microseconds(read_at(self._clock())))

    def advance(self, moment: int) -> int:
        """Take a moment into account; returns the latest one so far."""
        with self._lock:
            self._latest = max(self._latest, moment)
            return self._latest
