"""Explain: why a subscription matches an event, or why not.

The reference evaluator gives the truth of every node, so an explanation agrees with matching.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tamis.errors import InputError
from tamis.events.names import find_names
from tamis.language.array_keys import ARRAY_KEY
from tamis.language.ast import (
    EVENT,
    And,
    AtLeast,
    Between,
    Comparison,
    Condition,
    Derived,
    ElementTest,
    In,
    IsNull,
    Like,
    Literal,
    Matches,
    Not,
    OperatorCall,
    Or,
    PatternList,
    Rlike,
    Xnor,
    Xor,
    attributes,
    children,
    tested_attributes,
    variables_of,
)
from tamis.language.check import check
from tamis.language.comparators import Comparator
from tamis.language.limits import NO_LIMITS
from tamis.language.lookalikes import find_likeness
from tamis.language.moments import read_at
from tamis.language.names import print_path
from tamis.language.parser import parse
from tamis.language.printer import print_expression
from tamis.language.types import KINDS, Type, spell_value
from tamis.logic.bindings import call_of
from tamis.logic.canonical import canonicalize
from tamis.logic.derive import compute_derived, describe_no_result
from tamis.logic.evaluate import (
    NOTHING,
    Known,
    Missing,
    attribute_value,
    evaluate_under,
    raw_value,
    value_at,
)
from tamis.logic.leaves import FALSE, inverse
from tamis.match.found_elements import describe_elements
from tamis.match.found_patterns import describe_patterns
from tamis.match.found_words import describe_found

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from tamis.language.schema import Path, Schema
    from tamis.logic.truth import Truth
    from tamis.match.view import View

WORDS = {True: "true", False: "false", None: "undefined"}
_MARKS = {True: "✓", False: "✗", None: "?"}
_MISSING = {False: "missing", True: "not bound"}  # an attribute, a variable
_SHOWN = 60
_BINDINGS_SHOWN = 5
_MOST_BITS = 14_000  # of an integer that Python prints: those of more than 4,300 digits it does not
_Leaves: TypeAlias = dict[Condition, None]  # in order, distinct


@dataclass(frozen=True, slots=True)
class Step:
    """One node of the expression and its truth for the event."""

    text: str
    truth: Truth
    values: tuple[tuple[str, Any], ...]  # of a leaf: attribute and value; None if missing
    notes: tuple[str, ...]  # of a leaf: rejected values, and why
    below: tuple[Step, ...]

    def to_dict(self) -> dict[str, Any]:
        """The step as a dictionary of JSON values."""
        shown: dict[str, Any] = {"expression": self.text, "truth": WORDS[self.truth]}
        if self.values:
            shown["values"] = {name: _jsonable(value) for name, value in self.values}
        if self.notes:
            shown["notes"] = list(self.notes)
        if self.below:
            shown["operands"] = [step.to_dict() for step in self.below]
        return shown


@dataclass(frozen=True, slots=True)
class Explanation:
    """The tree of one subscription for one event, with one sentence."""

    subscription_id: str
    truth: Truth
    sentence: str
    tree: Step
    # The fewest leaves that would have to be true for a match; empty for a match.
    changes: tuple[str, ...]
    is_valid: bool = True  # at the given moment

    @property
    def matches(self) -> bool:
        """Whether the event satisfies the subscription."""
        return self.truth is True and self.is_valid

    def asleep(
        self, at: datetime, valid_from: datetime | None, valid_until: datetime | None
    ) -> Explanation:
        """The same for a subscription that is not valid at the moment."""
        limits = [f"from {valid_from:%Y-%m-%d %H:%M:%S}"] if valid_from else []
        limits += [f"until {valid_until:%Y-%m-%d %H:%M:%S}"] if valid_until else []
        sentence = f"not valid at {at:%Y-%m-%d %H:%M:%S} UTC, but {' '.join(limits)}"
        return replace(
            self, is_valid=False, sentence=f"{sentence}; its expression: {self.sentence}"
        )

    def __str__(self) -> str:
        return "\n".join((f"{self.subscription_id}: {self.sentence}", *_draw(self.tree, "", "")))

    def to_dict(self) -> dict[str, Any]:
        """The explanation as a dictionary of JSON values."""
        return {
            "subscription_id": self.subscription_id,
            "matches": self.matches,
            "truth": WORDS[self.truth],
            "valid": self.is_valid,
            "sentence": self.sentence,
            "changes": list(self.changes),
            "tree": self.tree.to_dict(),
        }


def explain_match(
    view: View, subscription_id: str, event: Mapping[str, Any], at: Any
) -> Explanation:
    """The explanation of a subscription of an index for one event at a moment."""
    ordinal = view.catalogue.ordinal(subscription_id)
    number, local = view.catalogue.place(ordinal)
    engine = view.engines[number]
    contents, text = engine.contents, view.catalogue.text(ordinal)
    has_calls = bool(contents.schema.operators)
    known = engine.operators.know(local, text, event) if has_calls else NOTHING
    schema = view.catalogue.schema.with_operators(contents.schema.operators)
    # A definition may have changed since the part was built.
    schema = schema.with_definitions(contents.schema.definitions)
    found = explain(subscription_id, text, event, schema, contents.missing, known)
    moment = view.clock() if at is None else read_at(at)
    if len(view.moments[number].find(moment).keep(np.array([local]))):
        return found
    return found.asleep(moment, **view.details.limits(ordinal))


def explain(  # noqa: PLR0913 - all that decides it
    subscription_id: str,
    text: str,
    event: Mapping[str, Any],
    schema: Schema,
    missing: Missing,
    known: Known = NOTHING,
) -> Explanation:
    """The explanation of one expression for one event."""
    if not hasattr(event, "get"):
        raise InputError(f"an event is a mapping of attributes, not {type(event).__name__}")
    condition = check(parse(text, NO_LIMITS), schema, NO_LIMITS, text)
    tree = _step(condition, event, missing, known)
    changes = () if tree.truth is True else _changes(condition, event, missing, known)
    shown = tuple(print_expression(leaf) for leaf in changes or ())
    sentence = _sentence(tree, changes, event)
    return Explanation(subscription_id, tree.truth, sentence, tree, shown)


def _step(node: Condition, event: Mapping[str, Any], missing: Missing, known: Known) -> Step:
    below = tuple(_step(operand, event, missing, known) for operand in children(node))
    values: tuple[tuple[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    if isinstance(node, OperatorCall):
        notes = (_finding(node, known),)
    elif not below:
        # The strings that decide any_attribute() are shown as elements, without all others.
        mentioned = {own.path: own for own in attributes(node) if own.path != EVENT}
        values = tuple(
            (print_path(path), _show(attribute_value(attribute, event), attribute.type))
            for path, attribute in mentioned.items()
        )
        values += tuple(
            (print_path(own.path), _show(attribute_value(own, event), own.type))
            for own in dict.fromkeys(tested_attributes(node))
            if isinstance(own, Derived) and own.function != ARRAY_KEY
        )
        notes = tuple(
            f"{print_path(path)} is {_short(raw)}, not of type {attribute.type}: treated as missing"
            for path, attribute in mentioned.items()
            if (raw := raw_value(attribute, event)) is not None
            and attribute_value(attribute, event) is None
        )
        notes += tuple(_describe_no_results(node, event))
        notes += tuple(_describe_likely(mentioned, event))
    values += tuple(
        (f"?{variable.name}", known.values.get(variable.name))
        for variable in (() if below else variables_of(node))
    )
    truth = evaluate_under(node, event, known, missing)
    if isinstance(node, Matches):
        notes += describe_found(node, truth, event)
    if isinstance(node, PatternList):
        notes += describe_patterns(node, event)
    if isinstance(node, ElementTest):
        notes += describe_elements(node, event, missing)
    return Step(print_expression(node), truth, values, notes, below)


def _describe_no_results(node: Condition, event: Mapping[str, Any]) -> Iterator[str]:
    """The functions that have no result, although the event has their arguments."""
    notes: list[str] = []
    for own in dict.fromkeys(tested_attributes(node)):
        if isinstance(own, Derived):
            compute_derived(
                own,
                lambda argument: attribute_value(argument, event),
                lambda *found: notes.append(describe_no_result(*found)),
            )
    return iter(dict.fromkeys(notes))


def _describe_likely(wanted: Iterable[Path], event: Mapping[str, Any]) -> Iterator[str]:
    """For attributes that the event lacks, the similar names in it."""
    missing = [path for path in wanted if value_at(event, path) is None]
    names = find_names([event]) if missing else ()
    for path in missing:
        likely = None if path in names else find_likeness(path, sorted(names))
        if likely is not None:
            yield f"the event has {print_path(likely)}"


def _finding(node: OperatorCall, known: Known) -> str:
    """The answer of an operator for the event."""
    call = call_of(node)
    answer = known.answers.get(call)
    if answer is None:
        return f"no answer: {known.failures[call]}" if call in known.failures else "no answer"
    if not node.bound:
        return "yes" if answer else "no"
    if not answer:
        return "finds nothing"
    shown = [", ".join(map(_short, binding)) for binding in answer[:_BINDINGS_SHOWN]]
    more = [f"{len(answer) - len(shown)} more"] if len(answer) > len(shown) else []
    return f"finds {'; '.join([*shown, *more])}"


# ── what would have to change ───────────────────────────────────────────────────────────────


def _changes(
    condition: Condition, event: Mapping[str, Any], missing: Missing, known: Known
) -> tuple[Condition, ...] | None:
    """The fewest leaves that must become true for the condition to be true; None if it is
    impossible.
    """
    # Each node is computed at most twice, as it is and negated: a XOR needs both for each operand,
    # and would double the work at every level.
    found_before: dict[tuple[int, bool], _Leaves | None] = {}

    def cheapest(node: Condition, *, is_negated: bool) -> _Leaves | None:
        key = id(node), is_negated
        if key not in found_before:
            found_before[key] = find(node, is_negated=is_negated)
        return found_before[key]

    def find(node: Condition, *, is_negated: bool) -> _Leaves | None:
        match node:
            case Not():
                return cheapest(node.operand, is_negated=not is_negated)
            case And() | Or():
                below = [cheapest(operand, is_negated=is_negated) for operand in node.operands]
                return _joined(below) if isinstance(node, And) != is_negated else _shortest(below)
            case AtLeast():
                below = [cheapest(operand, is_negated=is_negated) for operand in node.operands]
                return _cheapest_few(below, len(below) - node.k + 1 if is_negated else node.k)
            case Xor() | Xnor():
                sides = [
                    (cheapest(operand, is_negated=False), cheapest(operand, is_negated=True))
                    for operand in node.operands
                ]
                return _cheapest_parity(sides, is_odd=isinstance(node, Xor) != is_negated)
            case _:
                leaf = _signed(node) if is_negated else node
                return _cheapest_leaf(leaf, event, missing, known)

    found = cheapest(condition, is_negated=False)
    return None if found is None else tuple(found)


def _cheapest_leaf(
    leaf: Condition, event: Mapping[str, Any], missing: Missing, known: Known
) -> _Leaves | None:
    if evaluate_under(leaf, event, known, missing) is True:
        return {}
    return None if canonicalize(leaf, missing) == FALSE else {leaf: None}


def _cheapest_few(below: list[_Leaves | None], n_needed: int) -> _Leaves | None:
    possible = [x for x in below if x is not None]
    possible.sort(key=len)
    return _joined([*possible[:n_needed]]) if len(possible) >= n_needed else None


def _cheapest_parity(
    sides: list[tuple[_Leaves | None, _Leaves | None]], *, is_odd: bool
) -> _Leaves | None:
    """The cheapest way to make an odd (even) number of operands true, one operand at a time."""
    even: _Leaves | None = {}
    odd: _Leaves | None = None
    for is_true, is_false in sides:
        even, odd = (
            _shortest([_joined([even, is_false]), _joined([odd, is_true])]),
            _shortest([_joined([odd, is_false]), _joined([even, is_true])]),
        )
    return odd if is_odd else even


def _signed(leaf: Condition) -> Condition:
    """The leaf's negation as a person would write it; the same test in both modes of missing."""
    match leaf:
        case Literal():
            return inverse(leaf)
        case Comparison(operator=Comparator.EQUAL | Comparator.NOT_EQUAL):
            return replace(leaf, operator=leaf.operator.inverse)
        case In() | Between() | IsNull() | Like() | Rlike():
            return replace(leaf, negated=not leaf.negated)
        case _:
            return Not(leaf)


