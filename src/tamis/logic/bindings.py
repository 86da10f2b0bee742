"""Answers of operators, and the substitutions that they allow (Liu §2.1).

An operator answers a call for an event with all *feasible bindings*: tuples of values for the
variables that it binds. An operator that binds nothing answers with the empty tuple (true) or with
no tuple (false). None means that the call is undefined.

A substitution gives each variable a value, or leaves it unbound. Under it, a call is true if its
values are among the feasible bindings, else false; a constraint on an unbound variable is
undefined. Substitutions are ordered by the variables in the order of the text; unbound comes before
all values, and values are ascending. So the first substitution that makes a condition true binds no
variable unnecessarily.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Context, Decimal
from functools import cmp_to_key
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tamis.language.ast import (
    Condition,
    Literal,
    OperatorCall,
    Value,
    Variable,
    leaves,
    variables,
)
from tamis.language.types import MAX_DECIMAL_DIGITS
from tamis.language.variables import variable_order
from tamis.logic.arithmetic import compare_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tamis.language.types import Type
    from tamis.logic.truth import Truth

Answer: TypeAlias = tuple[tuple[Any, ...], ...] | None
TRUE_ANSWER: Final[Answer] = ((),)
FALSE_ANSWER: Final[Answer] = ()
if TYPE_CHECKING:
    Answers = Mapping[OperatorCall, Answer]
    Substitution = Mapping[str, Any]  # None for an unbound variable

_ascending = cmp_to_key(compare_terms)


def call_of(node: OperatorCall) -> OperatorCall:
    """The predicate of a call: equal for all calls that differ only in their variables.

    `p(?x1, ?y1)` and `p(?x3, ?y4)` are one predicate; `p(?x7, ?x7)` and `p(?x8, 5)` are others. The
    feasible bindings that one call returns decide all calls of its predicate.
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
    """Whether the values of the variables are among the feasible bindings."""
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
    """All substitutions that can matter, in order; exactly one if there are no variables."""
    names = variable_order(condition)
    found = candidates(condition, answers)
    for values in product(*((None, *found[name]) for name in names)):
        yield dict(zip(names, values, strict=True))


def candidates(condition: Condition, answers: Answers) -> dict[str, tuple[Any, ...]]:
    """For each variable, the values that some feasible binding gives it, ascending."""
    types = {variable.name: variable.type for variable in variables(condition)}
    found: dict[str, list[Any]] = {name: [] for name in types}
    for leaf in leaves(condition):
        if not isinstance(leaf, OperatorCall):
            continue
        for number, place in enumerate(leaf.bound):
            argument = leaf.arguments[place]
            if isinstance(argument, Variable):
                feasible = answers.get(call_of(leaf)) or ()
                found[argument.name].extend(binding[number] for binding in feasible)
    return {name: ascending(values, types[name]) for name, values in found.items()}


def ascending(values: Iterable[Any], type_: Type | None) -> tuple[Any, ...]:
    """The distinct values of a variable of that type, in order."""
    distinct = dict.fromkeys(as_number(value, type_) for value in values)
    return tuple(sorted(distinct, key=_ascending))


def as_number(value: Any, type_: Type | None) -> Any:
    """The number converted to the type if it is exactly representable; other values unchanged.

    A variable may be bound by operators of several numeric types. Its value must not depend on
    which of them returned it.
    """
    if type_ is None or not type_.is_numeric:
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return value
    for convert in _PREFERENCES[type_.name]:
        number = convert(value, type_)
        if number is not None:
            return number
    return value


def _to_integer(value: Any, type_: Type) -> int | None:
    return int(value) if value == int(value) else None


def _to_double(value: Any, type_: Type) -> float | None:
    number = float(value)
    return number if number == value else None


def _to_decimal(value: Any, type_: Type) -> Decimal | None:
    exact = Decimal(value)
    if len(exact.as_tuple().digits) > MAX_DECIMAL_DIGITS:
        return None  # a double that equals no decimal
    scaled = exact.quantize(Decimal(1).scaleb(-type_.scale), context=_WIDE)
    return scaled if scaled == exact else exact.normalize(_WIDE)


_WIDE: Final = Context(prec=4 * MAX_DECIMAL_DIGITS)
_PREFERENCES: Final = {
    "integer": (_to_integer, _to_double, _to_decimal),
    "float": (_to_double, _to_integer, _to_decimal),
    "double": (_to_double, _to_integer, _to_decimal),
    "decimal": (_to_decimal, _to_double),
    "number": (_to_integer, _to_double, _to_decimal),
}
