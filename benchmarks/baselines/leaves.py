"""The leaves that the baselines know, brought into few forms; and how they read an event."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.errors import TamisError
from tamis.language.ast import (
    Attribute,
    Between,
    Comparison,
    Condition,
    Derived,
    In,
    IsNull,
    Like,
    Literal,
    StringTest,
    attributes,
    tested_attributes,
)
from tamis.language.comparators import Comparator, IndexTest
from tamis.language.patterns import Wild, parse_like
from tamis.language.printer import print_expression
from tamis.language.types import NUMBER, Type, WrongTypeError, read_value

if TYPE_CHECKING:
    from collections.abc import Mapping

LOWERED = "\0\0lower"  # marks the key of a text in lower case


@dataclass(frozen=True, slots=True)
class Interval:
    """The value lies between two bounds; None is no bound."""

    attribute: Attribute
    low: Any
    low_is_closed: bool
    high: Any
    high_is_closed: bool
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class ValueSet:
    """The value is one of a set's."""

    attribute: Attribute
    members: tuple[Any, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """The text is, begins with, ends with or contains `text`; or fits a regular expression."""

    attribute: Attribute
    kind: str  # equals, startswith, endswith, contains or regex
    text: str  # in lower case if `ignores_case`
    ignores_case: bool
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """The attribute is missing."""

    attribute: Attribute
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """True or false, whatever the event."""

    value: bool


Leaf: TypeAlias = Interval | ValueSet | Text | Missing | Constant


def read_leaf(node: Condition) -> Leaf:
    """The leaf in one of the few forms; refuses what no baseline knows."""
    if any(attribute.type == NUMBER for attribute in attributes(node)):
        raise TamisError(f"no baseline for numbers of several kinds: {print_expression(node)}")
    if any(isinstance(tested, Derived) for tested in tested_attributes(node)):
        raise TamisError(f"no baseline for functions of values: {print_expression(node)}")
    if isinstance(node, Like | StringTest) and "\0" in (
        node.pattern if isinstance(node, Like) else node.text
    ):
        # NumPy takes it for the end of a text.
        raise TamisError(f"no baseline for a zero character: {print_expression(node)}")
    match node:
        case Comparison(left=Attribute(), right=Literal()) if node.operator is not Comparator.SAME:
            return _comparison(node.left, node.operator, node.right.value)
        case Comparison(left=Literal(), right=Attribute()) if node.operator is not Comparator.SAME:
            return _comparison(node.right, node.operator.mirrored, node.left.value)
        case Between(operand=Attribute(), low=Literal(), high=Literal()):
            low, high = node.low.value, node.high.value
            return Interval(node.operand, low, True, high, True, node.negated)
        case In():
            members = tuple(dict.fromkeys(literal.value for literal in node.values))
            return ValueSet(node.operand, members, node.negated)
        case Like():
            return _like(node)
        case StringTest():
            return Text(node.operand, node.function, node.text, ignores_case=False)
        case IsNull():
            return Missing(node.operand, node.negated)
        case Attribute():
            return Interval(node, True, True, True, True)
        case Literal():
            return Constant(node.value)
        case _:
            raise TamisError(f"no baseline for: {print_expression(node)}")


def _comparison(attribute: Attribute, operator: Comparator, value: Any) -> Interval:
    signed = operator.signed_test
    if signed.test is IndexTest.EQUAL:
        return Interval(attribute, value, True, value, True, signed.is_negated)
    if signed.is_upper:
        return Interval(attribute, None, False, value, signed.is_closed)
    return Interval(attribute, value, signed.is_closed, None, False)


def _like(node: Like) -> Text:
    """A plain text with % at its ends, as most patterns are; else a regular expression."""
    pattern = node.pattern.lower() if node.ignores_case else node.pattern
    tokens = parse_like(pattern, node.escape)
    starts_open = tokens[:1] == (Wild.ANY_TEXT,)
    ends_open = tokens[-1:] == (Wild.ANY_TEXT,) and len(tokens) > starts_open
    inner = tokens[starts_open : len(tokens) - ends_open]
    if any(isinstance(token, Wild) for token in inner):
        return Text(node.operand, "regex", _regex(tokens), node.ignores_case, node.negated)
    kind = {
        (False, False): "equals",
        (False, True): "startswith",
        (True, False): "endswith",
        (True, True): "contains",
    }[starts_open, ends_open]
    return Text(node.operand, kind, "".join(inner), node.ignores_case, node.negated)


def _regex(tokens: tuple[str | Wild, ...]) -> str:
    wild = {Wild.ANY_TEXT: ".*", Wild.ONE_CHARACTER: "."}
    pieces = [wild[token] if isinstance(token, Wild) else re.escape(token) for token in tokens]
    return f"(?s:{''.join(pieces)})"


class EventReader:
    """Reads of an event what the conditions ask about: typed, flat, without NULLs."""

    def __init__(self) -> None:
        self._types: dict[str, Type] = {}  # of attributes that are plain keys
        self._nested: dict[str, Attribute] = {}
        self._lowered: set[str] = set()

    def add(self, attribute: Attribute, *, lowered: bool = False) -> str:
        """The key under which `read` will give the attribute (its text in lower case)."""
        assert attribute.type is not None
        if len(attribute.path) == 1:
            key = attribute.path[0]
            self._types[key] = attribute.type
        else:
            key = "\0".join(attribute.path)  # no name holds a NUL
            self._nested[key] = attribute
        if lowered:
            self._lowered.add(key)
            return key + LOWERED
        return key

    def read(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The event's values by key; a value of the wrong type is left out."""
        found: dict[str, Any] = {}
        types = self._types
        for name, value in event.items():
            type_ = types.get(name)
            if type_ is not None and value is not None:
                _put(found, name, value, type_)
        for key, attribute in self._nested.items():
            value = event
            for name in attribute.path:
                value = value.get(name) if hasattr(value, "get") else None
            if value is not None:
                assert attribute.type is not None
                _put(found, key, value, attribute.type)
        # Every pattern that ignores case looks at the same lower case: made once per event.
        for key in self._lowered & found.keys():
            found[key + LOWERED] = found[key].lower()
        return found


def _put(found: dict[str, Any], key: str, value: Any, type_: Type) -> None:
    try:
        found[key] = read_value(value, type_)
    except WrongTypeError:
        return
