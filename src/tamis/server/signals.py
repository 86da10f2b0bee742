"""Signals: the first one stops the server in order, the second one ends the process at once."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Handles the signals until the server has closed everything."""

    def __init__(self) -> None:
        self.on_stop: Callable[[], None] | None = None  # None: nothing to wait for
        self._is_stopping = False
        self._earlier: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._earlier = {own: signal.signal(own, self._handle) for own in STOPPING}
        return self

    def __exit__(self, *_: object) -> None:
        for own, handler in self._earlier.items():
            signal.signal(own, handler)

    def _handle(self, number: int, _frame: object) -> None:
        if self._is_stopping:
            # Nothing is lost: what was acknowledged is on disk.
            os._exit(128 + number)
        self._is_stopping = True
        if self.on_stop is None:
            raise SystemExit(128 + number)
        self.on_stop()
