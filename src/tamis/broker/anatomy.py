"""What a live index is made of: its parts, their nodes, what they share, and what is expensive."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.index.layout import AND, AT_LEAST, OR, XOR
from tamis.index.stats import compute_stats

if TYPE_CHECKING:
    from tamis.index.contents import Contents
    from tamis.live.index import LiveIndex

TOP: Final = 10  # nodes of each list
_OPERATORS: Final = {AND: "AND", OR: "OR", AT_LEAST: "at_least", XOR: "XOR"}


class Anatomist:
    """Computes the statistics of parts. A part never changes, so each is computed once."""

    def __init__(self, live: LiveIndex) -> None:
        self._live = live
        self._lock = Lock()
        self._known: list[tuple[Contents, dict[str, Any]]] = []

    def describe(self) -> dict[str, Any]:
        """The parts, the oldest first, and the statistics of the largest one."""
        view = self._live.view
        parts = [own for own in view.catalogue.parts if len(own.contents.ids)]
        with self._lock:
            self._known = [(own.contents, self._compute(own.contents)) for own in parts]
            stats = [own for _, own in self._known]
        sizes = [own.n_shown for own in parts]
        largest = max(range(len(parts)), key=sizes.__getitem__, default=None)
        return {
            "change": view.change,
            "subscriptions": sum(sizes),
            "parts": [
                {
                    "subscriptions": part.n_shown,
                    "hidden": part.n_hidden,
                    "bytes": own["bytes"],
                    "sharing": own["sharing"],
                    **{name: own["counts"][name] for name in ("leaves", "inner_nodes", "links")},
                }
                for part, own in zip(parts, stats, strict=True)
            ],
            "largest": None if largest is None else stats[largest],
        }

    def _compute(self, contents: Contents) -> dict[str, Any]:
        for known, stats in self._known:
            if known is contents:
                return stats
        return {**compute_stats(contents, top=TOP).to_dict(), "kinds": _count_kinds(contents)}


def _count_kinds(contents: Contents) -> dict[str, int]:
    """How many inner nodes there are of each operator."""
    counts = np.bincount(contents.nodes.operators, minlength=len(_OPERATORS)).tolist()
    return {name: counts[operator] for operator, name in _OPERATORS.items() if counts[operator]}
