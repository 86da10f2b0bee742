"""Answers of operators, and the substitutions that they allow (Liu §2.1).

An operator answers a call for an event by all *feasible bindings*: tuples of values for the places
that it binds. One that binds nothing answers by the empty tuple (true) or by no tuple at all
(false). No answer, None, is undefined.

A substitution gives each variable a value, or leaves it unbound. Under it, a call is true if its
values are among the feasible bindings, else false; a constraint on an unbound variable is
undefined. Substitutions have an order: by the variables as they come in the text, unbound before
all values, values ascending. So the first that makes a condition true binds nothing it need not.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cmp_to_key
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tamis.language.ast import Condition, Literal, OperatorCall, Value, Variable, leaves
from tamis.language.variables import variable_order
from tamis.logic.arithmetic import compare_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tamis.logic.truth import Truth

Answer: TypeAlias = tuple[tuple[Any, ...], ...] | None
TRUE_ANSWER: Final[Answer] = ((),)
FALSE_ANSWER: Final[Answer] = ()
if TYPE_CHECKING:
    Answers = Mapping[OperatorCall, Answer]
    Substitution = Mapping[str, Any]  # None for a variable that is not bound

_ascending = cmp_to_key(compare_terms)
_EXACTNESS: Final = {int: 0, Decimal: 1, float: 2}


def call_of(node: OperatorCall) -> OperatorCall:
    """What is asked of the operator: the same for all calls that differ in bound places only.

    `p(?x1, ?y1)` and `p(?x3, ?y4)` are one predicate, `p(?x7, ?x7)` and `p(?x8, 5)` are others; the
    feasible bindings that one call finds decide them all.
    """
    if not node.bound:
        return replace(node, span=(0, 0))
    arguments: list[Value] = list(node.arguments)
    for number, place in enumerate(node.bound, 1):
        arguments[place] = Variable(f"v{number}")
    return OperatorCall(node.name, tuple(arguments), node.bound)


def calls_of(condition: Condition) -> tuple[OperatorCall, ...]:
    """The distinct calls that the condition depends on, in the order of the text."""
    nodes = (leaf for leaf in leaves(condition) if isinstance(leaf, OperatorCall))
    return tuple(dict.fromkeys(map(call_of, nodes)))


def test_call(node: OperatorCall, answer: Answer, values: Substitution) -> Truth:
    """Whether the values of the bound places are among the feasible bindings."""
    if answer is None:
        return None
    asked = tuple(_place_value(node.arguments[place], values) for place in node.bound)
    return None not in asked and asked in answer


def _place_value(argument: Value, values: Substitution) -> Any:
    if isinstance(argument, Literal):
        return argument.value
    assert isinstance(argument, Variable)
    return values.get(argument.name)


def substitutions(condition: Condition, answers: Answers) -> Iterator[Substitution]:
    """All substitutions that can matter, in their order; without variables there is one."""
    names = variable_order(condition)
    found = candidates(condition, answers)
    for values in product(*((None, *found[name]) for name in names)):
        yield dict(zip(names, values, strict=True))


def candidates(condition: Condition, answers: Answers) -> dict[str, tuple[Any, ...]]:
    """For each variable the values that some feasible binding has in its place, ascending."""
    found: dict[str, list[Any]] = {name: [] for name in variable_order(condition)}
    for leaf in leaves(condition):
        if not isinstance(leaf, OperatorCall):
            continue
        for number, place in enumerate(leaf.bound):
            argument = leaf.arguments[place]
            if isinstance(argument, Variable):
                feasible = answers.get(call_of(leaf)) or ()
                found[argument.name].extend(binding[number] for binding in feasible)
    return {name: ascending(values) for name, values in found.items()}


def ascending(values: Iterable[Any]) -> tuple[Any, ...]:
    """Values of one type, or numbers, each once, in their order.

    Of equal numbers of several types there is the whole one, or else the exact one.
    """
    found: dict[Any, Any] = {}
    for value in values:
        known = found.setdefault(value, value)
        if known is not value and type(value) in _EXACTNESS and _rank(value) < _rank(known):
            found[value] = value
    return tuple(sorted(found.values(), key=_ascending))


def _rank(number: Any) -> tuple[int, str]:
    return _EXACTNESS[type(number)], str(number) if isinstance(number, Decimal) else ""
