"""The candidates of one event, between the schedule that chooses calls and the joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.operators.caller import Failure
from tamis.operators.faults import MOST_IDS, FaultKind
from tamis.operators.search import BudgetError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.logic.bindings import Answer
    from tamis.operators.caller import Caller
    from tamis.operators.schedule import EventRun
    from tamis.operators.search import Facts, SubstitutionSearch
    from tamis.operators.sources import Sources


class EventCandidates:
    """Passes answers to the schedule, and joined gates as soon as they are decided."""

    def __init__(
        self, sources: Sources, caller: Caller, run: EventRun, facts: Facts, rows: np.ndarray
    ) -> None:
        self._sources, self._caller, self._run = sources, caller, run
        self.facts = facts
        self._rows = rows  # of the plan
        self._joins: dict[int, SubstitutionSearch] = {}  # searches of open joined gates
        self._by_call: dict[int, list[int]] = {}  # joined gates that a call is part of
        self._joining: dict[int, list[int]] = {}  # subscriptions that have a joined gate
        self._following: int | None = None  # the call to make now, if the schedule has chosen it

    def start(self) -> None:
        """Start with the cheap tests."""
        self._run.start(self._rows)
        for row in self._rows[self._sources.has_more[self._rows]].tolist():
            for gate in self._sources.joined_gates(row):
                self._joining.setdefault(gate, []).append(row)
                if gate not in self._joins:
                    search = self._joins[gate] = self._sources.join(gate)
                    for call in search.calls:
                        self._by_call.setdefault(call, []).append(gate)
            for test in self._sources.tests_of_row(row):
                truth = self.facts.test(self._sources.test(test))
                self._run.record_result(self._sources.n_calls + test, truth is True)

    def next_call(self) -> int:
        """The call to make now, or -1 if there is none."""
        call = self._run.next_call() if self._following is None else self._following
        if call >= 0 or len(self._run.undecided) == 0:
            return call
        # Only calls that are under no gate are left: they decide between substitutions.
        for search in self._joins.values():
            if open_calls := search.open_calls(self.facts):
                return int(open_calls[0])
        raise AssertionError("a subscription is undecided, but no call can decide it")

    def record_answer(self, call: int, answer: Answer | Failure) -> None:
        """Take an answer and propagate its consequences."""
        known = self.take(call, answer, None)
        truth = None if known is None else bool(known)
        if truth is None and self._sources.is_signed:
            truth = False
        following = self._run.record_result(call, truth)
        gates = self._by_call.get(call, ())
        for gate in gates:
            self._judge(gate)
        self._following = None if gates else following

    def take(self, call: int, answer: Answer | Failure, ordinals: list[int] | None) -> Answer:
        """Store an answer; a failure is reported and leaves the call undefined."""
        if isinstance(answer, Failure):
            self.report(call, answer, ordinals)
            answer = None
        self.facts.answers[call] = answer
        return answer

    def report(self, call: int, failure: Failure, ordinals: list[int] | None = None) -> None:
        """Report a call without an answer, with the subscriptions that it leaves undecided."""
        if ordinals is None:
            rows = self._run.only_undecided(self._rows_of(call))
            ordinals = [self._sources.ordinal(row) for row in rows[:MOST_IDS].tolist()]
        self._caller.report.add(
            self._caller.texts[call], failure.kind, failure.message, self._ids(ordinals)
        )

    def _rows_of(self, call: int) -> np.ndarray:
        """The subscriptions that depend on a call, in a gate or in a join."""
        own = self._sources.rows_of_call(call)
        joined = [row for gate in self._by_call.get(call, ()) for row in self._joining[gate]]
        return np.union1d(own, np.array(joined, dtype=own.dtype)) if joined else own

    def report_rest(self, failure: Failure) -> None:
        """Report all undecided subscriptions."""
        rows = self._run.undecided[:MOST_IDS].tolist()
        ids = self._ids(map(self._sources.ordinal, rows))
        self._caller.report.add("", failure.kind, failure.message, ids)

    def report_search(self, ordinals: Iterable[int]) -> None:
        """Report that no substitution was found within the limit of steps."""
        steps = self._caller.limits.search_steps
        message = f"more than {steps} steps in the search for a substitution"
        self._caller.report.add("", FaultKind.BUDGET, message, self._ids(ordinals))

    def _ids(self, ordinals: Iterable[int]) -> list[str]:
        return [self._sources.id_of(ordinal) for ordinal in ordinals]

    def _judge(self, gate: int) -> None:
        """Decide a joined gate as soon as possible."""
        search = self._joins.get(gate)
        if search is None:
            return
        try:
            if not search.is_possible(self.facts):
                verdict = False
            elif search.has_answers(self.facts) or search.certain(self.facts) is not None:
                verdict = True
            else:
                return
        except BudgetError:
            self.report_search(map(self._sources.ordinal, self._joining[gate]))
            verdict = False
        del self._joins[gate]
        self._run.settle(gate, verdict)
