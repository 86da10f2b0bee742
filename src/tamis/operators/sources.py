"""Tests and joins of a plan, located in the expressions of subscriptions on first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.errors import IndexFormatError
from tamis.language.check import check
from tamis.language.limits import NO_LIMITS
from tamis.language.parser import parse
from tamis.logic.evaluate import Missing
from tamis.operators.plan import joins_of, tests_of
from tamis.operators.residual import split
from tamis.operators.schedule import Gates
from tamis.operators.schedule.kernels.reach import mark_above
from tamis.operators.search import SubstitutionSearch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.language.ast import Condition, OperatorCall
    from tamis.language.schema import Schema
    from tamis.operators.plan import StoredResiduals
    from tamis.operators.residual import Node, Residual

MOST_WHOLE: Final = 100_000  # subscriptions whose searches are cached


class Sources:
    """The expressions behind a plan. Threads share it; concurrent computations give equal
    results.
    """

    def __init__(
        self,
        plan: StoredResiduals,
        schema: Schema,
        missing: Missing,
        text_of: Callable[[int], str],
        id_of: Callable[[int], str],
    ) -> None:
        self.missing = missing
        self.id_of = id_of
        self._plan, self._schema, self._text_of = plan, schema, text_of
        self._joined: dict[int, tuple[int, ...]] = {}
        self._joins: dict[int, SubstitutionSearch] = {}
        self._tests: dict[int, Condition] = {}
        self._whole: dict[int, SubstitutionSearch | None] = {}

    @property
    def n_calls(self) -> int:
        """The number of calls; tests are numbered after them."""
        return len(self._plan.calls)

    @cached_property
    def gates(self) -> Gates:
        """The plan in the form that schedules use."""
        arrays = self._plan.arrays
        return Gates.of(
            self.n_calls + len(arrays.test_owners),
            arrays.thresholds,
            arrays.child_starts,
            arrays.children,
            arrays.roots,
            arrays.is_joined,
        )

    def rows(self, ordinals: Sequence[int]) -> np.ndarray:
        """Subscriptions by their positions in the plan."""
        found = np.searchsorted(self._plan.arrays.subscriptions, np.asarray(ordinals))
        return found.astype(np.int32)

    def ordinal(self, row: int) -> int:
        """The subscription at a position of the plan."""
        return int(self._plan.arrays.subscriptions[row])

    def _calls_of_row(self, row: int) -> np.ndarray:
        starts, calls = self.gates.call_lists
        return calls[starts[row] : starts[row + 1]]

    def tests_of_row(self, row: int) -> list[int]:
        """The tests that a subscription depends on."""
        if not len(self._plan.arrays.test_owners):
            return []
        own = self._calls_of_row(row)
        return [int(call) - self.n_calls for call in own[own >= self.n_calls]]

    @cached_property
    def has_more(self) -> np.ndarray:
        """For each subscription of the plan, whether it has tests or joins in addition to calls."""
        arrays, gates = self._plan.arrays, self.gates
        n_literals = 2 * gates.n_calls
        marks = np.zeros(gates.n_nodes, dtype=np.bool_)
        marks[2 * self.n_calls : n_literals] = True
        marks[n_literals:] = arrays.is_joined
        mark_above(n_literals, gates.child_starts, gates.children, marks)
        found: np.ndarray = marks[gates.roots]
        return found

    def rows_of_call(self, call: int) -> np.ndarray:
        """The subscriptions of the plan that depend on a call, other than by joins."""
        starts, rows = self._rows_by_call
        return rows[starts[call] : starts[call + 1]]

    @cached_property
    def _rows_by_call(self) -> tuple[np.ndarray, np.ndarray]:
        starts, calls = self.gates.call_lists
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        order = np.argsort(calls, kind="stable")
        first = np.searchsorted(calls[order], np.arange(self.gates.n_calls + 1))
        return first, rows[order]

    @property
    def is_signed(self) -> bool:
        """Whether an undefined test counts as false."""
        return self.missing is Missing.SATISFIES_NEGATION

    @cached_property
    def _numbers(self) -> dict[OperatorCall, int]:
        return {call: number for number, call in enumerate(self._plan.calls)}

    def _residual(self, ordinal: int) -> Residual:
        text = self._text_of(ordinal)
        condition = check(parse(text, NO_LIMITS), self._schema, NO_LIMITS, text)
        return split(condition, self.missing)

    def _root(self, ordinal: int) -> Node:
        root = self._residual(ordinal).root
        if root is None:
            raise self._misfit(ordinal)
        return root

    def _misfit(self, ordinal: int) -> IndexFormatError:
        return IndexFormatError(
            f'the index does not fit the expression of its subscription "{self.id_of(ordinal)}"',
            hint="rebuild it from its subscriptions",
        )

    def test(self, number: int) -> Condition:
        """The condition of a test."""
        if number not in self._tests:
            arrays = self._plan.arrays
            owner, place = int(arrays.test_owners[number]), int(arrays.test_places[number])
            tests = tests_of(self._root(owner))
            if not 0 <= place < len(tests):
                raise self._misfit(owner)
            self._tests[number] = tests[place]
        return self._tests[number]

    def join(self, gate: int) -> SubstitutionSearch:
        """The search behind a joined gate."""
        if gate not in self._joins:
            arrays = self._plan.arrays
            owner, place = int(arrays.join_owners[gate]), int(arrays.join_places[gate])
            joins = joins_of(self._root(owner))
            if not 0 <= place < len(joins):
                raise self._misfit(owner)
            self._joins[gate] = SubstitutionSearch(joins[place], self._numbers, self.missing)
        return self._joins[gate]

    def whole(self, ordinal: int) -> SubstitutionSearch | None:
        """The search for a subscription's substitution; None if it has no variables."""
        if ordinal not in self._whole:
            if len(self._whole) >= MOST_WHOLE:
                self._whole.clear()
            residual = self._residual(ordinal)
            self._whole[ordinal] = (
                SubstitutionSearch(residual.form, self._numbers, self.missing, residual.names)
                if residual.names
                else None
            )
        return self._whole[ordinal]

    def joined_gates(self, row: int) -> tuple[int, ...]:
        """The joined gates below the root of a subscription of the plan."""
        if row not in self._joined:
            self._joined[row] = self._find_joined(row)
        return self._joined[row]

    def _find_joined(self, row: int) -> tuple[int, ...]:
        arrays = self._plan.arrays
        n_literals = 2 * (len(self._plan.calls) + len(arrays.test_owners))
        found: dict[int, None] = {}
        pending = [int(arrays.roots[row])]
        seen: set[int] = set()
        while pending:
            gate = pending.pop() - n_literals
            if gate < 0 or gate in seen:
                continue
            seen.add(gate)
            if arrays.is_joined[gate]:
                found[gate] = None
            pending.extend(
                arrays.children[arrays.child_starts[gate] : arrays.child_starts[gate + 1]].tolist()
            )
        return tuple(found)
