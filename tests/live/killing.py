"""Kills a process before a chosen write, and counts the writes.

A write is a call that changes the file system, or a statement or a commit of the store's database.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from sqlalchemy import Engine, event

CALLS = ("fsync", "link", "mkdir", "open", "rename", "replace", "rmdir", "unlink", "truncate")
READING = ("SELECT", "PRAGMA", "BEGIN")


class Writes:
    """Counts the writes of this process."""

    def __init__(self, killed_before: int | None = None) -> None:
        self.n_writes = 0
        self._killed_before = killed_before

    def count(self) -> None:
        """One more write is about to happen."""
        self.n_writes += 1
        if self.n_writes == self._killed_before:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_statement(self, _connection, _cursor, statement: str, *_) -> None:
        if not statement.startswith(READING):
            self.count()

    def on_commit(self, _connection) -> None:
        self.count()

    def before(self, call: Callable) -> Callable:
        """The same call, counted."""

        def counted(*args, **options):
            is_reading = call is _OPEN and not args[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if not is_reading:
                self.count()
            return call(*args, **options)

        return counted


_OPEN = os.open


@contextmanager
def counting(killed_before: int | None = None, calls: tuple[str, ...] = CALLS) -> Iterator[Writes]:
    """Count writes, and kill this process before the one of that number."""
    writes = Writes(killed_before)
    listeners = (("before_cursor_execute", writes.on_statement), ("commit", writes.on_commit))
    with ExitStack() as stack:
        for name in calls:
            stack.enter_context(patch.object(os, name, writes.before(getattr(os, name))))
        for name, listener in listeners:
            event.listen(Engine, name, listener)
            stack.callback(event.remove, Engine, name, listener)
        yield writes
