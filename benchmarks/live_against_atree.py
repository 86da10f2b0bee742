"""A live index against the A-Tree of the lab, which changes in place (A-Tree §4, Algorithms 4, 5).

Both get the same expressions of ABE-Gen in the same shuffled order; then a tenth is deleted and as
many others are inserted. The live index reads text, checks it and writes it to disk before it
answers, a thousand at a time. The A-Tree gets trees whose leaves are numbered already, and has them
in memory only.
"""

from __future__ import annotations

import random
import tempfile
import time
from typing import TYPE_CHECKING, Any, Final

from tamis.lab.atree.a_tree import ATree
from tamis.lab.forest import Forest
from tamis.lab.workloads import AbeGen
from tamis.lab.workloads.abe_forest import AbeParams
from tamis.live import LiveIndex
from tamis.subscriptions import Accepted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

N_EVENTS: Final = 512
GROUP: Final = 1_000  # changes of the live index at once
Figures = dict[str, float]  # by what was measured
Found = list[set[str]]  # ids, by event

UNITS: Final = {
    "insert, shuffled": "subscriptions/s",
    "match single": "µs",
    "match batch": "µs",
    "delete a tenth": "subscriptions/s",
    "insert a tenth": "subscriptions/s",
    "match single, after both": "µs",
    "match batch, after both": "µs",
    "memory, after both": "MB",
    "parts, after both": "",
}


class Churn:
    """Which subscriptions come, in which order, and which go."""

    def __init__(self, n_base: int) -> None:
        n_changed = max(1, n_base // 10)
        workload = AbeGen(AbeParams(n_expressions=n_base + n_changed))
        draw = random.Random(1)
        self.schema = workload.schema
        self.texts = workload.expressions()
        self.events = workload.events(N_EVENTS)
        self.base = draw.sample(range(n_base), n_base)
        self.gone = draw.sample(range(n_base), n_changed)
        self.new = list(range(n_base, n_base + n_changed))


class Live:
    """The live index; its subscriptions are named by their numbers."""

    def __init__(self, churn: Churn, folder: str) -> None:
        self._churn = churn
        self._live = LiveIndex.open(folder, schema=churn.schema)

    def insert(self, numbers: Sequence[int]) -> None:
        for at in range(0, len(numbers), GROUP):
            rows = [(str(own), self._churn.texts[own]) for own in numbers[at : at + GROUP]]
            assert all(isinstance(one, Accepted) for one in self._live.add_many(rows))

    def delete(self, numbers: Sequence[int]) -> None:
        for at in range(0, len(numbers), GROUP):
            results = self._live.remove_many([str(own) for own in numbers[at : at + GROUP]])
            assert all(isinstance(one, Accepted) for one in results)

    def settle(self) -> None:
        """Wait for the merges that are due, or would be some seconds later."""
        for event in self._churn.events:
            self._live.match(event)
        is_merged = True
        while is_merged:
            self._live._maintenance._next_measure = 0.0
            is_merged = self._live._maintenance.step()

    def measure(self) -> tuple[float, float, Found]:
        """Seconds of CPU per event, one by one and in a batch, and what was found."""
        live, events = self._live, self._churn.events
        single = best(lambda: [live.match(event) for event in events])
        encoded = live.encode(events)
        batch = best(lambda: live.match_lists(encoded))
        found = [set(own) for own in live.match_lists(encoded).to_pylist()]
        return single / len(events), batch / len(events), found

    @property
    def n_bytes(self) -> int:
        """The arrays that matching reads."""
        contents = [engine.contents for engine in self._live.view.engines]
        arrays = [(own.leaves, own.nodes, own.roots, own.triggers) for own in contents]
        return sum(array.nbytes for part in arrays for group in part for array in group)

    @property
    def n_parts(self) -> int:
        """The parts that each match asks."""
        return len(self._live.view.engines)

    def close(self) -> None:
        self._live.close()


class Tree:
    """The A-Tree. The leaves of all expressions are numbered in advance, in no measured time."""

    def __init__(self, churn: Churn) -> None:
        self._churn = churn
        numbered = ((str(at), text) for at, text in enumerate(churn.texts))
        self._forest = Forest.of(numbered, churn.schema)
        self._tree = ATree({}, self._forest.n_leaves)
        self._compile()

    def _compile(self) -> None:
        """Run each kernel once: the live index has its kernels already."""
        tree = ATree({}, self._forest.n_leaves)
        for number in self._churn.new[:50]:
            tree.insert(number, self._forest.trees[number])
        tree.match(self._forest.satisfied(self._churn.events[:10]))
        for number in self._churn.new[:50]:
            tree.delete(number)

    def insert(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._tree.insert(number, self._forest.trees[number])

    def delete(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._tree.delete(number)

    def settle(self) -> None:
        """It has nothing to do in the background."""

    def measure(self) -> tuple[float, float, Found]:
        """Seconds of CPU per event, from the event and from its true leaves, and what was found."""
        forest, events = self._forest, self._churn.events
        satisfied = forest.satisfied(events)
        reading = best(lambda: forest.satisfied(events)) / len(events)
        matching = best(lambda: self._tree.find(satisfied)) / len(events)
        rows = self._tree.match(satisfied)
        found = [set(map(str, rows[at].tolist())) for at in range(len(events))]
        return reading + matching, matching, found

    @property
    def n_bytes(self) -> int:
        """Its nodes, links and hash table; without the tests of attributes."""
        return self._tree.n_bytes

    @property
    def n_parts(self) -> int:
        """It is one tree."""
        return 1

    def close(self) -> None:
        """It has nothing to release."""


def compare(n_base: int) -> list[dict[str, Any]]:
    """One row per figure, with that of the live index and that of the A-Tree."""
    churn = Churn(n_base)
    with tempfile.TemporaryDirectory() as folder:
        ours, found = _measure(Live(churn, folder), churn)
    theirs, same = _measure(Tree(churn), churn)
    assert found == same, "the live index and the A-Tree differ"
    return [
        {
            "what": f"{what} (ABE-Gen, {n_base:,})",
            "value": ours[what],
            "unit": unit,
            "A-Tree": theirs[what],
            "ratio": ours[what] / theirs[what],
        }
        for what, unit in UNITS.items()
    ]


def _measure(engine: Live | Tree, churn: Churn) -> tuple[Figures, Found]:
    figures: Figures = {}

    def change(what: str, act: Callable[[], None], n_changed: int) -> None:
        figures[what] = n_changed / seconds(act)
        engine.settle()

    def match(when: str) -> Found:
        single, batch, found = engine.measure()
        figures[f"match single{when}"] = single * 1e6
        figures[f"match batch{when}"] = batch * 1e6
        return found

    try:
        change("insert, shuffled", lambda: engine.insert(churn.base), len(churn.base))
        match("")
        change("delete a tenth", lambda: engine.delete(churn.gone), len(churn.gone))
        change("insert a tenth", lambda: engine.insert(churn.new), len(churn.new))
        found = match(", after both")
        figures["memory, after both"] = engine.n_bytes / 1e6
        figures["parts, after both"] = engine.n_parts
    finally:
        engine.close()
    return figures, found


def seconds(function: Callable[[], Any]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def best(function: Callable[[], Any]) -> float:
    """The least CPU time of a few runs, after one to warm up."""
    function()
    spent = []
    for _ in range(3):
        began = time.process_time()
        function()
        spent.append(time.process_time() - began)
    return min(spent)
