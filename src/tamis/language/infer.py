"""Infers a schema from how expressions use attributes, or from events.

Each use of an attribute is a vote for a kind of type. The kind with most votes wins, so that one
subscription that disagrees with a million others gets the error, and not the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from itertools import chain, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from tamis.language.ast import (
    EVENT,
    ArraysOverlap,
    Attribute,
    Between,
    Comparison,
    Condition,
    Derived,
    ElementTest,
    In,
    InNetwork,
    IsNull,
    Like,
    Literal,
    Matches,
    PatternList,
    Rlike,
    StringTest,
    Value,
    attributes,
    leaves,
    tested_attributes,
)
from tamis.language.lambdas import ELEMENT, with_parameter
from tamis.language.limits import MAX_DEPTH
from tamis.language.schema import Path, Schema
from tamis.language.types import (
    ANY,
    ANY_ARRAY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    IP,
    KINDS,
    NUMBER,
    STRING,
    TIMESTAMP,
    Type,
    array_type,
    decimal_digits,
    decimal_type,
    plain_value,
    struct_of,
)
from tamis.language.value_functions import likely_parameters, likely_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Votes = dict[Path, Counter[Type]]
# The characters of a string that may spell a date, a timestamp, an address or a network.
SPELLING: Final = frozenset("0123456789abcdefABCDEF.:+-/TZ ")


class SchemaVotes:
    """Votes of expressions for the types of their attributes."""

    def __init__(self) -> None:
        self._votes: Votes = defaultdict(Counter)
        # Of the votes for a string, those of uses that fit no other type.
        self._n_only_texts: Counter[Path] = Counter()
        self._pairs: set[tuple[Path, Path]] = set()  # attributes compared with each other
        self._elements: dict[Path, SchemaVotes] = {}  # of lambdas, by the array that they test

    def add(self, condition: Condition) -> None:
        """Count every use of an attribute in an untyped condition."""
        for leaf in leaves(condition):
            for own in _without_coalesce(leaf):
                _collect(own, self._votes, self._pairs)
                self._n_only_texts.update(_find_only_texts(own))
            for path, test in _tests_of_elements(leaf):
                self._elements.setdefault(path, SchemaVotes()).add(test)
        for tested in tested_attributes(condition):
            if isinstance(tested, Derived):
                self._add_arguments(tested)
        # Derived values have no path yet: their functions decide on their types.
        self._votes.pop((), None)
        self._n_only_texts.pop((), None)
        for attribute in attributes(condition):
            if attribute.path != EVENT:  # which has no type of its own
                self._votes[attribute.path]

    def _add_arguments(self, value: Derived) -> None:
        """Count the types that a function takes."""
        parameters = likely_parameters(value)
        # The last parameter may be repeated, others may be left out.
        types = chain(parameters, repeat(parameters[-1]))
        if value.function == "coalesce":
            self._add_coalesced(value)
        for own, type_ in zip(value.arguments, types, strict=False):
            array = _array_of(own)
            if array is not None:
                elements = self._elements.setdefault(array.path, SchemaVotes())
                elements.add_uses((ELEMENT,), type_, 1, n_only_texts=int(type_ == STRING))
            if isinstance(own, Derived):
                self._add_arguments(own)
            elif isinstance(own, Attribute):
                self.add_uses(own.path, type_, 1, n_only_texts=int(type_ == STRING))

    def _add_coalesced(self, value: Derived) -> None:
        """Count the types of the other arguments of coalesce()."""
        first, *others = value.arguments
        for other in others:
            _collect_comparison(first, other, self._votes, self._pairs)
            self._n_only_texts.update(_find_compared_texts(first, other))

    def add_uses(self, path: Path, type_: Type, n_uses: int, *, n_only_texts: int = 0) -> None:
        """Count uses that were found in another way; `n_only_texts` of them fit only strings."""
        self._votes[path][type_] += n_uses
        self._n_only_texts[path] += n_only_texts

    def merge(self, other: SchemaVotes) -> None:
        """Add the votes of other expressions, which come after these."""
        for path, counted in other._votes.items():
            self._votes[path].update(counted)
        self._n_only_texts.update(other._n_only_texts)
        self._pairs |= other._pairs
        for path, own in other._elements.items():
            self._elements.setdefault(path, SchemaVotes()).merge(own)

    def elect(self) -> Schema:
        """The schema that most uses of each attribute indicate."""
        for path, own in self._elements.items():
            self._add_elements(path, own)
        _share_votes(self._votes, self._n_only_texts, self._pairs)
        return _elect_all(self._votes, self._n_only_texts)

    def _add_elements(self, path: Path, elements: SchemaVotes) -> None:
        """Count the uses of the elements of an array."""
        elected = elements.elect()
        types = {own[1:]: elected[own] for own in elected if own[0] == ELEMENT}
        element = types.get((), ANY)
        if any(types):
            types.pop((), None)
            element = struct_of(types)
        n_uses = sum(votes.total() for votes in elements._votes.values())
        type_ = ANY_ARRAY if element == ANY else array_type(element)
        self.add_uses(path, type_, max(1, n_uses))


def is_only_text(text: str) -> bool:
    """Whether a string constant cannot spell a value of another type, judged by its characters.

    `bases.is_only_text` answers the same for the fast reader.
    """
    starts_like_one = text[:1] in tuple("0123456789") or ":" in text
    return not (starts_like_one and SPELLING.issuperset(text))


def infer_schema(conditions: Iterable[Condition]) -> Schema:
    """The schema that most uses of each attribute in the expressions indicate."""
    votes = SchemaVotes()
    for condition in conditions:
        votes.add(condition)
    return votes.elect()


def infer_schema_from_events(events: Iterable[Mapping[str, Any]]) -> Schema:
    """The schema that most values of each attribute in the events indicate."""
    votes: Votes = defaultdict(Counter)
    for event in events:
        _collect_values((), event, votes)
    return _elect_all(votes)


# ── votes ───────────────────────────────────────────────────────────────────────────────────


def _collect(leaf: Condition, votes: Votes, pairs: set[tuple[Path, Path]]) -> None:
    match leaf:
        case Comparison():
            _collect_comparison(leaf.left, leaf.right, votes, pairs)
        case Between():
            _collect_comparison(leaf.operand, leaf.low, votes, pairs)
            _collect_comparison(leaf.operand, leaf.high, votes, pairs)
        case In():
            votes[leaf.operand.path].update(_literal_vote(value) for value in leaf.values)
        case ArraysOverlap():
            elements = (array_type(_literal_vote(value)) for value in leaf.values)
            votes[leaf.operand.path].update(elements)
        case Like() | Rlike() | StringTest() | PatternList():
            votes[leaf.operand.path][STRING] += 1
        case InNetwork():
            votes[leaf.operand.path][IP] += 1
        case Matches():
            for attribute in leaf.attributes:
                votes[attribute.path][STRING] += 1
        case Attribute():
            votes[leaf.path][BOOLEAN] += 1
        case IsNull():
            votes[leaf.operand.path][ANY] += 1
        case _:
            pass


def _without_coalesce(leaf: Condition) -> Iterator[Condition]:
    """The leaf; if it tests coalesce(a, b), instead the same tests of a and of b."""
    for side in ("operand", "left", "right"):
        value = getattr(leaf, side, None)
        if isinstance(value, Derived) and value.function == "coalesce":
            for own in value.arguments:
                if isinstance(own, Attribute):
                    yield from _without_coalesce(replace(cast("Any", leaf), **{side: own}))
            return
    yield leaf


def _array_of(value: object) -> Attribute | None:
    """The array of which a value is an element: a, of element_at(a, 1)."""
    if isinstance(value, Derived) and value.function == "element_at":
        array = value.arguments[0]
        if isinstance(array, Attribute) and not isinstance(array, Derived):
            return array
    return None


def _tests_of_elements(leaf: Condition) -> Iterator[tuple[Path, Condition]]:
    """Tests of elements in a leaf, each with the path of the array."""
    if isinstance(leaf, ElementTest) and leaf.operand.path != EVENT:
        yield leaf.operand.path, with_parameter(leaf.test).body
    for side in ("operand", "left", "right"):
        array = _array_of(getattr(leaf, side, None))
        if array is not None:
            yield array.path, replace(cast("Any", leaf), **{side: Attribute((ELEMENT,))})


def _find_only_texts(leaf: Condition) -> Iterator[Path]:
    """The attribute of each use in a leaf that fits only strings."""
    match leaf:
        case Like() | Rlike() | StringTest() | PatternList():
            yield leaf.operand.path
        case Matches():
            yield from (attribute.path for attribute in leaf.attributes)
        case In():
            yield from (leaf.operand.path for value in leaf.values if _is_only_text(value))
        case Comparison():
            yield from _find_compared_texts(leaf.left, leaf.right)
        case Between():
            yield from _find_compared_texts(leaf.operand, leaf.low)
            yield from _find_compared_texts(leaf.operand, leaf.high)
        case _:
            pass


def _find_compared_texts(left: Value, right: Value) -> Iterator[Path]:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Attribute) and isinstance(other, Literal) and _is_only_text(other):
            yield one.path


def _is_only_text(literal: Literal) -> bool:
    return literal.type == STRING and is_only_text(literal.value)


def _collect_comparison(
    left: Value, right: Value, votes: Votes, pairs: set[tuple[Path, Path]]
) -> None:
    if isinstance(left, Literal):
        left, right = right, left
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Derived) and isinstance(other, Attribute):
            result = likely_result(one)
            votes[other.path][NUMBER if result.is_numeric else result] += 1
            return
    if isinstance(left, Attribute) and isinstance(right, Literal):
        votes[left.path][_literal_vote(right)] += 1
    elif isinstance(left, Attribute) and isinstance(right, Attribute):
        pairs.add((left.path, right.path))


def _literal_vote(literal: Literal) -> Type:
    if literal.type == ANY_ARRAY:
        kinds = Counter(_literal_vote(own) for own in literal.value if own is not None)
        return array_type(_elect(kinds)) if kinds else ANY_ARRAY
    # 1.5 on an attribute of unknown type: its values may be integers, decimals or doubles.
    return NUMBER if literal.type.is_numeric else literal.type


def _share_votes(votes: Votes, n_only_texts: Counter[Path], pairs: set[tuple[Path, Path]]) -> None:
    """Attributes compared with each other and never with a constant get the other's votes."""
    is_spreading = True
    while is_spreading:
        is_spreading = False
        for one, other in pairs:
            for giver, taker in ((one, other), (other, one)):
                kinds = Counter({kind: n for kind, n in votes[giver].items() if kind != ANY})
                if kinds and not votes[taker].keys() - {ANY}:
                    votes[taker].update(kinds)
                    n_only_texts[taker] += n_only_texts[giver]
                    is_spreading = True


