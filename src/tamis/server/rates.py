"""How often a caller may do something: a bucket of tokens for each, which fills at its rate."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BUCKETS: Final = 100_000  # of callers; the least recent ones are forgotten
LONGEST_WAIT: Final = 3_600.0  # seconds, for a rate of 0
BURST_SECONDS: Final = 2.0  # of requests that may come at once


class RateLimits:
    """The buckets of all callers; used on the event loop only."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, rate: float) -> float:
        """Take a token; returns 0, or how many seconds to wait if there is none."""
        tokens, now = self._fill(caller, rate)
        wait = _wait_for_one(tokens, rate)
        self._buckets.pop(caller, None)
        self._buckets[caller] = (tokens if wait else tokens - 1, now)
        while len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return wait

    def look(self, caller: str, rate: float) -> float:
        """What `take` would return, without taking anything."""
        return _wait_for_one(self._fill(caller, rate)[0], rate)

    def has(self, caller: str) -> bool:
        """Whether the caller took a token before."""
        return caller in self._buckets

    def _fill(self, caller: str, rate: float) -> tuple[float, float]:
        now, most = self._timer(), max(1.0, rate * BURST_SECONDS)
        tokens, moment = self._buckets.get(caller, (most, now))
        return min(most, tokens + (now - moment) * rate), now


def _wait_for_one(tokens: float, rate: float) -> float:
    if tokens >= 1:
        return 0.0
    return (1 - tokens) / rate if rate else LONGEST_WAIT
