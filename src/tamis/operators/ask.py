"""All calls of one condition, asked at once: for the reference evaluator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.logic.bindings import calls_of
from tamis.operators.caller import Caller, Failure, OperatorLimits
from tamis.operators.registry import REGISTRY, Registry
from tamis.operators.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.ast import Condition, OperatorCall
    from tamis.logic.bindings import Answer


def answer_calls(
    condition: Condition, event: Mapping[str, Any], registry: Registry = REGISTRY
) -> dict[OperatorCall, Answer]:
    """The answers to all calls of a typed condition; a call that fails is undefined."""
    calls = calls_of(condition)
    if not calls:
        return {}
    operators = registry.find(call.name for call in calls)
    caller = Caller(calls, operators, Statistics(), OperatorLimits())
    made = (caller.call(number, event) for number in range(len(calls)))
    return {
        call: None if isinstance(answer, Failure) else answer
        for call, answer in zip(calls, made, strict=True)
    }
