"""Variables: their types, and the operator calls that bind them.

The scope of a variable is the whole subscription. A constraint or a negated call may only use
variables that are bound in the same AND (as in Datalog), so that matching examines finitely many
values:

- a call that is not under NOT binds its variables;
- AND binds the variables that any operand binds, OR those that all bind, at_least(k of n) those
  that all but k - 1 of them bind; NOT turns AND into OR, and XOR binds nothing;
- a use is bound by itself, or by an AND around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.errors import TypeCheckError
from tamis.language.ast import (
    And,
    AtLeast,
    Condition,
    Not,
    OperatorCall,
    Or,
    Variable,
    Xnor,
    Xor,
    leaves,
    variables,
    variables_of,
)

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis.language.types import Type

Names = frozenset[str]
_NONE: Names = frozenset()


def collect_types(condition: Condition, schema: Schema) -> dict[str, Type]:
    """The type of each variable, determined by its first use in a call."""
    types: dict[str, Type] = {}
    for leaf in leaves(condition):
        signature = schema.operator(leaf.name) if isinstance(leaf, OperatorCall) else None
        if signature is None:
            continue
        assert isinstance(leaf, OperatorCall)
        for argument, parameter in zip(leaf.arguments, signature.parameters, strict=False):
            if isinstance(argument, Variable) and parameter.is_bound:
                _check_type(
                    argument, types.setdefault(argument.name, parameter.type), parameter.type
                )
    return types


def _check_type(variable: Variable, known: Type, own: Type) -> None:
    if known == own or (known.is_numeric and own.is_numeric):
        return
    raise TypeCheckError(
        "type-mismatch",
        f"?{variable.name} has type {known} earlier and type {own} here",
        span=variable.span,
        hint="a variable has one type; rename one of the two",
    )


def check_bound(condition: Condition) -> None:
    """Raise an error for a variable that is used where no operator call binds it."""
    _check(condition, condition, is_negated=False, known=_NONE)


def bound_variables(node: Condition, *, is_negated: bool = False) -> Names:
    """The variables that have a value whenever the condition (or its negation) is true."""
    match node:
        case Not():
            return bound_variables(node.operand, is_negated=not is_negated)
        case And() | Or() | AtLeast():
            below = [bound_variables(x, is_negated=is_negated) for x in node.operands]
            return _bound_by_some(below, _needed(node, is_negated=is_negated))
        case OperatorCall() if not is_negated:
            return frozenset(variable.name for variable in variables_of(node))
        case _:
            return _NONE


def _needed(node: And | Or | AtLeast, *, is_negated: bool) -> int:
    """How many operands are true (false) whenever the node is."""
    n = len(node.operands)
    k = node.k if isinstance(node, AtLeast) else n if isinstance(node, And) else 1
    return n - k + 1 if is_negated else k


def _bound_by_some(below: list[Names], k: int) -> Names:
    """The variables that every choice of k operands binds."""
    counted = {name: sum(name in names for names in below) for name in _NONE.union(*below)}
    return frozenset(name for name, n in counted.items() if len(below) - n < k)


def _check(root: Condition, node: Condition, *, is_negated: bool, known: Names) -> None:
    match node:
        case Not():
            _check(root, node.operand, is_negated=not is_negated, known=known)
        case And() | Or() | AtLeast():
            if _needed(node, is_negated=is_negated) == len(node.operands):
                known |= bound_variables(node, is_negated=is_negated)
            for operand in node.operands:
                _check(root, operand, is_negated=is_negated, known=known)
        case Xor() | Xnor():
            # Operands of XOR count both when true and when false: it binds nothing.
            for variable in variables(node):
                _expect_bound(root, variable, known)
        case OperatorCall() if not is_negated:
            pass
        case _:
            for variable in variables_of(node):
                _expect_bound(root, variable, known)


def _expect_bound(root: Condition, variable: Variable, known: Names) -> None:
    if variable.name in known:
        return
    name = f"?{variable.name}"
    in_calls = {
        found.name
        for leaf in leaves(root)
        if isinstance(leaf, OperatorCall)
        for found in variables_of(leaf)
    }
    if variable.name not in in_calls:
        message, hint = f"no operator binds {name}", f"add a call that binds it: p({name}) AND …"
    elif variable.name in _bound_somewhere(root):
        message = f"{name} has no value here: it is bound only in another part of the expression"
        hint = (
            f"use it together with the call that binds it: p({name}) AND …; separately in "
            "each operand of an OR"
        )
    else:
        message = f"{name} occurs only under NOT or XOR, where it is not bound"
        hint = f"add a call that binds it: p({name}) AND NOT q({name})"
    raise TypeCheckError("unbound-variable", message, span=variable.span, hint=hint)


def _bound_somewhere(node: Condition, *, is_negated: bool = False) -> Names:
    match node:
        case Not():
            return _bound_somewhere(node.operand, is_negated=not is_negated)
        case And() | Or() | AtLeast():
            return _NONE.union(*(_bound_somewhere(x, is_negated=is_negated) for x in node.operands))
        case _:
            return bound_variables(node, is_negated=is_negated)


def variable_order(condition: Condition) -> tuple[str, ...]:
    """The names of all variables, in the order of the text."""
    return tuple(dict.fromkeys(variable.name for variable in variables(condition)))
