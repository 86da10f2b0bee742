"""Calls made: answers read, faults caught, costs measured, equal questions asked once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import InputError
from tamis.language.ast import Literal
from tamis.language.printer import print_expression
from tamis.language.types import WrongTypeError
from tamis.operators.answers import TooManyBindingsError, read_answer
from tamis.operators.batches import call_batch
from tamis.operators.faults import Breaker, FaultKind, FaultReport
from tamis.operators.workers import Abandoned, CallTimeoutError, run_within

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from tamis.language.ast import OperatorCall
    from tamis.logic.bindings import Answer
    from tamis.operators.registry import Operator
    from tamis.operators.statistics import Statistics

MOST_CACHED: Final = 100_000  # answers kept during one batch
ABSENT: Final = object()  # no answer is kept; None is one


@dataclass(frozen=True, slots=True)
class OperatorLimits:
    """What operators may take before their predicates are undefined."""

    calls_per_event: int = 100_000
    bindings_per_call: int = 10_000
    search_steps: int = 100_000  # per event, in search of substitutions
    faults_in_a_row: int = 5  # then an operator is not called for a while
    pause: float = 30.0  # seconds
    abandoned_calls: int = 16  # of one operator, given up and still running: no more are made

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            is_number = isinstance(value, int if name != "pause" else int | float)
            if not is_number or isinstance(value, bool) or not value >= (name != "pause"):
                allowed = "seconds" if name == "pause" else "a whole number from 1 on"
                raise InputError(f"operator limit {name} is {value!r}; allowed: {allowed}")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call has no answer."""

    kind: FaultKind
    message: str


class Caller:
    """The calls of one index: by whom they are answered. Threads share it."""

    def __init__(
        self,
        calls: Sequence[OperatorCall],
        operators: Mapping[str, Operator],
        statistics: Statistics,
        limits: OperatorLimits,
    ) -> None:
        self.texts = [print_expression(call) for call in calls]
        self.operators = [operators[call.name] for call in calls]
        self.statistics = statistics
        self.limits = limits
        self.report = FaultReport()
        self._constants = [
            tuple(x.value for x in call.arguments if isinstance(x, Literal)) for call in calls
        ]
        self._abandoned = {name: Abandoned() for name in operators}
        self._breakers = {name: Breaker(limits.faults_in_a_row, limits.pause) for name in operators}

    @property
    def abandoned(self) -> dict[str, int]:
        """Calls that were given up and still run, by operator."""
        counts = {name: own.n_running for name, own in self._abandoned.items()}
        return {name: n_running for name, n_running in counts.items() if n_running}

    def call(self, number: int, event: Mapping[str, Any]) -> Answer | Failure:
        """The answer for one event."""
        operator, constants = self.operators[number], self._constants[number]
        if operator.is_batch:
            return self.call_batch(number, [event])[0]
        most = self.limits.bindings_per_call
        return self._watched(
            number, lambda: [_exhaust(operator.function(event, *constants), most)], 1
        )[0]

    def call_batch(
        self, number: int, events: Sequence[Mapping[str, Any]]
    ) -> list[Answer | Failure]:
        """The answers of a batch operator for several events, by one call."""
        operator, constants = self.operators[number], self._constants[number]
        return self._watched(number, lambda: call_batch(operator, events, constants), len(events))

    def _watched(
        self, number: int, function: Callable[[], Sequence[Any]], n_events: int
    ) -> list[Answer | Failure]:
        operator = self.operators[number]
        breaker = self._breakers[operator.name]
        if breaker.is_open:
            failure = Failure(FaultKind.BREAKER, f"{operator.name} failed too often: not called")
            return [failure] * n_events
        abandoned = self._abandoned[operator.name]
        if (n_running := abandoned.n_running) >= self.limits.abandoned_calls:
            told = f"{n_running} calls of {operator.name} were given up and still run: not called"
            return [Failure(FaultKind.BREAKER, told)] * n_events
        started = time.perf_counter()
        returned: Sequence[Any]
        try:
            returned = run_within(function, operator.timeout, abandoned)
        except CallTimeoutError:
            shared = Failure(FaultKind.TIMEOUT, f"no answer within {operator.timeout} seconds")
        except WrongTypeError as error:
            shared = Failure(FaultKind.WRONG_TYPE, str(error))
        except TooManyBindingsError as error:
            shared = Failure(FaultKind.BUDGET, str(error))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever an operator may raise, asyncio's included
            shared = Failure(FaultKind.RAISED, f"{type(error).__name__}: {error}")
        else:
            seconds = (time.perf_counter() - started) / max(1, n_events)
            answers = [self._read(number, one, seconds) for one in returned]
            breaker.tell(is_fault=any(isinstance(one, Failure) for one in answers))
            return answers
        breaker.tell(is_fault=True)
        return [shared] * n_events

    def _read(self, number: int, returned: Any, seconds: float) -> Answer | Failure:
        try:
            signature = self.operators[number].signature
            answer = read_answer(returned, signature, self.limits.bindings_per_call)
        except WrongTypeError as error:
            return Failure(FaultKind.WRONG_TYPE, str(error))
        except TooManyBindingsError as error:
            return Failure(FaultKind.BUDGET, str(error))
        except Exception as error:  # an iterator may raise when it is read
            return Failure(FaultKind.RAISED, f"{type(error).__name__}: {error}")
        self.statistics.add(self.texts[number], is_true=bool(answer), seconds=seconds)
        return answer


class Cache:
    """Answers of pure operators during one batch, by call and the attributes they read."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._answers: dict[tuple[int, Hashable], Answer] = {}

    def key(self, number: int, event: Mapping[str, Any]) -> tuple[int, Hashable] | None:
        """What the answer depends on; None where that is not known."""
        operator = self._caller.operators[number]
        reads = operator.signature.reads
        if not operator.is_pure or reads is None:
            return None
        values = tuple(_look_up(event, path) for path in reads)
        # 1, 1.0 and True are equal, and may not be the same to an operator.
        key = number, (values, tuple(map(type, values)))
        try:
            hash(key)
        except TypeError:
            return None
        return key

    def get(self, key: tuple[int, Hashable] | None) -> Any:
        """The answer, or ABSENT."""
        return ABSENT if key is None else self._answers.get(key, ABSENT)

    def put(self, key: tuple[int, Hashable] | None, answer: Answer) -> None:
        """Keep an answer."""
        if key is not None:
            if len(self._answers) >= MOST_CACHED:
                self._answers.clear()
            self._answers[key] = answer


def _exhaust(returned: Any, most: int) -> Any:
    """What an iterator gives, read while it is watched; one without an end is too many."""
    if not isinstance(returned, Iterator):
        return returned
    rows = list(islice(returned, most + 1))
    if len(rows) > most:
        raise TooManyBindingsError(f"more than {most} bindings")
    return rows


def _look_up(event: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = event
    for name in path:
        value = value.get(name) if hasattr(value, "get") else None
    return value
