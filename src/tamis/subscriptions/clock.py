"""The store's clock: it never goes back."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Final

from tamis.language.moments import read_at
from tamis.language.types.moments import to_microseconds

NEVER: Final = 1 << 63  # after all moments

if TYPE_CHECKING:
    from collections.abc import Callable


def read_system_clock() -> datetime:
    """The time of this machine's clock."""
    return datetime.now(UTC)


class StoreClock:
    """A clock that never goes back: an ended lease stays ended if the system clock is set back.

    The store keeps its moment on disk, but does not write it at each reading. Only the end of a
    lease matters: `is_ahead` says when a reading has passed one that the moment on disk has not.
    Such a reading must be on disk before an answer uses it, or a crash would resurrect the lease.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._latest = 0
        self._next_end = NEVER  # at most the first end after the moment on disk
        self._has_failed = False  # to write the moment, since it was last written
        self._lock = Lock()

    def now(self) -> int:
        """The current moment, in microseconds since 1970."""
        return self.advance(to_microseconds(read_at(self._clock())))

    def advance(self, moment: int) -> int:
        """Take a moment into account; returns the latest one so far."""
        with self._lock:
            self._latest = max(self._latest, moment)
            return self._latest

    def is_ahead(self, moment: int) -> bool:
        """Whether a lease may have ended by this moment, but not by the moment on disk."""
        return moment >= self._next_end

    def must_settle(self, moment: int) -> bool:
        """The same, unless writing it has failed: then answers go on without."""
        return moment >= self._next_end and not self._has_failed

    def give_up(self) -> None:
        """The moment could not be written; it is written with the next change."""
        self._has_failed = True

    def expect_end(self, end: int) -> None:
        """A lease will end then; called by the writer before the lease is visible."""
        self._next_end = min(self._next_end, end)

    def settle(self, next_end: int) -> None:
        """The moment on disk has advanced, and this is the first end after it; called by the
        writer.
        """
        self._next_end = next_end
        self._has_failed = False
