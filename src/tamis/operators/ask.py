"""Makes all calls of one condition at once, for the reference evaluator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.logic.bindings import calls_of
from tamis.operators.caller import Caller, Failure, OperatorLimits
from tamis.operators.registry import REGISTRY, Registry
from tamis.operators.statistics import Statistics
from tamis.operators.views import Views

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.ast import Condition, OperatorCall
    from tamis.logic.bindings import Answer


class OperatorAnswers(NamedTuple):
    """The answers of the operators for one event."""

    answers: dict[OperatorCall, Answer]
    failures: dict[OperatorCall, str]  # why a call has no answer


def ask(
    condition: Condition, event: Mapping[str, Any], registry: Registry = REGISTRY
) -> OperatorAnswers:
    """Make all calls of a typed condition; a failed call is undefined."""
    calls = calls_of(condition)
    if not calls:
        return OperatorAnswers({}, {})
    operators = registry.find(call.name for call in calls)
    caller = Caller(calls, operators, Statistics(), OperatorLimits())
    asked, views = OperatorAnswers({}, {}), Views(event)
    for number, call in enumerate(calls):
        answer = caller.call(number, views)
        if isinstance(answer, Failure):
            asked.failures[call] = answer.message
            answer = None
        asked.answers[call] = answer
    return asked