def _joined(sets: list[_Leaves | None]) -> _Leaves | None:
    joined: _Leaves = {}
    for one in sets:
        if one is None:
            return None
        joined |= one
    return joined


def _shortest(sets: list[_Leaves | None]) -> _Leaves | None:
    """The fewest leaves. Among equals, those that do not remove an attribute, which other leaves
    may need.
    """

    def cost(leaves: _Leaves) -> tuple[int, int]:
        return len(leaves), sum(isinstance(leaf, IsNull) and not leaf.negated for leaf in leaves)

    possible = [one for one in sets if one is not None]
    return min(possible, key=cost) if possible else None


# ── words ───────────────────────────────────────────────────────────────────────────────────


def _sentence(tree: Step, changes: tuple[Condition, ...] | None, event: Mapping[str, Any]) -> str:
    if tree.truth is True:
        held = [step.text for step in _deciding(tree)]
        return f"matches: {_listed(held)} {'holds' if len(held) == 1 else 'hold'}"
    if changes is None:
        return f"{WORDS[tree.truth]}: no event can satisfy it"
    missing = dict.fromkeys(
        print_path(attribute.path)
        for leaf in changes
        for attribute in attributes(leaf)
        if attribute_value(attribute, event) is None
    )
    if missing and tree.truth is None:
        return f"undefined: {_listed(list(missing))} {'is' if len(missing) == 1 else 'are'} missing"
    wanted = [print_expression(leaf) for leaf in changes]
    return f"{WORDS[tree.truth]}: it would match if {_listed(wanted)}"


