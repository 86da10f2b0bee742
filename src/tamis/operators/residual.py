"""The rest of a subscription once its cheap part holds: gates over calls, tests and joins.

A subscription is indexed by its *relaxation*, in which every operator call and constraint is TRUE:
if that is not true, the subscription cannot be either, and no operator is called. Otherwise the
residual, in negation normal form, decides:

- a *call* is true if it has feasible bindings;
- a *test* is a cheap condition that the relaxation does not imply, as in `a = 1 AND p() OR q()`;
- a *gate* is true when enough of its children are;
- a *joined* gate also needs one substitution for all its variables. It is placed as deep as
  possible: variables of one operand of an OR, or of conjuncts that share none with others, are
  local to them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from tamis.language.ast import (
    And,
    Arithmetic,
    AtLeast,
    Comparison,
    Condition,
    Not,
    OperatorCall,
    Or,
    Value,
    Variable,
    Xnor,
    Xor,
    children,
    leaves,
    variables,
    variables_of,
)
from tamis.language.variables import variable_order
from tamis.logic.bindings import call_of
from tamis.logic.canonical import canonicalize
from tamis.logic.evaluate import Missing
from tamis.logic.leaves import TRUE
from tamis.logic.rules.negation import push_negation

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Call:
    """The call has feasible bindings; if negated, it has an answer and no feasible bindings."""

    call: OperatorCall
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Test:
    """A cheap condition is true."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Gate:
    """At least `threshold` children are true, and some substitution satisfies `join`."""

    threshold: int
    children: tuple[Node, ...]
    join: Condition | None = None  # its variables are renamed to v1, v2, …


Node: TypeAlias = Call | Test | Gate


@dataclass(frozen=True, slots=True)
class Residual:
    """A subscription, split in two parts."""

    form: Condition  # canonical, the whole condition
    relaxed: Condition  # canonical, without operators
    root: Node | None  # None: no operator affects the result
    names: tuple[str, ...]  # of variables, in the order of the text


def is_costly(condition: Condition) -> bool:
    """Whether the tree contains an operator call or a constraint on variables."""
    return any(
        isinstance(leaf, OperatorCall) or any(variables_of(leaf)) for leaf in leaves(condition)
    )


def split(condition: Condition, missing: Missing) -> Residual:
    """The typed condition, split in two parts."""
    form = canonicalize(condition, missing)
    if not is_costly(form):
        return Residual(form, form, None, ())
    relaxed = canonicalize(_relax(form), missing)
    operands = form.operands if isinstance(form, And) else (form,)
    left = _joined_by_and([x for x in operands if is_costly(x)])  # the others are implied
    root = _Writer(missing).write(left)
    return Residual(form, relaxed, root, variable_order(condition))


def _relax(node: Condition) -> Condition:
    if not is_costly(node):
        return node
    if isinstance(node, And | Or | AtLeast):
        return replace(node, operands=tuple(map(_relax, node.operands)))
    return TRUE


class _Writer:
    """Converts conditions in negation normal form to gates."""

    def __init__(self, missing: Missing) -> None:
        self._is_signed = missing is Missing.SATISFIES_NEGATION

    def write(self, node: Condition) -> Node:
        """`node`, whose variables are used nowhere else."""
        if not is_costly(node):
            return Test(node)
        match node:
            case Or():
                return _gate(1, [self.write(x) for x in _with_one_test(node)])
            case And():
                return self._write_and(node)
            case AtLeast() if _are_disjoint(node.operands):
                return _gate(node.k, [self.write(x) for x in node.operands])
            case Xor() | Xnor() if not any(variables(node)):
                return self._write_parity(node)
            case OperatorCall() if _is_free(node):
                return Call(call_of(node))
            case Not(operand=OperatorCall() as call) if not call.bound:
                return Call(call_of(call), is_negated=True)
            case _:
                return self._write_joined(node)

    def _write_and(self, node: And) -> Node:
        parts = _components(_with_one_test(node))
        return _gate(
            len(parts),
            [
                self.write(part[0]) if len(part) == 1 else self._write_joined(And(part))
                for part in parts
            ],
        )

    def _write_parity(self, node: Xor | Xnor) -> Node:
        """An odd (even) number of operands is true, and none is undefined: both signs of each
        operand count.
        """
        odd: Node | None = None
        even: Node | None = None
        for operand in node.operands:
            negated = push_negation(operand, is_negated=True, is_signed=self._is_signed)
            is_true, is_false = self.write(operand), self.write(negated)
            if odd is None or even is None:
                odd, even = is_true, is_false
                continue
            odd, even = (
                _gate(1, [_gate(2, [odd, is_false]), _gate(2, [even, is_true])]),
                _gate(1, [_gate(2, [even, is_false]), _gate(2, [odd, is_true])]),
            )
        side = odd if isinstance(node, Xor) else even
        assert side is not None
        return side

    def _write_joined(self, node: Condition) -> Node:
        named = _rename(node)
        above = self._bound_above(node)
        assert above is not None, "a variable is bound by a call that is not under NOT"
        if isinstance(above, Gate):
            return replace(above, join=named)
        return Gate(1, (above,), named)

    def _bound_above(self, node: Condition) -> Node | None:
        """The condition that must be true under every substitution; None if there is none."""
        match node:
            case And() | Or() | AtLeast():
                n = len(node.operands)
                k = node.k if isinstance(node, AtLeast) else n if isinstance(node, And) else 1
                below = [self._bound_above(operand) for operand in node.operands]
                needed = [operand for operand in below if operand is not None]
                k -= n - len(needed)
                return _gate(k, needed) if k > 0 else None
            case OperatorCall():
                return Call(call_of(node))
            case Not(operand=OperatorCall() as call):
                return _has_answer(call)
            case _:
                return None if is_costly(node) else Test(node)


