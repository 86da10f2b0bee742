"""What the tests of the broker share: a secret, a timer, owners, and reading of all pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tamis.broker.rights import Actor
from tamis.broker.secrets import ServerSecret

SECRET = ServerSecret(bytes(range(32)))
ANN = Actor("ann", "key of ann")
BOB = Actor("bob", "key of bob")
ADMIN = Actor("root", "key of root", is_admin=True)


class Timer:
    """A monotonic clock that tests set."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def read_all(read: Callable[..., Any], *, limit: int = 2, cursor: str = "after", **filters) -> list:
    """All items of a list, page by page."""
    found, page = [], read(limit=limit, **filters)
    while True:
        assert len(page.items) <= limit
        found += page.items
        if page.cursor is None:
            return found
        assert len(page.items) == limit
        page = read(limit=limit, **filters, **{cursor: page.cursor})