def _collect_values(prefix: Path, members: Mapping[str, Any], votes: Votes) -> None:
    for name, value in members.items():
        path = (*prefix, name)
        if isinstance(value, dict):
            if len(path) < MAX_DEPTH:  # no expression can name deeper parts
                _collect_values(path, value, votes)
        else:
            votes[path][_value_vote(value)] += 1


def _value_vote(value: Any) -> Type:
    match plain_value(value):
        case bool():
            return BOOLEAN
        case int(number):
            return INTEGER if INT64_MIN <= number <= INT64_MAX else DOUBLE
        case float():
            return DOUBLE
        case str():
            return STRING
        case Decimal() as number if number.is_finite():
            before, after = decimal_digits(number)
            is_wide = before + after > 38
            return DOUBLE if is_wide else decimal_type(max(1, before + after), after)
        case IPv4Address() | IPv6Address():
            return IP
        case datetime():
            return TIMESTAMP
        case date():
            return DATE
        case list() | tuple() as items:
            known = [item for item in items if item is not None]
            are_scalars = not any(isinstance(item, list | tuple | dict) for item in known)
            kinds = Counter(map(_value_vote, known)) if are_scalars else Counter()
            return array_type(_elect(kinds)) if kinds and ANY not in kinds else ANY
        case _:
            return ANY


