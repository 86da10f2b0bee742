"""Work that is repeated in the background, and goes on after any failure."""

from __future__ import annotations

import threading
import time
import traceback
from typing import TYPE_CHECKING

from tamis.errors import TamisError, TamisWarning, warn

if TYPE_CHECKING:
    from collections.abc import Callable


class Chore:
    """Work that a thread repeats.

    The first of several failures in a row is reported, all are counted, and the work is tried again
    after pauses that grow. No failure ends the thread, not even lack of memory or a bug.
    """

    def __init__(
        self,
        work: Callable[[], bool],
        outlook: Callable[[], str],
        is_closing: Callable[[], bool],
        pause: float,
        most_pause: float,
    ) -> None:
        """`work` returns whether there may be more to do at once; `outlook` says what a failure
        means; failures while the index is closing do not count. Pauses are in seconds.
        """
        self.n_failures = 0
        self.last_failure: str | None = None
        self._work = work
        self._outlook = outlook
        self._is_closing = is_closing
        self._pause, self._most_pause = pause, most_pause
        self._n_in_a_row = 0
        self._next = 0.0

    def run(self) -> bool:
        """Do the work, unless it failed just now; returns whether there may be more to do."""
        if time.monotonic() < self._next:
            return False
        try:
            has_more = self._work()
        except Exception as error:
            if not self._is_closing():
                self._note(error)
            return False
        self._n_in_a_row = 0
        return has_more

    def _note(self, error: Exception) -> None:
        pause = min(self._pause * 2 ** min(self._n_in_a_row, 30), self._most_pause)
        self._next = time.monotonic() + pause
        self.n_failures += 1
        self._n_in_a_row += 1
        self.last_failure = _describe(error)
        if self._n_in_a_row == 1:
            _report(f"{self.last_failure}; {self._outlook()}")


def _describe(error: Exception) -> str:
    if isinstance(error, TamisError | OSError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    name = type(error).__name__
    shown = f"{name}: {error}" if str(error) else name
    return f"{shown} ({place.filename}, line {place.lineno})"


def _report(message: str) -> None:
    try:
        warn(message)
    except TamisWarning as raised:
        # Warnings are errors here; this one is shown without ending the thread.
        shown = (type(raised), raised, raised.__traceback__, threading.current_thread())
        threading.excepthook(threading.ExceptHookArgs(shown))
