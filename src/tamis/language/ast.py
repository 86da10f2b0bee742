"""The syntax tree of an expression: frozen, hashable nodes with source spans.

The parser makes untyped nodes (`Attribute.type` is None, literals as written); `check` returns
typed nodes of the same classes. Equality ignores spans, so two spellings of the same tree are
equal. Operands of AND, OR and other connectives are n-ary tuples, as in A-Tree §4.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tamis.text.terms import NEAR, NEAR_IN_ORDER, PHRASE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.language.comparators import Comparator
    from tamis.language.types import Type

# The path of the whole event. As the array of an `ElementTest`, it stands for all of its strings.
EVENT: Final[tuple[str, ...]] = ()
Span: TypeAlias = tuple[int, int]  # first character, one past the last
NOWHERE: Final[Span] = (0, 0)


# ── values: what predicates compare ─────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of the event; as a condition, it tests that a Boolean attribute is TRUE."""

    path: tuple[str, ...]  # `a.b` is ("a", "b"), "`a.b`" is ("a.b",)
    type: Type | None = None  # None until checked
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Derived(Attribute):
    """A value that a function computes from attributes, `lower(name)`.

    It is used like an attribute: once checked, its path is its text, marked by `DERIVED_MARK`, so
    that equal values are one column of an index.
    """

    function: str = ""  # of `value_functions.FUNCTIONS`
    arguments: tuple[Attribute | Literal, ...] = ()


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; as a condition, TRUE or FALSE."""

    value: Any  # bool, int, Decimal, float, str, date or datetime (UTC); by `type`
    type: Type
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        # True == 1 == 1.0 in Python, but they are different literals.
        if type(other) is not Literal:
            return NotImplemented
        return self.type == other.type and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.type.name, self.value))


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that an operator call binds, `?people` (Liu §2.1)."""

    name: str
    type: Type | None = None  # None until checked
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A sum, difference, product, quotient or remainder in a constraint, `2 * ?z`."""

    operator: str  # + - * / %
    left: Value
    right: Value
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Value: TypeAlias = Attribute | Literal | Variable | Arithmetic


# ── predicates: the leaves ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values compared; `<=>` is equality that treats NULL as a value."""

    operator: Comparator
    left: Value
    right: Value
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class In:
    """Tests whether the attribute's value is (not) one of the listed values."""

    operand: Attribute
    values: tuple[Literal, ...]
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Between:
    """Tests whether the operand lies (not) between two bounds, both inclusive."""

    operand: Value
    low: Value
    high: Value
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    """Tests whether the attribute is missing (present); the only test that is never undefined."""

    operand: Attribute
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Like:
    """SQL's pattern test: % matches any text, _ any single character; `escape` makes them
    literal.
    """

    operand: Attribute
    pattern: str
    escape: str = "\\"
    ignores_case: bool = False  # ILIKE
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Rlike:
    """Tests whether an RE2 regular expression matches anywhere in the attribute's text."""

    operand: Attribute
    pattern: str
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PatternList:
    """Tests the attribute's text with several patterns: LIKE ANY, LIKE ALL and similar forms.

    As in Spark, NOT belongs to each pattern: NOT LIKE ANY is true if one pattern does not match.
    """

    word: str  # LIKE, ILIKE or RLIKE
    operand: Attribute
    patterns: tuple[str, ...]
    quantifier: str = "ANY"  # or ALL
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def tests(self) -> tuple[Like | Rlike, ...]:
        """The tests of each pattern, without the negation."""
        if self.word == "RLIKE":
            return tuple(Rlike(self.operand, own, span=self.span) for own in self.patterns)
        ignores_case = self.word == "ILIKE"
        return tuple(
            Like(self.operand, own, ignores_case=ignores_case, span=self.span)
            for own in self.patterns
        )

    @property
    def needs_all(self) -> bool:
        """Whether all patterns must match for the test without its negation: NOT LIKE ANY is the
        negation of LIKE ALL.
        """
        return (self.quantifier == "ALL") != self.negated


@dataclass(frozen=True, slots=True)
class StringTest:
    """Tests whether the attribute's text starts with, ends with or contains the given text."""

    function: str  # startswith, endswith or contains
    operand: Attribute
    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ArraysOverlap:
    """Tests whether the array attribute contains one of the listed values; array_contains lists
    one.
    """

    operand: Attribute
    values: tuple[Literal, ...]
    function: str = "arrays_overlap"  # or array_contains, with one value
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Lambda:
    """A condition over one value that has a name inside it, `t -> t > 5`."""

    parameter: str
    body: Condition
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ElementTest:
    """Tests whether one element of the array attribute (exists), or each (forall), satisfies a
    condition; any_attribute() tests the strings of the EVENT.
    """

    function: str  # exists or forall
    operand: Attribute
    test: Lambda
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InNetwork:
    """The attribute's address is in one of the networks."""

    operand: Attribute
    networks: tuple[str, ...]  # as they are written: 10.0.0.0/8
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Matches:
    """Tests whether words of a query occur in analysed text (Irmak), each in any of the
    attributes.
    """

    mode: str  # all, any, phrase, at_least, near or near_in_order
    attributes: tuple[Attribute, ...]
    query: str
    # at_least: how many of the words; near: how many other words may be between them.
    k: int = 0
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def function(self) -> str:
        """The name of the function that is written."""
        if self.mode in (NEAR, NEAR_IN_ORDER):
            return self.mode
        return "matches" if self.mode == "all" else f"matches_{self.mode}"


