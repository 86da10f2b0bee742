"""Makes calls: reads answers, catches faults, measures costs, and makes equal calls once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import InputError
from tamis.language.ast import Literal, Variable
from tamis.language.printer import print_value
from tamis.language.types import WrongTypeError
from tamis.operators.answers import TooManyBindingsError, read_answer
from tamis.operators.batches import call_batch, tables_of
from tamis.operators.faults import Breaker, FaultKind, FaultReport, describe_error
from tamis.operators.views import MissingAttributeError
from tamis.operators.workers import Abandoned, CallTimeoutError, run_within

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import pyarrow as pa

    from tamis.language.ast import OperatorCall
    from tamis.logic.bindings import Answer
    from tamis.operators.registry import Operator
    from tamis.operators.statistics import Statistics
    from tamis.operators.views import Views

MOST_CACHED: Final = 100_000  # answers cached during one batch
MOST_RETRIES: Final = 32  # calls for the parts of a failed batch
_AS_THEY_ARE: Final = (str, bytes, dict, list, tuple, set, frozenset)
ABSENT: Final = object()  # marks an answer that is not cached, since None is an answer


@dataclass(frozen=True, slots=True)
class OperatorLimits:
    """Limits for operators; beyond them their predicates are undefined."""

    calls_per_event: int = 100_000
    bindings_per_call: int = 10_000
    search_steps: int = 100_000  # in the search for one subscription's substitution
    faults_in_a_row: int = 5  # then the operator is not called for a while
    pause: float = 30.0  # seconds
    abandoned_calls: int = 16  # running, of one operator: then no more calls are made

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            is_number = isinstance(value, int if name != "pause" else int | float)
            if not is_number or isinstance(value, bool) or not value >= (name != "pause"):
                allowed = "seconds" if name == "pause" else "a whole number, at least 1"
                raise InputError(f"operator limit {name} is {value!r}; allowed: {allowed}")


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a call has no answer."""

    kind: FaultKind
    message: str
    is_of_event: bool = False  # the event lacks an attribute: other events may have an answer


