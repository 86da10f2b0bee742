"""Costs and selectivities of calls, learned from the calls that were made.

Counts decay: of n calls in a row, the one made k calls ago weighs DECAY ** k, so that the
statistics follow recent calls. They are kept per call, that is, by operator and arguments.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.operators.registry import Operator

DECAY: Final = 0.999
PRIOR_SELECTIVITY: Final = 0.5  # prior for a call never made
PRIOR_WEIGHT: Final = 2.0  # number of calls that the prior weighs
PRIOR_COST: Final = 1e-3  # in seconds


@dataclass(slots=True)
class CallStatistics:
    """Decayed counts of one call."""

    n_calls: float = 0.0
    n_true: float = 0.0
    seconds: float = 0.0

    def add(self, *, is_true: bool, seconds: float) -> None:
        """Count one call."""
        self.n_calls = self.n_calls * DECAY + 1
        self.n_true = self.n_true * DECAY + is_true
        self.seconds = self.seconds * DECAY + seconds

    @property
    def selectivity(self) -> float:
        """The share of events for which the call holds."""
        return (self.n_true + PRIOR_WEIGHT * PRIOR_SELECTIVITY) / (self.n_calls + PRIOR_WEIGHT)

    def cost(self, operator: Operator) -> float:
        """Seconds per call: the declared cost, else the measured one."""
        if operator.cost is not None:
            return operator.cost
        return max(self.seconds / self.n_calls, 1e-9) if self.n_calls else PRIOR_COST


class Statistics:
    """Statistics by text of the call. Threads share it."""

    def __init__(self, saved: Mapping[str, Any] | None = None) -> None:
        self._lock = threading.Lock()
        self._calls: dict[str, CallStatistics] = {}
        self._news: dict[str, CallStatistics] = {}
        self.merge(saved or {})

    def of(self, call: str) -> CallStatistics:
        """The statistics of one call, read-only."""
        return self._calls.get(call) or _UNSEEN

    def add(self, call: str, *, is_true: bool, seconds: float) -> None:
        """Count one call that was made."""
        with self._lock:
            for counts in (self._calls, self._news):
                counts.setdefault(call, CallStatistics()).add(is_true=is_true, seconds=seconds)

    def merge(self, saved: Mapping[str, Any]) -> None:
        """Add the statistics of another process, in the form of `to_json`."""
        with self._lock:
            for call, counts in saved.items():
                own = self._calls.setdefault(call, CallStatistics())
                own.n_calls += float(counts["calls"])
                own.n_true += float(counts["true"])
                own.seconds += float(counts["seconds"])

    def to_json(self) -> dict[str, dict[str, float]]:
        """{call: counts}, which `merge` reads back."""
        with self._lock:
            return _to_json(self._calls)

    def take_news(self) -> dict[str, dict[str, float]]:
        """The counts since the last time, without those merged from elsewhere."""
        with self._lock:
            news, self._news = self._news, {}
            return _to_json(news)


def _to_json(calls: dict[str, CallStatistics]) -> dict[str, dict[str, float]]:
    return {
        call: {
            "calls": round(own.n_calls, 3),
            "true": round(own.n_true, 3),
            "seconds": round(own.seconds, 9),
        }
        for call, own in sorted(calls.items())
    }


_UNSEEN: Final = CallStatistics()
