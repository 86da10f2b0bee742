"""The operator phase: finds the candidates that match with few calls; their cheap part holds.

Each event is a task that requests one call after another, as its schedule says, and ends with its
verdicts. Tasks that need a batch operator wait for each other, so that one call serves all of them.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from tamis.operators.caller import ABSENT, BatchAnswers, Caller, Failure
from tamis.operators.event_candidates import EventCandidates
from tamis.operators.faults import FaultKind
from tamis.operators.schedule import make_schedule
from tamis.operators.search import BudgetError, Facts
from tamis.operators.verdict import Verdict
from tamis.operators.views import Views

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from tamis.logic.bindings import Answer
    from tamis.operators.schedule import EventRun, Schedule
    from tamis.operators.sources import Sources

    Task = Generator[int, "Answer | Failure", "Verdict"]

TEST_COST: Final = 1e-9  # seconds: a schedule treats tests as calls of this cost
MOST_RUN_BYTES: Final = 64 << 20  # of all events that wait for one batch operator
MOST_TASKS: Final = 512
REFRESH: Final = 100_000  # calls after which the schedule is rebuilt, at the latest


class OperatorPhase:
    """Decides the candidates of one index. Threads share it."""

    def __init__(self, sources: Sources, caller: Caller) -> None:
        self._sources = sources
        self._gates = sources.gates
        self._caller = caller
        self._has_batches = any(operator.is_batch for operator in caller.operators)
        self._runs: SimpleQueue[tuple[Schedule, EventRun]] = SimpleQueue()
        self._n_made = 0
        self._refresh()

    # ── many events ────────────────────────────────────────────────────────────────────────

    def decide(
        self,
        events: Iterable[tuple[Mapping[str, Any], Sequence[int]]],
        *,
        with_bindings: bool = False,
    ) -> Iterator[Verdict]:
        """The verdict for each event; each event comes with the ordinals of its candidates."""
        cache = BatchAnswers(self._caller)
        if not self._has_batches:
            for event, ordinals in events:
                yield self._finish(event, ordinals, cache, with_bindings=with_bindings)
            return
        waiting: list[tuple[Mapping[str, Any], Sequence[int]]] = []
        for pair in events:
            waiting.append(pair)
            if len(waiting) == self._most_tasks:
                yield from self._decide_together(waiting, cache, with_bindings=with_bindings)
                waiting = []
        yield from self._decide_together(waiting, cache, with_bindings=with_bindings)

    def _finish(
        self,
        event: Mapping[str, Any],
        ordinals: Sequence[int],
        cache: BatchAnswers,
        *,
        with_bindings: bool,
    ) -> Verdict:
        """Process one event from beginning to end."""
        with self._borrow() as run:
            step = _Step(self._task(run, event, ordinals, with_bindings=with_bindings), event)
            while step.verdict is None:
                step.send(self._answer(step, cache))
            return step.verdict

    def _decide_together(
        self,
        pairs: list[tuple[Mapping[str, Any], Sequence[int]]],
        cache: BatchAnswers,
        *,
        with_bindings: bool,
    ) -> list[Verdict]:
        """Process events concurrently: each runs until it needs a batch operator, then it waits."""
        with self._borrow_many(len(pairs)) as runs:
            steps = [
                _Step(self._task(run, event, ordinals, with_bindings=with_bindings), event)
                for run, (event, ordinals) in zip(runs, pairs, strict=True)
            ]
            for step in steps:
                self._go_on(step, cache)
            while wanted := Counter(step.call for step in steps if step.verdict is None):
                call = wanted.most_common(1)[0][0]
                own = [step for step in steps if step.verdict is None and step.call == call]
                answers = self._answer_together(call, [step.views for step in own], cache)
                for step, answer in zip(own, answers, strict=True):
                    step.send(answer)
                    self._go_on(step, cache)
        return [step.verdict for step in steps if step.verdict is not None]

    def _go_on(self, step: _Step, cache: BatchAnswers) -> None:
        while step.verdict is None:
            if self._caller.operators[step.call].is_batch:
                answer = cache.get(cache.key(step.call, step.views))
                if answer is ABSENT:
                    return
            else:
                answer = self._answer(step, cache)
            step.send(answer)

    def _answer(self, step: _Step, cache: BatchAnswers) -> Answer | Failure:
        key = cache.key(step.call, step.views)
        known: Answer | Failure = cache.get(key)
        if known is ABSENT:
            known = self._caller.call(step.call, step.views)
            self._n_made += 1
            cache.put(key, known)
        return known

    def _answer_together(
        self, call: int, views: list[Views], cache: BatchAnswers
    ) -> list[Answer | Failure]:
        keys = [cache.key(call, own) for own in views]
        # Of events that look equal to the operator only the first is passed to it.
        first = {key: at for at, key in reversed(list(enumerate(keys))) if key is not None}
        asked = [at for at, key in enumerate(keys) if key is None or first[key] == at]
        made = self._caller.call_batch(call, [views[at] for at in asked])
        self._n_made += len(asked)
        answers = dict(zip(asked, made, strict=True))
        for at, answer in answers.items():
            cache.put(keys[at], answer)
        return [answers[at if key is None else first[key]] for at, key in enumerate(keys)]

    # ── one event ──────────────────────────────────────────────────────────────────────────

    def _task(
        self,
        run: EventRun,
        event: Mapping[str, Any],
        ordinals: Sequence[int],
        *,
        with_bindings: bool,
    ) -> Task:
        limits = self._caller.limits
        facts = Facts(event, self._sources.missing, limits.search_steps)
        rows = self._sources.rows(ordinals)
        candidates = EventCandidates(self._sources, self._caller, run, facts, rows)
        candidates.start()
        while (call := candidates.next_call()) >= 0:
            if len(facts.answers) >= limits.calls_per_event:
                candidates.report_rest(
                    Failure(FaultKind.BUDGET, f"more than {limits.calls_per_event} calls")
                )
                break
            candidates.record_answer(call, (yield call))
        matched = [self._sources.ordinal(row) for row in run.matched.tolist()]
        found: dict[int, dict[str, Any]] = {}
        if with_bindings:
            for ordinal in matched:
                found[ordinal] = yield from self._bind(ordinal, candidates)
        return Verdict(set(matched), found)

    def _bind(
        self, ordinal: int, candidates: EventCandidates
    ) -> Generator[int, Any, dict[str, Any]]:
        """The first substitution; makes the calls that may lead to an earlier one."""
        search = self._sources.whole(ordinal)
        if search is None:
            return {}
        facts = candidates.facts
        try:
            while open_calls := search.open_calls(facts):
                if len(facts.answers) >= self._caller.limits.calls_per_event:
                    break
                candidates.take(open_calls[0], (yield open_calls[0]), [ordinal])
            return search.certain(facts) or {}
        except BudgetError:
            candidates.report_search([ordinal])
            return {}

    # ── schedules ──────────────────────────────────────────────────────────────────────────

    def _refresh(self) -> None:
        """Make a schedule from the costs and selectivities known now."""
        known = [self._caller.statistics.of(text) for text in self._caller.texts]
        operators = self._caller.operators
        n_tests = self._gates.n_calls - self._sources.n_calls
        costs = [own.cost(operator) for own, operator in zip(known, operators, strict=True)]
        chances = [own.selectivity for own in known]
        self._schedule = make_schedule(
            self._gates, costs + n_tests * [TEST_COST], chances + n_tests * [0.5]
        )
        self._refresh_at = min(2 * max(self._n_made, 128), self._n_made + REFRESH)

    @property
    def _most_tasks(self) -> int:
        run_bytes = 40 * (self._gates.n_nodes + self._gates.n_subscriptions)
        return max(8, min(MOST_TASKS, MOST_RUN_BYTES // max(1, run_bytes)))

    @contextmanager
    def _borrow(self) -> Iterator[EventRun]:
        with self._borrow_many(1) as runs:
            yield runs[0]

    @contextmanager
    def _borrow_many(self, n: int) -> Iterator[list[EventRun]]:
        if self._n_made >= self._refresh_at:
            self._refresh()
        schedule = self._schedule
        runs = [self._take_run(schedule) for _ in range(n)]
        try:
            yield runs
        finally:
            for run in runs:
                self._runs.put((schedule, run))

    def _take_run(self, schedule: Schedule) -> EventRun:
        while True:
            try:
                made_for, run = self._runs.get_nowait()
            except Empty:
                return schedule.new_run()
            if made_for is schedule:
                return run


class _Step:
    """A task, and the call for which it waits, or its verdict."""

    __slots__ = ("_task", "call", "verdict", "views")

    def __init__(self, task: Task, event: Mapping[str, Any]) -> None:
        self._task = task
        self.views = Views(event)
        self.call = -1
        self.verdict: Verdict | None = None
        self._advance(lambda: next(task))

    def send(self, answer: Answer | Failure) -> None:
        """Pass the answer to the task that waits for it."""
        self._advance(lambda: self._task.send(answer))

    def _advance(self, step: Callable[[], int]) -> None:
        try:
            self.call = step()
        except StopIteration as end:
            self.verdict = end.value
