"""The operators of an index with several parts, as if it had one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tamis.operators.faults import FaultReport
from tamis.operators.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tamis.match.operators import Operators
    from tamis.operators.caller import OperatorLimits
    from tamis.operators.faults import Fault


class JoinedOperators:
    """The interface of `Operators` over all parts."""

    def __init__(self, parts: Sequence[Operators]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @property
    def calls(self) -> list[str]:
        """All distinct calls of the index, as expressions spell them."""
        return list(dict.fromkeys(call for part in self._parts for call in part.calls))

    @property
    def limits(self) -> OperatorLimits:
        """Limits for operators; beyond them their predicates are undefined."""
        return self._parts[0].limits

    @limits.setter
    def limits(self, limits: OperatorLimits) -> None:
        for part in self._parts:
            part.limits = limits

    @property
    def faults(self) -> list[Fault]:
        """Calls that failed: how often, why, and which subscriptions they left undecided."""
        return _join(fault for part in self._parts for fault in part.faults)

    @property
    def abandoned(self) -> dict[str, int]:
        """Calls that timed out and still run in this process, by operator."""
        found: Counter[str] = Counter()
        for part in self._parts:
            found.update(part.abandoned)
        return dict(found)

    @property
    def blocked(self) -> list[str]:
        """The calls and the operators that failed too often, and are not called for a while."""
        return list(dict.fromkeys(one for part in self._parts for one in part.blocked))

    def take_faults(self) -> list[Fault]:
        """Return the faults so far and clear them."""
        return _join(fault for part in self._parts for fault in part.take_faults())

    @property
    def statistics(self) -> dict[str, dict[str, float]]:
        """Decayed counts of each call: how often it was made, how often it held, its seconds."""
        return _merge(part.statistics for part in self._parts)

    def take_news(self) -> dict[str, dict[str, float]]:
        """The statistics since the last call of this method, to be passed to others."""
        return _merge(part.take_news() for part in self._parts)

    def learn(self, statistics: Mapping[str, Mapping[str, float]]) -> None:
        """Add the statistics of another index or another process."""
        for part in self._parts:
            part.learn(statistics)

    def expect_all(self) -> None:
        """Raise `MissingOperatorError` unless all operators that are called are registered."""
        for part in self._parts:
            part.expect_all()


def _join(faults: Iterable[Fault]) -> list[Fault]:
    report = FaultReport()
    for fault in faults:
        report.merge(fault)
    return report.faults


def _merge(parts: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    merged = Statistics({})
    for counts in parts:
        merged.merge(counts)
    return merged.to_json()
