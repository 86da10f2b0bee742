"""The operators of an index: calls, statistics, and faults."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.errors import InputError, MissingOperatorError
from tamis.kernels.cold import SCHEDULING, announce
from tamis.language.check import check
from tamis.language.limits import NO_LIMITS
from tamis.language.parser import parse
from tamis.logic.bindings import calls_of
from tamis.logic.evaluate import Known
from tamis.match.batch import Pairs
from tamis.operators.caller import Caller, Failure, OperatorLimits, print_call
from tamis.operators.registry import REGISTRY, Registry
from tamis.operators.search import BudgetError, Facts
from tamis.operators.statistics import Statistics
from tamis.operators.views import Views

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tamis.events.rows import EventRows
    from tamis.index.contents import Contents
    from tamis.language.ast import OperatorCall
    from tamis.logic.bindings import Answer
    from tamis.operators.faults import Fault
    from tamis.operators.phase import OperatorPhase
    from tamis.operators.sources import Sources
    from tamis.operators.verdict import Verdict

_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


class Operators:
    """The operators of an `Index`. Its settings may be changed between events."""

    def __init__(self, contents: Contents, registry: Registry | None) -> None:
        self._contents = contents
        self._registry = registry
        self._limits = OperatorLimits()
        self._statistics = Statistics(contents.statistics.get("operators"))
        self._caller: Caller | None = None
        self._phase: OperatorPhase | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._contents.plan)

    @property
    def calls(self) -> list[str]:
        """All distinct calls of the index, as expressions spell them."""
        return [print_call(call) for call in self._contents.plan.calls]

    @property
    def limits(self) -> OperatorLimits:
        """Limits for operators; beyond them their predicates are undefined."""
        return self._limits

    @limits.setter
    def limits(self, limits: OperatorLimits) -> None:
        if not isinstance(limits, OperatorLimits):
            raise InputError(f"limits is {limits!r}; allowed: an OperatorLimits")
        with self._lock:
            self._limits, self._caller, self._phase = limits, None, None

    @property
    def faults(self) -> list[Fault]:
        """Calls that failed: how often, why, and which subscriptions they left undecided."""
        return [] if self._caller is None else self._caller.report.faults

    @property
    def abandoned(self) -> dict[str, int]:
        """Calls that timed out and still run in this process, by operator."""
        return {} if self._caller is None else self._caller.abandoned

    @property
    def blocked(self) -> list[str]:
        """The calls and the operators that failed too often, and are not called for a while."""
        return [] if self._caller is None else self._caller.blocked

    def take_faults(self) -> list[Fault]:
        """Return the faults so far and clear them."""
        return [] if self._caller is None else self._caller.report.take()

    @property
    def statistics(self) -> dict[str, dict[str, float]]:
        """Decayed counts of each call: how often it was made, how often it held, its seconds."""
        return self._statistics.to_json()

    def take_news(self) -> dict[str, dict[str, float]]:
        """The statistics since the last call of this method, to be passed to others."""
        return self._statistics.take_news()

    def learn(self, statistics: Mapping[str, Mapping[str, float]]) -> None:
        """Add the statistics of another index or another process."""
        for call, own in statistics.items():
            if not {"calls", "true", "seconds"} <= own.keys():
                raise InputError(f"{call} has {own!r}; statistics are calls, true and seconds")
        known = set(self.calls)
        self._statistics.merge({call: own for call, own in statistics.items() if call in known})
        with self._lock:
            self._phase = None

    # ── deciding ───────────────────────────────────────────────────────────────────────────

    @cached_property
    def is_decided_here(self) -> np.ndarray:
        """For each subscription, by ordinal, whether operators affect it."""
        found = np.zeros(len(self._contents.ids), dtype=np.bool_)
        found[self._contents.plan.arrays.subscriptions] = True
        return found

    @cached_property
    def attribute_names(self) -> frozenset[str] | None:
        """The first names of the attributes that operators and residuals read; None for all."""
        signatures = self._contents.schema.operators
        if any(own.reads is None for own in signatures):
            return None
        paths = [read.path for own in signatures for read in own.reads or ()]
        return frozenset(path[0] for path in (*paths, *self._contents.plan.paths))

    def expect_all(self) -> None:
        """Raise `MissingOperatorError` unless all operators that are called are registered."""
        self._get_caller()

    def decide(
        self, events: Iterable[tuple[Mapping[str, Any], list[int]]], *, with_bindings: bool
    ) -> Iterator[Verdict]:
        """The candidates that each event satisfies."""
        return self._get_phase().decide(events, with_bindings=with_bindings)

    def verify(self, pairs: Pairs, rows: EventRows, *, with_bindings: bool = False) -> Pairs:
        """The candidates of a block that match."""
        is_open = self.is_decided_here[pairs.subscriptions]
        owners = np.repeat(np.arange(len(pairs.starts) - 1), np.diff(pairs.starts))
        places = np.flatnonzero(is_open)
        keep = ~is_open
        bindings: list[dict[str, Any] | None] = [None] * len(keep)
        # Runs of one event's candidates: they are in the order of events.
        firsts = np.flatnonzero(np.diff(owners[places], prepend=-1))
        groups = np.split(places, firsts[1:]) if len(places) else []
        asked = (
            (rows[pairs.first_row + int(owners[own[0]])] or {}, pairs.subscriptions[own].tolist())
            for own in groups
        )
        decided = self.decide(asked, with_bindings=with_bindings) if groups else iter(())
        for own, verdict in zip(groups, decided, strict=True):
            for place, ordinal in zip(own.tolist(), pairs.subscriptions[own].tolist(), strict=True):
                keep[place] = ordinal in verdict.ordinals
                bindings[place] = verdict.bindings.get(ordinal)
        starts = np.zeros(len(pairs.starts), dtype=np.int64)
        np.cumsum(np.bincount(owners[keep], minlength=len(starts) - 1), out=starts[1:])
        kept = [one for one, is_kept in zip(bindings, keep.tolist(), strict=True) if is_kept]
        return Pairs(
            pairs.first_row,
            starts,
            pairs.subscriptions[keep],
            kept if with_bindings else None,
        )

    def know(self, ordinal: int, text: str, event: Mapping[str, Any]) -> Known:
        """All answers to one subscription's calls, and its substitution if it has one."""
        condition = check(parse(text, NO_LIMITS), self._contents.schema, NO_LIMITS, text)
        numbers = {call: number for number, call in enumerate(self._contents.plan.calls)}
        facts = Facts(event, self._contents.missing, self._limits.search_steps)
        answers: dict[OperatorCall, Answer] = {}
        failures: dict[OperatorCall, str] = {}
        views = Views(event)
        for call in calls_of(condition):
            # A call that the canonical form does not contain is in no plan, and affects nothing.
            answer = self._get_caller().call(numbers[call], views) if call in numbers else None
            if isinstance(answer, Failure):
                failures[call] = answer.message
                answer = None
            answers[call] = answer
            if call in numbers:
                facts.answers[numbers[call]] = answer
        search = self._sources.whole(ordinal) if self.is_decided_here[ordinal] else None
        values: dict[str, Any] = {}
        with suppress(BudgetError):
            values = (search.certain(facts) if search is not None else None) or {}
        return Known(answers, values, failures)

    def _get_caller(self) -> Caller:
        caller = self._caller
        if caller is None:
            contents = self._contents
            if self._registry is None:
                raise MissingOperatorError(
                    "the index was opened for inspection only, and needs operators to match: "
                    + ", ".join(map(str, contents.schema.operators)),
                    hint="open it with the operators: tamis.open(path)",
                )
            operators = self._registry.resolve(contents.schema.operators)
            caller = Caller(contents.plan.calls, operators, self._statistics, self._limits)
            with self._lock:
                self._caller = self._caller or caller
                caller = self._caller
        return caller

    @cached_property
    def _sources(self) -> Sources:
        from tamis.operators.sources import Sources  # including the kernels of the schedule

        contents = self._contents
        return Sources(
            contents.plan,
            contents.schema,
            contents.missing,
            lambda ordinal: str(contents.texts[ordinal].as_py()),
            lambda ordinal: str(contents.ids[ordinal].as_py()),
        )

    def _get_phase(self) -> OperatorPhase:
        phase = self._phase
        if phase is None:
            from tamis.operators.phase import OperatorPhase

            caller = self._get_caller()
            announce(packages=SCHEDULING)
            phase = OperatorPhase(self._sources, caller)
            with self._lock:
                self._phase = self._phase or phase
                phase = self._phase
        return phase


def spell_bindings(pairs: Pairs) -> pa.StringArray:
    """Substitutions as JSON objects; NULL if nothing is bound."""
    bindings = pairs.bindings if pairs.bindings is not None else [None] * len(pairs.subscriptions)
    return pa.array([_spell(one) if one else None for one in bindings], pa.string())


def _spell(bindings: Mapping[str, Any]) -> str:
    # JSON has no NaN and no infinity: written by name, as Spark's to_json does.
    plain = {
        name: _NAMES.get(str(value), value) if isinstance(value, float) else value
        for name, value in bindings.items()
    }
    return json.dumps(plain, default=str, ensure_ascii=False)


def read_registry(operators: Any) -> Registry | None:
    """The registry for a caller's argument: a given one, the default one with more modules
    imported, or none.
    """
    if operators is None or isinstance(operators, Registry):
        return operators
    if isinstance(operators, str | list | tuple):
        return REGISTRY.load(operators)
    raise InputError(
        f"operators is {operators!r}; allowed: names of modules, such as ['geo', 'ml:classify'], "
        "a Registry, or None for inspection only"
    )