@dataclass(frozen=True, slots=True)
class Words:
    """Tests whether analysed words are adjacent, or near each other, in the attribute's text; used
    in canonical trees.

    An empty word matches any single word. The words are in the analyser's form, not as they were
    written: when printed, they may be read as other words.
    """

    operand: Attribute
    words: tuple[str, ...]  # at least one; the first and the last are not empty
    mode: str = PHRASE  # or NEAR or NEAR_IN_ORDER, without empty words
    distance: int = 0  # near: how many other words may be between them
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """A call of an operator registered by the user (Liu)."""

    name: str
    arguments: tuple[Value, ...]
    bound: tuple[int, ...] = ()  # the places that the operator binds; known once checked
    span: Span = field(default=NOWHERE, compare=False, repr=False)


# Before the id of a subscription in a reference; no name of a definition contains it.
SUBSCRIPTION: Final = "subscription:"


@dataclass(frozen=True, slots=True)
class Reference:
    """A condition that is defined elsewhere, `@office_hours`; the checker replaces it."""

    name: str  # of the definition, or SUBSCRIPTION and the id of a subscription
    span: Span = field(default=NOWHERE, compare=False, repr=False)


# ── conditions: the inner nodes ─────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Not:
    """The negation; undefined stays undefined."""

    operand: Condition
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class And:
    """True if all of two or more operands are."""

    operands: tuple[Condition, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Or:
    """True if any of two or more operands is."""

    operands: tuple[Condition, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Xor:
    """True if an odd number of two or more operands is; undefined if any operand is."""

    operands: tuple[Condition, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Xnor:
    """True if an even number of two or more operands is (NOT XOR); undefined if any operand is."""

    operands: tuple[Condition, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """True if at least k of the operands are, 1 <= k <= n."""

    k: int
    operands: tuple[Condition, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Predicate: TypeAlias = (
    Comparison
    | In
    | Between
    | IsNull
    | Like
    | Rlike
    | PatternList
    | StringTest
    | ArraysOverlap
    | ElementTest
    | InNetwork
    | Matches
    | Words
    | OperatorCall
    | Reference
)
Condition: TypeAlias = Predicate | Attribute | Literal | Not | And | Or | Xor | Xnor | AtLeast

# As tuples, for isinstance.
ARITHMETIC: Final = frozenset("+-*/%")
VALUES: Final = (Attribute, Literal, Variable, Arithmetic)
NARY: Final = (And, Or, Xor, Xnor, AtLeast)


def make_arithmetic(
    operator: str, left: Value, right: Value, span: Span = NOWHERE
) -> Arithmetic | Derived:
    """Two values calculated with: part of a constraint if a variable occurs, else derived."""
    if isinstance(left, Attribute | Literal) and isinstance(right, Attribute | Literal):
        return Derived((), None, span, operator, (left, right))
    return Arithmetic(operator, left, right, span)


def children(condition: Condition) -> tuple[Condition, ...]:
    """The conditions directly below; none for a leaf."""
    if isinstance(condition, NARY):
        return condition.operands
    return (condition.operand,) if isinstance(condition, Not) else ()


def leaves(condition: Condition) -> Iterator[Condition]:
    """The predicates of the tree, left to right; Boolean attributes and constants included."""
    pending = [condition]
    while pending:
        node = pending.pop()
        below = children(node)
        if below:
            pending.extend(reversed(below))
        else:
            yield node


def attributes(condition: Condition) -> Iterator[Attribute]:
    """Every occurrence of an attribute in the tree, left to right; those of derived values
    included.
    """
    for tested in tested_attributes(condition):
        yield from sources(tested)


def is_event(value: Attribute) -> bool:
    """Whether this is the whole event. A derived value has no path either until it is checked."""
    return value.path == EVENT and not isinstance(value, Derived)


def sources(attribute: Attribute) -> Iterator[Attribute]:
    """The attribute itself; of a derived value, the attributes that it is computed from."""
    if not isinstance(attribute, Derived):
        yield attribute
        return
    for argument in attribute.arguments:
        if isinstance(argument, Attribute):
            yield from sources(argument)


def tested_attributes(condition: Condition) -> Iterator[Attribute]:
    """Every attribute or derived value that a leaf of the tree tests, left to right."""
    for leaf in leaves(condition):
        yield from _attributes_of(leaf)


def variables(condition: Condition) -> Iterator[Variable]:
    """Every occurrence of a variable in the tree, left to right."""
    for leaf in leaves(condition):
        yield from variables_of(leaf)


def variables_of(node: Condition | Value) -> Iterator[Variable]:
    """Every occurrence of a variable in one leaf or value, left to right."""
    match node:
        case Variable():
            yield node
        case Comparison() | Arithmetic():
            yield from variables_of(node.left)
            yield from variables_of(node.right)
        case Between():
            for value in (node.operand, node.low, node.high):
                yield from variables_of(value)
        case OperatorCall():
            for value in node.arguments:
                yield from variables_of(value)
        case _:
            pass


def _attributes_of(node: Condition | Value) -> Iterator[Attribute]:
    match node:
        case Attribute():
            yield node
        case Comparison() | Arithmetic():
            yield from _attributes_of(node.left)
            yield from _attributes_of(node.right)
        case Between():
            for value in (node.operand, node.low, node.high):
                yield from _attributes_of(value)
        case In() | IsNull() | Like() | Rlike() | StringTest() | ArraysOverlap() | Words():
            yield node.operand
        case InNetwork() | PatternList() | ElementTest():
            yield node.operand
        case Matches():
            yield from node.attributes
        case OperatorCall():
            for value in node.arguments:
                yield from _attributes_of(value)
        case _:
            pass
