"""Relaxes a condition to what an index can answer.

Every event that the condition matches also satisfies the relaxation. Often both are equal, since an
index knows which events have which words and values, and which have none; then nobody needs to look
at the events. What an index cannot answer becomes `Unknown`, or is `Loose`.

A condition matches an event only if it is TRUE. In negation normal form this depends only on which
leaves are TRUE, except below XOR. A negated leaf is TRUE if its test is not and the value is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tamis.language.ast import (
    And,
    ArraysOverlap,
    AtLeast,
    Attribute,
    Comparison,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Words,
    Xnor,
    Xor,
)
from tamis.language.comparators import Comparator
from tamis.language.types import STRING
from tamis.logic.evaluate import Missing
from tamis.search.columns import Column, find_bounds
from tamis.search.fields import Field
from tamis.text.terms import PHRASE
from tamis.text.wildcards import has_wildcard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tamis.language.ast import Condition


@dataclass(frozen=True)
class Every:
    """Every event."""


@dataclass(frozen=True)
class Never:
    """No event."""


@dataclass(frozen=True)
class Unknown:
    """Some events: an index cannot say which."""


@dataclass(frozen=True)
class HasWords:
    """The words are side by side in a field; an empty one stands for any word.

    In a relaxation they have no wildcards.
    """

    field: Field
    words: tuple[str, ...]

    @property
    def source(self) -> Source:
        """What an index must have."""
        return self.field


@dataclass(frozen=True)
class FitsWord:
    """A word with wildcards fits a word of a field, before that is stemmed."""

    source: Field  # of folded words
    pattern: str


@dataclass(frozen=True)
class IsPresent:
    """There is a text, or a value of the type."""

    source: Source


@dataclass(frozen=True)
class HasText:
    """A string is the value, or an element."""

    source: Column
    text: str


@dataclass(frozen=True)
class InRange:
    """The code of the value is in a range."""

    source: Column
    low: int
    high: int


@dataclass(frozen=True)
class SomeOf:
    """At least `k` of the operands."""

    k: int
    operands: tuple[Relaxed, ...]


@dataclass(frozen=True)
class Without:
    """Those of some events that do not satisfy a condition."""

    base: Relaxed
    less: Relaxed


@dataclass(frozen=True)
class Loose:
    """Not all events that satisfy the operand."""

    operand: Relaxed


Source = Field | Column
Leaf = HasWords | FitsWord | IsPresent | HasText | InRange
Relaxed = Every | Never | Unknown | Leaf | SomeOf | Without | Loose


def relax(node: Condition, missing: Missing = Missing.UNDEFINED) -> Relaxed:
    """The relaxation of a typed condition in negation normal form."""
    match node:
        case And() | Or() | AtLeast():
            operands = tuple(relax(own, missing) for own in node.operands)
            return SomeOf(_least(node), operands)
        case Literal():
            return Every() if node.value else Never()
        case Not(operand=(Words() | Comparison() | In()) as leaf):
            return _negate(leaf, missing)
        case Words():
            field = Field.of(node.operand)
            return Unknown() if field is None else _relax_words(field, node)
        case IsNull():
            source = Column.of(node.operand)
            if source is None:
                return Unknown()
            return IsPresent(source) if node.negated else Without(Every(), IsPresent(source))
        case Comparison() | In():
            return _relax_values(node, missing)
        case ArraysOverlap():
            return _relax_elements(node)
        case _:
            return Unknown()


def _least(node: And | Or | AtLeast) -> int:
    match node:
        case And():
            return len(node.operands)
        case Or():
            return 1
        case AtLeast():
            return node.k


def _negate(leaf: Words | Comparison | In, missing: Missing) -> Relaxed:
    source = Field.of(leaf.operand) if isinstance(leaf, Words) else _source_of(leaf)
    if source is None:
        return Unknown()
    return Without(_base(source, missing), relax(leaf, missing))


def _base(source: Source, missing: Missing) -> Relaxed:
    """The events for which the negation of a test may be TRUE."""
    return IsPresent(source) if missing is Missing.UNDEFINED else Every()


# ── words ───────────────────────────────────────────────────────────────────────────────────


def _relax_words(field: Field, node: Words) -> Relaxed:
    """The index has words at places. It does not find distances, and wildcards only in single
    words: of other tests, only the words are required.
    """
    is_whole = field.is_whole
    if node.mode == PHRASE and (is_whole or not any(map(has_wildcard, node.words))):
        return HasWords(field, node.words)
    each = tuple(_relax_word(field, word) for word in dict.fromkeys(node.words) if word)
    alone = len(node.words) == 1
    return each[0] if alone else Loose(SomeOf(len(each), each))


def _relax_word(field: Field, word: str) -> Relaxed:
    return FitsWord(field.folded(), word) if has_wildcard(word) else HasWords(field, (word,))


# ── values ──────────────────────────────────────────────────────────────────────────────────


def _source_of(node: Comparison | In) -> Column | None:
    if isinstance(node, In):
        return Column.of(node.operand)
    is_test = isinstance(node.left, Attribute) and isinstance(node.right, Literal)
    return Column.of(node.left) if is_test else None


def _relax_values(node: Comparison | In, missing: Missing) -> Relaxed:
    """Comparisons with constants are ranges of codes, or terms."""
    column = _source_of(node)
    if column is None or column.is_array:
        return Unknown()
    if isinstance(node, In):
        each = tuple(_relax_comparison(column, Comparator.EQUAL, own) for own in node.values)
        found: Relaxed = SomeOf(1, each) if each else Never()
        return Without(_base(column, missing), found) if node.negated else found
    assert isinstance(node.right, Literal)
    if node.operator is Comparator.NOT_EQUAL:
        equal = _relax_comparison(column, Comparator.EQUAL, node.right)
        return Without(_base(column, missing), equal)
    return _relax_comparison(column, node.operator, node.right)


def _relax_comparison(column: Column, operator: Comparator, literal: Literal) -> Relaxed:
    if column.has_terms:
        is_term = operator is Comparator.EQUAL and literal.type == STRING
        return HasText(column, literal.value) if is_term else Unknown()
    bounds = find_bounds(column, operator, literal)
    if bounds is None:
        return Unknown()
    found = InRange(column, *bounds)
    return Loose(found) if column.is_rounded else found


def _relax_elements(node: ArraysOverlap) -> Relaxed:
    column = Column.of(node.operand)
    if column is None or not column.is_array or any(own.type != STRING for own in node.values):
        return Unknown()
    each = tuple(HasText(column, own.value) for own in node.values)
    return SomeOf(1, each) if each else Never()


# ── what one index can answer ───────────────────────────────────────────────────────────────


class Narrowed(NamedTuple):
    """A relaxation that an index can answer: it has no `Unknown` and nothing `Loose`."""

    condition: Relaxed
    is_exact: bool  # the events that satisfy it are those that the condition matches

    @property
    def is_useless(self) -> bool:
        """Whether every event must be looked at."""
        return isinstance(self.condition, Every) and not self.is_exact


def narrow(node: Relaxed, answer: Callable[[Leaf], Relaxed]) -> Narrowed:
    """A relaxation for an index that answers leaves: with `Unknown` if it does not have them."""
    match node:
        case Unknown():
            return Narrowed(Every(), False)
        case Every() | Never():
            return Narrowed(node, True)
        case Loose(operand=operand):
            return Narrowed(narrow(operand, answer).condition, False)
        case SomeOf(k=k, operands=operands):
            each = [narrow(own, answer) for own in operands]
            found = _some_of(k, [own.condition for own in each])
            return Narrowed(found, all(own.is_exact for own in each))
        case Without(base=base, less=less):
            kept, removed = narrow(base, answer), narrow(less, answer)
            if not removed.is_exact or isinstance(removed.condition, Never):
                return Narrowed(kept.condition, kept.is_exact and removed.is_exact)
            if isinstance(removed.condition, Every) or isinstance(kept.condition, Never):
                return Narrowed(Never(), True)
            return Narrowed(Without(kept.condition, removed.condition), kept.is_exact)
        case _:
            known = answer(node)
            return Narrowed(node, True) if known == node else narrow(known, answer)


def _some_of(k: int, operands: Sequence[Relaxed]) -> Relaxed:
    """At least `k` of the operands, without those that are the same for all events."""
    left = k - sum(isinstance(own, Every) for own in operands)
    kept = tuple(own for own in operands if not isinstance(own, Every | Never))
    if left <= 0:
        return Every()
    if left > len(kept):
        return Never()
    return kept[0] if len(kept) == 1 else SomeOf(left, kept)


def list_sources(relaxed: Relaxed) -> Iterator[Source]:
    """What an index must have to answer a relaxation."""
    match relaxed:
        case Every() | Never() | Unknown():
            return
        case SomeOf():
            for own in relaxed.operands:
                yield from list_sources(own)
        case Without():
            yield from list_sources(relaxed.base)
            yield from list_sources(relaxed.less)
        case Loose():
            yield from list_sources(relaxed.operand)
        case _:
            yield relaxed.source


def list_words(node: Condition) -> Iterator[HasWords]:
    """The tests of words that are not negated, in a condition in negation normal form: what is
    shown as found, and what makes an event relevant.
    """
    match node:
        case And() | Or() | AtLeast() | Xor() | Xnor():
            for own in node.operands:
                yield from list_words(own)
        case Words():
            field = Field.of(node.operand)
            if field is not None and node.mode == PHRASE:
                yield HasWords(field, node.words)
            elif field is not None:
                yield from (HasWords(field, (word,)) for word in node.words)
        case Not():
            return


def list_plain(wanted: HasWords) -> Iterator[HasWords]:
    """The test of words itself, or the single words of one with wildcards that have none."""
    if wanted.field.is_whole or not any(map(has_wildcard, wanted.words)):
        yield wanted
        return
    for word in wanted.words:
        if word and not has_wildcard(word):
            yield HasWords(wanted.field, (word,))
