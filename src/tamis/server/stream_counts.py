"""How many streams each caller has open."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tamis.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator


class StreamCounts:
    """The open streams, sockets and long polls by caller; used on the event loop only."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._open.total()

    @contextmanager
    def hold(self, caller: str, most: int) -> Iterator[None]:
        """Count a stream while it is open; raises a `Problem` if the caller has too many."""
        if self._open[caller] >= most:
            raise Problem(
                429,
                "too-many-streams",
                f"{most:,} streams of this key are open, which is the limit",
                hint="close some, or follow several subscriptions by one channel",
                headers={"retry-after": "10"},
                limit=most,
            )
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]
