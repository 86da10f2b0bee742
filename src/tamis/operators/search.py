"""Searches for a substitution among the answers known so far.

Each node of a condition is evaluated to a lower and an upper bound of its truth, in the order FALSE
< undefined < TRUE, over all answers of the open calls and all values of the open variables.
Variables are bound one by one in their order; the search backtracks where the whole condition
cannot be true. So the first substitution found is also the first one of the reference evaluator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.language.ast import (
    And,
    AtLeast,
    Condition,
    Literal,
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
from tamis.language.variables import variable_order
from tamis.logic.bindings import ascending, call_of
from tamis.logic.evaluate import Known, Missing, evaluate, evaluate_leaf
from tamis.operators.residual import is_costly

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tamis.logic.bindings import Answer
    from tamis.logic.truth import Truth

    Bounds = tuple[int, int]
    Term = Callable[["Facts", dict[str, Any]], Bounds]

_FALSE, _UNDEFINED, _TRUE, _OPEN = (0, 0), (1, 1), (2, 2), (0, 2)
_EXACT: Final = {False: _FALSE, None: _UNDEFINED, True: _TRUE}
_OTHER: Final = object()  # a value that occurs in no known binding


class BudgetError(Exception):
    """A search exceeded its limit of steps."""


class Facts:
    """The known facts of one event: answers by call, and cheap conditions evaluated so far."""

    __slots__ = ("_projections", "_truths", "answers", "event", "missing", "most_steps", "n_steps")

    def __init__(self, event: Mapping[str, Any], missing: Missing, most_steps: int) -> None:
        self.event = event
        self.missing = missing
        self.most_steps = most_steps  # limit of one search
        self.n_steps = 0  # of the current search
        self.answers: dict[int, Answer] = {}
        self._truths: dict[Condition, Truth] = {}
        self._projections: dict[tuple[int, tuple[int, ...], tuple[int, ...]], set[Any]] = {}

    def test(self, condition: Condition) -> Truth:
        """The truth of a cheap condition."""
        if condition not in self._truths:
            self._truths[condition] = evaluate(condition, self.event, self.missing)
        return self._truths[condition]

    def projection(self, call: int, pattern: tuple[int, ...], places: tuple[int, ...]) -> set[Any]:
        """The feasible bindings at some positions, restricted to those with equal values where
        `pattern` has equal numbers.
        """
        key = call, pattern, places
        if key not in self._projections:
            self._projections[key] = {
                tuple(binding[place] for place in places)
                for binding in self.answers[call] or ()
                if all(
                    binding[at] is binding[pattern[at]] or binding[at] == binding[pattern[at]]
                    for at in range(len(pattern))
                )
            }
        return self._projections[key]


class SubstitutionSearch:
    """One condition, prepared for searches over many events."""

    def __init__(
        self,
        condition: Condition,
        calls: Mapping[OperatorCall, int],
        missing: Missing,
        names: tuple[str, ...] | None = None,
    ) -> None:
        self.calls = tuple(dict.fromkeys(calls[call_of(leaf)] for leaf in _calls_in(condition)))
        self._names = variable_order(condition) if names is None else names
        self._types = {variable.name: variable.type for variable in variables(condition)}
        self._condition = condition
        self._numbers = calls
        self._term = _compile(condition, calls, missing)
        self._places = _places(condition, calls)

    def certain(self, facts: Facts) -> dict[str, Any] | None:
        """The first substitution that makes it true for all answers of the open calls, or None."""
        values: dict[str, Any] = {}
        facts.n_steps = 0
        found = self._search(0, values, facts, self._candidates(facts, with_other=False), side=0)
        if not found:
            return None
        return {name: value for name, value in values.items() if value is not None}

    def is_possible(self, facts: Facts) -> bool:
        """Whether some substitution may make it true for some answers of the open calls."""
        facts.n_steps = 0
        return self._search(0, {}, facts, self._candidates(facts, with_other=True), side=1)

    def has_answers(self, facts: Facts) -> bool:
        """Whether no call is open."""
        return all(call in facts.answers for call in self.calls)

    def open_calls(self, facts: Facts) -> list[int]:
        """The calls without an answer that may still matter."""
        found: dict[int, None] = {}
        self._collect_open(self._condition, facts, found)
        return list(found)

    def _collect_open(self, node: Condition, facts: Facts, found: dict[int, None]) -> None:
        if _compile(node, self._numbers, facts.missing)(facts, {})[1] < 2:
            return
        if isinstance(node, And | Or | AtLeast):
            for operand in node.operands:
                self._collect_open(operand, facts, found)
            return
        numbers = (self._numbers[call_of(leaf)] for leaf in _calls_in(node))
        found.update((number, None) for number in numbers if number not in facts.answers)

    def _candidates(self, facts: Facts, *, with_other: bool) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for name in self._names:
            values: list[Any] = []
            is_open = False
            for call, place in self._places.get(name, ()):
                if call in facts.answers:
                    values.extend(row[place] for row in facts.answers[call] or ())
                else:
                    is_open = True
            other = (_OTHER,) if is_open and with_other else ()
            found.append((None, *ascending(values, self._types.get(name)), *other))
        return found

    def _search(
        self,
        at: int,
        values: dict[str, Any],
        facts: Facts,
        candidates: list[tuple[Any, ...]],
        side: int,
    ) -> bool:
        facts.n_steps += 1
        if facts.n_steps > facts.most_steps:
            raise BudgetError
        bounds = self._term(facts, values)
        if bounds[1] < 2:
            return False
        if bounds[0] == 2:
            return True
        if at == len(self._names):
            return bounds[side] == 2
        name = self._names[at]
        for value in candidates[at]:
            values[name] = value
            if self._search(at + 1, values, facts, candidates, side):
                return True
        del values[name]
        return False


def _calls_in(condition: Condition) -> list[OperatorCall]:
    return [leaf for leaf in leaves(condition) if isinstance(leaf, OperatorCall)]


def _places(
    condition: Condition, calls: Mapping[OperatorCall, int]
) -> dict[str, list[tuple[int, int]]]:
    """For each variable, the calls that bind it, and its positions in their bindings."""
    found: dict[str, list[tuple[int, int]]] = {}
    for leaf in _calls_in(condition):
        for number, place in enumerate(leaf.bound):
            argument = leaf.arguments[place]
            if isinstance(argument, Variable):
                found.setdefault(argument.name, []).append((calls[call_of(leaf)], number))
    return found


# ── bounds ──────────────────────────────────────────────────────────────────────────────────


def _compile(node: Condition, calls: Mapping[OperatorCall, int], missing: Missing) -> Term:
    """A function that returns the bounds of the node's truth."""
    if not is_costly(node):
        return lambda facts, values: _EXACT[facts.test(node)]
    match node:
        case And() | Or() | AtLeast():
            n = len(node.operands)
            k = node.k if isinstance(node, AtLeast) else n if isinstance(node, And) else 1
            return _bound_some(k, [_compile(x, calls, missing) for x in node.operands])
        case Not():
            return _bound_not(_compile(node.operand, calls, missing))
        case Xor() | Xnor():
            odd = _bound_odd([_compile(x, calls, missing) for x in node.operands])
            return odd if isinstance(node, Xor) else _bound_not(odd)
        case OperatorCall():
            return _bound_call(node, calls[call_of(node)], missing)
        case _:
            return _bound_constraint(node)