def _deciding(step: Step) -> Iterator[Step]:
    """The lowest steps that together make the whole condition true."""
    below = [child for child in step.below if child.truth is True]
    if step.below and below and not step.text.startswith(("NOT", "xnor")):
        for child in below:
            yield from _deciding(child)
    else:
        yield step


def _listed(parts: list[str]) -> str:
    if len(parts) > 4:
        parts = [*parts[:3], f"{len(parts) - 3} more"]
    parts = [part if len(part) <= _SHOWN else part[: _SHOWN - 1] + "…" for part in parts]
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _draw(step: Step, lead: str, branch: str) -> Iterator[str]:
    shown = step.text if len(step.text) <= 100 else step.text[:99] + "…"
    values = ", ".join(
        f"{name} is {_MISSING[name[0] == '?'] if value is None else _short(value)}"
        for name, value in step.values
    )
    remarks = "; ".join([*([values] if values else []), *step.notes])
    remark = f"   ({remarks})" if remarks else ""
    yield f"{lead}{branch}{_MARKS[step.truth]} {shown}{remark}"
    below_lead = lead + {"": "", "├ ": "│ ", "└ ": "  "}[branch]
    for at, child in enumerate(step.below):
        yield from _draw(child, below_lead, "└ " if at == len(step.below) - 1 else "├ ")


def _show(value: Any, type_: Type | None) -> Any:
    """The value as people write it: an address with dots or colons."""
    if value is None or type_ is None:
        return value
    show = KINDS[(type_.element or type_).name].show
    if show is None:
        return value
    if type_.element is not None:
        return tuple(own if own is None else show(own) for own in value)
    return show(value)


def _short(value: Any) -> str:
    try:
        shown = repr(value) if isinstance(value, str) else str(value)
    except Exception:  # printing fails for integers of more than 4,300 digits and for some objects
        shown = f"a value of class {type(value).__name__}"
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


def _jsonable(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return spell_value(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return [_jsonable(item) for item in value] if isinstance(value, tuple) else str(value)
