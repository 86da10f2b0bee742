"""The plan of an index: the residuals of all its subscriptions, as gates that share common parts.

Calls are numbered first, then tests, which schedules treat as calls without cost. Calls are stored
by their texts. Tests and joins are not stored: they are located by their position in the expression
of a subscription that contains them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.errors import IndexFormatError
from tamis.language.ast import OperatorCall, attributes
from tamis.language.check import check
from tamis.language.limits import NO_LIMITS
from tamis.language.parser import parse
from tamis.logic.bindings import call_of, calls_of
from tamis.operators.residual import Call, Gate, Node, Test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.kernels.arrays import Int32, Int64
    from tamis.language.ast import Condition
    from tamis.language.schema import Schema
    from tamis.operators.residual import Residual


class PlanArrays(NamedTuple):
    """The stored form of the residuals; nodes are numbered as in `schedules.gates`."""

    subscriptions: Int32  # [n], ordinals of subscriptions with operators, ascending
    roots: Int32  # [n], nodes
    thresholds: Int32  # [n_gates]
    child_starts: Int64  # [n_gates + 1]
    children: Int32  # [:], nodes
    is_joined: Int32  # [n_gates]
    test_owners: Int32  # [n_tests], ordinal of a subscription that contains the test
    test_places: Int32  # [n_tests], position among that subscription's tests
    join_owners: Int32  # [n_gates], the same for joins; -1 if there is no join
    join_places: Int32  # [n_gates]


class StoredResiduals(NamedTuple):
    """Everything that an index stores about its operators."""

    arrays: PlanArrays
    calls: tuple[OperatorCall, ...]
    paths: tuple[tuple[str, ...], ...] = ()  # of attributes that residuals read

    def __len__(self) -> int:
        return len(self.arrays.subscriptions)


def tests_of(root: Node) -> list[Condition]:
    """The tests of a residual, in order."""
    return list(dict.fromkeys(node.condition for node in _walk(root) if isinstance(node, Test)))


def joins_of(root: Node) -> list[Condition]:
    """The joins of a residual, in order."""
    gates = (node for node in _walk(root) if isinstance(node, Gate))
    return list(dict.fromkeys(gate.join for gate in gates if gate.join is not None))


def _walk(root: Node) -> Iterator[Node]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, Gate):
            pending.extend(reversed(node.children))


class PlanWriter:
    """Collects residuals and builds the `StoredResiduals`."""

    def __init__(self) -> None:
        self._subscriptions: list[int] = []
        self._roots: list[tuple[str, int]] = []
        self._calls: dict[OperatorCall, int] = {}
        self._tests: dict[Condition, tuple[int, int, int]] = {}  # number, subscription, position
        self._gates: dict[Gate, int] = {}
        self._thresholds: list[int] = []
        self._children: list[list[tuple[str, int]]] = []
        self._joins: list[tuple[int, int]] = []  # subscription and position of each gate's join
        self._paths: set[tuple[str, ...]] = set()

    def add(self, ordinal: int, residual: Residual) -> None:
        """Add the residual of a subscription; ordinals must be ascending."""
        if residual.root is None:
            return
        tests = {test: place for place, test in enumerate(tests_of(residual.root))}
        for test, place in tests.items():
            self._tests.setdefault(test, (len(self._tests), ordinal, place))
        joins = {join: place for place, join in enumerate(joins_of(residual.root))}
        self._paths.update(attribute.path for attribute in attributes(residual.form))
        self._subscriptions.append(ordinal)
        self._roots.append(self._add(residual.root, ordinal, joins))

    def _add(self, node: Node, owner: int, joins: dict[Condition, int]) -> tuple[str, int]:
        if isinstance(node, Call):
            number = self._calls.setdefault(node.call, len(self._calls))
            return "call", 2 * number + node.is_negated
        if isinstance(node, Test):
            return "test", 2 * self._tests[node.condition][0]
        if node not in self._gates:
            below = [self._add(child, owner, joins) for child in node.children]
            for call in () if node.join is None else calls_of(node.join):
                self._calls.setdefault(call, len(self._calls))
            self._gates[node] = len(self._gates)
            self._thresholds.append(node.threshold)
            self._children.append(below)
            place = -1 if node.join is None else joins[node.join]
            self._joins.append((-1 if place < 0 else owner, place))
        return "gate", self._gates[node]

    def finish(self, ordinals: np.ndarray | None = None) -> StoredResiduals:
        """The plan; `ordinals` gives the final numbers of subscriptions, also ascending."""
        n_calls = len(self._calls)
        first = {"call": 0, "test": 2 * n_calls, "gate": 2 * (n_calls + len(self._tests))}
        final = (
            np.arange(max(self._subscriptions, default=-1) + 1) if ordinals is None else ordinals
        )
        children = [first[kind] + number for below in self._children for kind, number in below]
        tests = list(self._tests.values())
        return StoredResiduals(
            PlanArrays(
                _ints(final[number] for number in self._subscriptions),
                _ints(first[kind] + number for kind, number in self._roots),
                _ints(self._thresholds),
                np.concatenate(([0], np.cumsum([len(x) for x in self._children]))).astype(np.int64),
                _ints(children),
                _ints(owner >= 0 for owner, _ in self._joins),
                _ints(final[owner] for _, owner, _ in tests),
                _ints(place for _, _, place in tests),
                _ints(final[owner] if owner >= 0 else -1 for owner, _ in self._joins),
                _ints(place for _, place in self._joins),
            ),
            tuple(self._calls),
            tuple(sorted(self._paths)),
        )


def read_calls(texts: list[str], schema: Schema) -> tuple[OperatorCall, ...]:
    """The stored calls, parsed from their texts."""
    nodes = [check(parse(text, NO_LIMITS), schema, NO_LIMITS) for text in texts]
    calls = tuple(call_of(node) for node in nodes if isinstance(node, OperatorCall))
    if len(calls) < len(texts):
        raise IndexFormatError("the index names a call that is not a valid operator call")
    return calls


def _ints(values: Any) -> np.ndarray:
    array = np.array(list(values), dtype=np.int32)
    array.flags.writeable = False
    return array


NO_PLAN = PlanWriter().finish()