def _bound_some(k: int, terms: list[Term]) -> Term:
    if k == len(terms):

        def bound_all(facts: Facts, values: dict[str, Any]) -> Bounds:
            low, high = 2, 2
            for term in terms:
                own = term(facts, values)
                low, high = min(low, own[0]), min(high, own[1])
                if high == 0:
                    break
            return low, high

        return bound_all

    def bound(facts: Facts, values: dict[str, Any]) -> Bounds:
        # at_least(k) is the k-th greatest of the lower bounds, and of the upper bounds.
        own = [term(facts, values) for term in terms]
        lows = sorted((low for low, _ in own), reverse=True)
        highs = sorted((high for _, high in own), reverse=True)
        return lows[k - 1], highs[k - 1]

    return bound


def _bound_not(term: Term) -> Term:
    def bound(facts: Facts, values: dict[str, Any]) -> Bounds:
        low, high = term(facts, values)
        return 2 - high, 2 - low

    return bound


def _bound_odd(terms: list[Term]) -> Term:
    def bound(facts: Facts, values: dict[str, Any]) -> Bounds:
        own = [term(facts, values) for term in terms]
        if _UNDEFINED in own:
            return _UNDEFINED
        if any(low != high for low, high in own):
            return _OPEN
        return _TRUE if sum(low == 2 for low, _ in own) % 2 else _FALSE

    return bound


def _bound_call(node: OperatorCall, call: int, missing: Missing) -> Term:
    arguments = [node.arguments[place] for place in node.bound]
    first: dict[str, int] = {}
    for at, argument in enumerate(arguments):
        if isinstance(argument, Variable):
            first.setdefault(argument.name, at)
    pattern = tuple(
        first[argument.name] if isinstance(argument, Variable) else at
        for at, argument in enumerate(arguments)
    )
    undefined = _FALSE if missing is Missing.SATISFIES_NEGATION else _UNDEFINED

    def bound(facts: Facts, values: dict[str, Any]) -> Bounds:
        if call not in facts.answers:
            return _OPEN
        if facts.answers[call] is None:
            return undefined
        asked, places = [], []
        for at, argument in enumerate(arguments):
            if isinstance(argument, Literal):
                asked.append(argument.value)
            elif argument.name in values:  # type: ignore[union-attr]
                asked.append(values[argument.name])  # type: ignore[union-attr]
            else:
                continue
            places.append(at)
        if None in asked or tuple(asked) not in facts.projection(call, pattern, tuple(places)):
            return _FALSE
        return _TRUE if len(places) == len(arguments) else _OPEN

    return bound


def _bound_constraint(node: Condition) -> Term:
    names = tuple({variable.name for variable in variables_of(node)})

    def bound(facts: Facts, values: dict[str, Any]) -> Bounds:
        if any(values.get(name, _OTHER) is _OTHER for name in names):
            return _OPEN
        known = Known({}, values)
        return _EXACT[evaluate_leaf(node, facts.event, facts.missing, known)]

    return bound