class Caller:
    """Makes the calls of one index. Threads share it."""

    def __init__(
        self,
        calls: Sequence[OperatorCall],
        operators: Mapping[str, Operator],
        statistics: Statistics,
        limits: OperatorLimits,
    ) -> None:
        self.texts = [print_call(call) for call in calls]
        self.operators = [operators[call.name] for call in calls]
        self.statistics = statistics
        self.limits = limits
        self.report = FaultReport()
        self._constants = [
            tuple(x.value for x in call.arguments if isinstance(x, Literal)) for call in calls
        ]
        self._abandoned = {name: Abandoned() for name in operators}
        self._breakers: dict[int | str, Breaker] = {}  # of calls, and of operators once called

    @property
    def abandoned(self) -> dict[str, int]:
        """Number of abandoned calls that still run, by operator."""
        counts = {name: own.n_running for name, own in self._abandoned.items()}
        return {name: n_running for name, n_running in counts.items() if n_running}

    @property
    def blocked(self) -> list[str]:
        """The calls and the operators that failed too often, and are not called for a while."""
        breakers = list(self._breakers.items())
        return [
            key if isinstance(key, str) else self.texts[key]
            for key, breaker in breakers
            if breaker.is_open
        ]

    def call(self, number: int, views: Views) -> Answer | Failure:
        """The answer for one event."""
        operator, constants = self.operators[number], self._constants[number]
        if operator.is_batch:
            return self.call_batch(number, [views])[0]
        event, most = views.of(operator), self.limits.bindings_per_call

        def call() -> list[Any]:
            return [_exhaust(operator.function(event, *constants), most)]

        return self._guarded(number, lambda: self._attempt(number, call, 1), 1)[0]

    def call_batch(self, number: int, views: Sequence[Views]) -> list[Answer | Failure]:
        """The answers of a batch operator for several events, by one call unless it fails."""
        operator = self.operators[number]
        answers: dict[int, Answer | Failure] = {}
        for places, table in tables_of(operator, [own.of(operator) for own in views]):
            if isinstance(table, WrongTypeError):
                answers[places[0]] = Failure(FaultKind.WRONG_TYPE, str(table))
                continue
            attempt = partial(self._attempt_parts, number, table)
            own = self._guarded(number, attempt, len(places))
            answers.update(zip(places, own, strict=True))
        return [answers[place] for place in range(len(views))]

    def _guarded(
        self, number: int, attempt: Callable[[], list[Answer | Failure]], n_events: int
    ) -> list[Answer | Failure]:
        """The answers of a call, unless the call or its operator failed too often."""
        operator = self.operators[number]
        own, all_calls = self._breakers_of(number)
        if own.is_open or all_calls.is_open:
            message = f"{self.texts[number] if own.is_open else operator.name} failed too often"
            return [Failure(FaultKind.BREAKER, f"{message}: not called")] * n_events
        if (n_running := self._abandoned[operator.name].n_running) >= self.limits.abandoned_calls:
            message = (
                f"{n_running} calls of {operator.name} timed out and still run; it is not called "
                "until they end"
            )
            return [Failure(FaultKind.BREAKER, message)] * n_events
        answers = attempt()
        if not all(isinstance(one, Failure) and one.is_of_event for one in answers):
            all_calls.count_call(is_fault=_common_fault(answers) is FaultKind.TIMEOUT)
            own.count_call(is_fault=_common_fault(answers) is not None)
        return answers

    def _attempt_parts(self, number: int, table: pa.Table) -> list[Answer | Failure]:
        """The answers for all rows. If the operator raises an error, bisection finds the rows that
        cause it, so that the other rows have answers.
        """
        operator, constants = self.operators[number], self._constants[number]
        n_more = MOST_RETRIES if operator.is_pure else 0

        def attempt(part: pa.Table) -> list[Answer | Failure]:
            nonlocal n_more
            n_rows = part.num_rows
            answers = self._attempt(number, lambda: call_batch(operator, part, constants), n_rows)
            fault = _common_fault(answers)
            if fault is FaultKind.TIMEOUT:
                n_more = 0
            if fault is not FaultKind.RAISED or n_rows == 1 or n_more < 2:
                return answers
            n_more -= 2
            return attempt(part.slice(0, n_rows // 2)) + attempt(part.slice(n_rows // 2))

        return attempt(table)

    def _attempt(
        self, number: int, function: Callable[[], Sequence[Any]], n_events: int
    ) -> list[Answer | Failure]:
        operator = self.operators[number]
        started = time.perf_counter()
        try:
            returned = run_within(function, operator.timeout, self._abandoned[operator.name])
        except CallTimeoutError:
            failure = Failure(FaultKind.TIMEOUT, f"no answer within {operator.timeout} seconds")
        except MissingAttributeError as error:
            message = f"KeyError: {error}"
            failure = Failure(FaultKind.RAISED, message, is_of_event=True)
        except WrongTypeError as error:
            failure = Failure(FaultKind.WRONG_TYPE, str(error))
        except TooManyBindingsError as error:
            failure = Failure(FaultKind.BUDGET, str(error))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # any error that an operator may raise, asyncio's included
            failure = Failure(FaultKind.RAISED, describe_error(error))
        else:
            seconds = (time.perf_counter() - started) / max(1, n_events)
            return [self._read(number, one, seconds) for one in returned]
        return [failure] * n_events

    def _breakers_of(self, number: int) -> tuple[Breaker, Breaker]:
        """The breakers to notify: that of the call for all faults, since a call with other
        constants may succeed, and that of the operator for timeouts.
        """
        limits = self.limits
        for key in (number, self.operators[number].name):
            if key not in self._breakers:
                self._breakers.setdefault(key, Breaker(limits.faults_in_a_row, limits.pause))
        return self._breakers[number], self._breakers[self.operators[number].name]

    def _read(self, number: int, returned: Any, seconds: float) -> Answer | Failure:
        try:
            signature = self.operators[number].signature
            answer = read_answer(returned, signature, self.limits.bindings_per_call)
        except WrongTypeError as error:
            return Failure(FaultKind.WRONG_TYPE, str(error))
        except TooManyBindingsError as error:
            return Failure(FaultKind.BUDGET, str(error))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # inspecting the returned value may raise an error
            return Failure(FaultKind.RAISED, describe_error(error))
        self.statistics.add(self.texts[number], is_true=bool(answer), seconds=seconds)
        return answer


class BatchAnswers:
    """Answers of pure operators during one batch, by call and values of the attributes read."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._answers: dict[tuple[int, Hashable], Answer | Failure] = {}

    def key(self, number: int, views: Views) -> tuple[int, Hashable] | None:
        """The values on which the answer depends; None if they are unknown."""
        own = views.key(self._caller.operators[number])
        return None if own is None else (number, own)

    def get(self, key: tuple[int, Hashable] | None) -> Any:
        """The cached answer, or ABSENT."""
        return ABSENT if key is None else self._answers.get(key, ABSENT)

    def put(self, key: tuple[int, Hashable] | None, answer: Answer | Failure) -> None:
        """Store an answer, or the reason why there is none; a call that was not made is not
        stored.
        """
        is_asked = not isinstance(answer, Failure) or answer.kind is not FaultKind.BREAKER
        if key is not None and is_asked:
            if len(self._answers) >= MOST_CACHED:
                self._answers.clear()
            self._answers[key] = answer


def print_call(call: OperatorCall) -> str:
    """The call as it is reported: without the variable names that a subscription chose."""
    places = ("?" if isinstance(x, Variable) else print_value(x) for x in call.arguments)
    return f"{call.name}({', '.join(places)})"


def _exhaust(returned: Any, most: int) -> Any:
    """The returned bindings, read within the time limit; an endless iterator has too many."""
    if isinstance(returned, _AS_THEY_ARE) or not isinstance(returned, Iterable):
        return returned
    rows = list(islice(returned, most + 1))
    if len(rows) > most:
        raise TooManyBindingsError(f"more than {most} bindings")
    return rows


def _common_fault(answers: Sequence[Answer | Failure]) -> FaultKind | None:
    """The kind of fault, if all events have no answer."""
    kinds = {one.kind if isinstance(one, Failure) else None for one in answers}
    return kinds.pop() if len(kinds) == 1 else None