# ── elections ───────────────────────────────────────────────────────────────────────────────


def _elect_all(votes: Votes, n_only_texts: Mapping[Path, int] = MappingProxyType({})) -> Schema:
    """A schema of the winners; where `a` and `a.b` are both named, the one with fewer votes
    is left out."""
    losers = set()
    for path, counted in votes.items():
        for length in range(1, len(path)):
            above = path[:length]
            if above in votes:
                losers.add(path if votes[above].total() >= counted.total() else above)
    return Schema(
        {
            path: _elect(votes[path], n_only_texts.get(path, 0))
            for path in votes
            if path not in losers
        }
    )


_ARRAYS: Final = "array of "
_ANY_ARRAYS: Final = "array of any"


def _elect(votes: Counter[Type], n_only_texts: int = 0) -> Type:
    """The winning type: votes of one family count together, and its widest type is chosen."""
    families: dict[str, Counter[Type]] = defaultdict(Counter)
    for kind, n in votes.items():
        families[_family(kind)][kind] += n
    families.pop("any", None)
    if any(own.startswith(_ARRAYS) and own != _ANY_ARRAYS for own in families):
        families.pop(_ANY_ARRAYS, None)
    # '2024-01-31' may be a string or a date, DATE '…' only a date, LIKE '…' only a string.
    n_spelled = sum(n for kind, n in votes.items() if KINDS[kind.name].is_spelled)
    if n_spelled and "string" in families:
        families["string"] = Counter({STRING: n_only_texts})
        if n_only_texts <= n_spelled:
            del families["string"]
    if not families:
        return ANY
    # Ties go to the family seen first, which makes the choice repeatable.
    winner = max(families.values(), key=lambda counted: counted.total())
    return _widest(winner)


def _family(kind: Type) -> str:
    if kind.element is not None:
        return f"{_ARRAYS}{_family(kind.element)}"
    return KINDS[kind.name].family or kind.name


def _widest(kinds: Counter[Type]) -> Type:
    if len(kinds) == 1:
        return next(iter(kinds))
    elements = Counter({kind.element: n for kind, n in kinds.items() if kind.element is not None})
    if elements:
        return array_type(_widest(elements))
    if kinds.keys() <= {DATE, TIMESTAMP}:
        return TIMESTAMP
    for widest in (NUMBER, DOUBLE):
        if widest in kinds:
            return widest
    scale = max(kind.scale for kind in kinds)
    whole = max(20 if kind == INTEGER else kind.precision - kind.scale for kind in kinds)
    return decimal_type(whole + scale, scale) if whole + scale <= 38 else DOUBLE
