"""Rows with a target, and whether it is met.

A target may hold for some sizes of a benchmark only; at other sizes it is shown, but not judged.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Row = dict[str, Any]


def chosen_size() -> str:
    """What `TAMIS_BENCH_SIZE` says."""
    return os.environ.get("TAMIS_BENCH_SIZE", "small")


class Target(NamedTuple):
    """What a figure should be."""

    limit: float
    key: str = "value"  # or the ratio
    is_least: bool = False
    sizes: tuple[str, ...] = ()  # for which it holds; empty for all
    also: tuple[str, ...] = ()  # other figures of the row with the same limit

    def judge(self, row: Row) -> Row:
        """The target as a table shows it, and whether the row meets it; None at other sizes."""
        sign = "≥" if self.is_least else "≤"
        shown = f"{sign} {self.limit:,.10g}{' ×' if 'ratio' in self.key else ''}"
        if self.sizes and chosen_size() not in self.sizes:
            return {"target": f"{shown} at {' and '.join(self.sizes)}", "met": None}
        judged = [row[key] for key in (self.key, *self.also)]
        is_met = all(own >= self.limit if self.is_least else own <= self.limit for own in judged)
        return {"target": shown, "met": bool(is_met)}


def at_size(size: str, targets: Mapping[str, Target]) -> dict[str, Target]:
    """The same targets, which hold for one size only."""
    return {what: target._replace(sizes=(size,)) for what, target in targets.items()}


def make_row(targets: Mapping[str, Target], what: str, value: float, unit: str, **more: Any) -> Row:
    """A row of a table: the figure, its target if it has one, and what it is compared with."""
    row = {"what": what, "value": round(value, 3), "unit": unit}
    judged = targets[what].judge(row | more) if what in targets else {}
    return {**row, "target": judged.get("target"), "met": judged.get("met"), **more}
