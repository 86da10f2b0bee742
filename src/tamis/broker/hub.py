"""Wakes those who wait for matches.

A wake-up is only a hint: the one who is woken reads the archive, which has all matches.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from tamis.kernels.arrays import Int64

    Wake = Callable[[], None]


class Hub:
    """Who waits for which subscriptions. Every method may be called from any thread."""

    def __init__(self) -> None:
        # Everybody has been woken for the events up to this one. While `notify` wakes, it is still
        # that of the call before: what is new comes after it.
        self.reached = 0
        self._lock = Lock()
        self._waiting: dict[int, set[Wake]] = {}  # by number of the subscription
        self._watched: Int64 | None = None  # the keys, sorted; None after a change
        self._everything: set[Wake] = set()
        self._listeners: tuple[Wake, ...] = ()

    def __len__(self) -> int:
        """The number of subscriptions that someone waits for."""
        return len(self._waiting)

    @contextmanager
    def watch(self, numbers: Collection[int] | None, wake: Wake) -> Iterator[None]:
        """Call `wake` after each commit with a match of these subscriptions; None: after each.

        It is called on the publishing thread, and must return at once.
        """
        own = None if numbers is None else frozenset(numbers)
        self.add(own, wake)
        try:
            yield
        finally:
            self.remove(own, wake)

    def add(self, numbers: Collection[int] | None, wake: Wake) -> None:
        """As `watch`, until `remove` is called with the same numbers."""
        with self._lock:
            if numbers is None:
                self._everything.add(wake)
                return
            for number in numbers:
                self._waiting.setdefault(number, set()).add(wake)
            self._watched = None

    def remove(self, numbers: Collection[int] | None, wake: Wake) -> None:
        """Do not call `wake` any more for these subscriptions."""
        with self._lock:
            if numbers is None:
                self._everything.discard(wake)
                return
            for number in numbers:
                wakes = self._waiting[number]
                wakes.discard(wake)
                if not wakes:
                    del self._waiting[number]
            self._watched = None

    def listen(self, listener: Wake) -> None:
        """Call `listener` at the end of each `notify`: then all have been woken."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def notify(self, matched: Int64, last_event: int) -> None:
        """Wake those who wait for one of these subscriptions; a number may occur often.

        The matches are those of the events from the call before up to `last_event`.
        """
        self._wake(self._find(matched), last_event)

    def notify_all(self, last_event: int) -> None:
        """Wake everybody: it is not known whom the events up to `last_event` matched."""
        with self._lock:
            wakes = self._everything.union(*self._waiting.values())
        self._wake(wakes, last_event)

    def _wake(self, wakes: set[Wake], last_event: int) -> None:
        for wake in wakes:
            wake()
        self.reached = last_event
        for listener in self._listeners:
            listener()

    def _find(self, matched: Int64) -> set[Wake]:
        with self._lock:
            found = set(self._everything)
            if not self._waiting or not len(matched):
                return found
            if len(matched) < len(self._waiting):
                hit = [number for number in set(matched.tolist()) if number in self._waiting]
            else:
                if self._watched is None:
                    self._watched = np.array(sorted(self._waiting), dtype=np.int64)
                hit = self._watched[np.isin(self._watched, matched)].tolist()
            for number in hit:
                found |= self._waiting[number]
            return found
