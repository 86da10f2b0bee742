"""Calls with a time limit: each runs in a worker thread, which is abandoned when it takes too long.

A thread cannot be stopped from outside. An abandoned thread finishes its call unobserved and then
ends; until then it is counted. It does not keep the process from exiting.
"""

from __future__ import annotations

import os
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class CallTimeoutError(Exception):
    """A call exceeded its time limit."""


class Abandoned:
    """The number of abandoned calls that still run. Threads share it."""

    def __init__(self) -> None:
        self.n_running = 0
        self._lock = threading.Lock()

    def add(self, n_calls: int) -> None:
        """Count calls that were abandoned, or have ended since."""
        with self._lock:
            self.n_running += n_calls


class _Worker:
    """A thread that makes one call after another."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[Any]] | None] = SimpleQueue()
        threading.Thread(target=self._work, name="tamis-operator", daemon=True).start()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            function, results = task
            try:
                results.put((function(), None))
            except BaseException as error:  # any error, which the caller judges
                results.put((None, error))
            del task, function, results

    def run(self, function: Callable[[], Any], timeout: float, abandoned: Abandoned) -> Any:
        results: SimpleQueue[Any] = SimpleQueue()
        self._tasks.put((function, results))
        try:
            value, error = results.get(timeout=timeout)
        except Empty:
            abandoned.add(1)
            self._tasks.put((lambda: abandoned.add(-1), SimpleQueue()))
            self._tasks.put(None)  # ends together with the call
            raise CallTimeoutError from None
        _IDLE.put(self)
        if error is not None:
            raise error
        return value


_IDLE: SimpleQueue[_Worker] = SimpleQueue()


def _forget_workers() -> None:
    """Forget the threads, which do not survive a fork."""
    global _IDLE  # noqa: PLW0603
    _IDLE = SimpleQueue()


os.register_at_fork(after_in_child=_forget_workers)


def run_within(
    function: Callable[[], Any], timeout: float | None, abandoned: Abandoned | None = None
) -> Any:
    """The result of `function`; raises `CallTimeoutError` if it takes longer than `timeout`."""
    if timeout is None:
        return function()
    try:
        worker = _IDLE.get_nowait()
    except Empty:
        worker = _Worker()
    return worker.run(function, timeout, abandoned or Abandoned())
