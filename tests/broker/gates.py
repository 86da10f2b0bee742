"""Lets tests hold a thread at a place."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tamis.broker.mail import Mailboxes
from tests.waiting import HANG_SECONDS


class Gate:
    """A thread waits at it until it is opened."""

    def __init__(self) -> None:
        self._is_reached = threading.Event()
        self._is_open = threading.Event()

    def wait(self) -> None:
        """Stop here."""
        self._is_reached.set()
        assert self._is_open.wait(HANG_SECONDS)

    async def reached(self) -> None:
        """Wait until a thread has stopped at the gate."""
        await asyncio.to_thread(self.expect_reached)

    def expect_reached(self) -> None:
        """As `reached`, for a thread."""
        assert self._is_reached.wait(HANG_SECONDS)

    def open(self) -> None:
        """Let the thread go on."""
        self._is_open.set()


def hold_first_names(mailboxes: Mailboxes, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Hold the first thread that has read the members of a mailbox."""
    gate, calls, whole = Gate(), iter(range(1)), mailboxes.names

    def names(mailbox):
        is_first = next(calls, None) is not None
        found = whole(mailbox)
        if is_first:
            gate.wait()
        return found

    monkeypatch.setattr(mailboxes, "names", names)
    return gate
