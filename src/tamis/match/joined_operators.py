"""The operators of an index that has several parts, as those of one."""

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
    """What users ask of `Operators`, asked of those of all parts."""

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
        """What operators may take before their predicates are undefined."""
        return self._parts[0].limits

    @limits.setter
    def limits(self, limits: OperatorLimits) -> None:
        for part in self._parts:
            part.limits = limits

    @property
    def faults(self) -> list[Fault]:
        """Calls that failed, with how often, why, and which subscriptions they left open."""
        return _join(fault for part in self._parts for fault in part.faults)

    @property
    def abandoned(self) -> dict[str, int]:
        """Calls that took too long, were given up, and still run in this process, by operator."""
        found: Counter[str] = Counter()
        for part in self._parts:
            found.update(part.abandoned)
        return dict(found)

    def take_faults(self) -> list[Fault]:
        """The faults so far, which are forgotten here."""
        return _join(fault for part in self._parts for fault in part.take_faults())

    def clear_faults(self) -> None:
        """Forget the faults so far."""
        self.take_faults()

    @property
    def statistics(self) -> dict[str, dict[str, float]]:
        """Decayed counts of each call: how often it was made, how often it held, its seconds."""
        return _merge(part.statistics for part in self._parts)

    def take_news(self) -> dict[str, dict[str, float]]:
        """What was learned since this was last asked, to be given to others."""
        return _merge(part.take_news() for part in self._parts)

    def learn(self, statistics: Mapping[str, Mapping[str, float]]) -> None:
        """Add what another index, or another process, has learned of calls."""
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