def _has_answer(call: OperatorCall) -> Node:
    own = call_of(call)
    return Gate(1, (Call(own), Call(own, is_negated=True)))


def _gate(threshold: int, below: list[Node]) -> Node:
    return below[0] if len(below) == 1 else Gate(threshold, tuple(below))


def _joined_by_and(operands: list[Condition]) -> Condition:
    return operands[0] if len(operands) == 1 else And(tuple(operands))


def _with_one_test(node: And | Or) -> list[Condition]:
    """The operands, with all cheap ones combined into one."""
    cheap = [x for x in node.operands if not is_costly(x)]
    costly = [x for x in node.operands if is_costly(x)]
    if len(cheap) > 1:
        cheap = [type(node)(tuple(cheap))]
    return [*cheap, *costly]


def _names(node: Condition) -> frozenset[str]:
    return frozenset(variable.name for variable in variables(node))


def _are_disjoint(operands: Iterable[Condition]) -> bool:
    seen: frozenset[str] = frozenset()
    for operand in operands:
        own = _names(operand)
        if own & seen:
            return False
        seen |= own
    return True


def _components(operands: list[Condition]) -> list[tuple[Condition, ...]]:
    """Operands in groups that share no variables with each other."""
    groups: list[tuple[frozenset[str], tuple[Condition, ...]]] = []
    for operand in operands:
        names = _names(operand)
        members: tuple[Condition, ...] = (operand,)
        apart = []
        for other_names, others in groups:
            if names & other_names:
                names, members = names | other_names, others + members
            else:
                apart.append((other_names, others))
        groups = [*apart, (names, members)]
    return [members for _, members in groups]


def _is_free(call: OperatorCall) -> bool:
    """Whether any feasible binding suffices: the bound places are distinct variables."""
    bound = [call.arguments[place] for place in call.bound]
    names = {argument.name for argument in bound if isinstance(argument, Variable)}
    return len(names) == len(bound)


def _rename(node: Condition) -> Condition:
    """The same condition with its variables renamed to v1, v2, …, so that joins that differ only in
    names are equal.
    """
    names = {name: f"v{number}" for number, name in enumerate(variable_order(node), 1)}
    return _renamed(node, names)


def _renamed(node: Condition, names: dict[str, str]) -> Condition:
    match node:
        case Not():
            return Not(_renamed(node.operand, names))
        case Comparison():
            left, right = _renamed_value(node.left, names), _renamed_value(node.right, names)
            return Comparison(node.operator, left, right)
        case OperatorCall():
            arguments = tuple(_renamed_value(argument, names) for argument in node.arguments)
            return OperatorCall(node.name, arguments, node.bound)
        case _ if children(node):
            assert isinstance(node, And | Or | AtLeast | Xor | Xnor)
            return replace(node, operands=tuple(_renamed(x, names) for x in node.operands))
        case _:
            return node


def _renamed_value(value: Value, names: dict[str, str]) -> Value:
    match value:
        case Variable():
            return Variable(names[value.name], value.type)
        case Arithmetic():
            left, right = _renamed_value(value.left, names), _renamed_value(value.right, names)
            return Arithmetic(value.operator, left, right)
        case _:
            return value
