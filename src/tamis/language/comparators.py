"""The comparison operators, and what each of them asks of the order of two values.

To add one, add a member: mypy then reports every `match` that has no case for it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, assert_never

from tamis.errors import TamisError


class IndexTest(Enum):
    """What an index can test about two values; each comparison is one of these or its negation."""

    EQUAL = "equal"
    BELOW = "below"
    AT_MOST = "at most"


class SignedTest(NamedTuple):
    """A test of an index, and whether the comparison is its negation."""

    test: IndexTest
    is_negated: bool

    @property
    def is_upper(self) -> bool:
        """Whether it bounds values from above; equality bounds neither way and raises."""
        match self.test:
            case IndexTest.EQUAL:
                raise TamisError("equality is not a bound")
            case IndexTest.BELOW | IndexTest.AT_MOST:
                return not self.is_negated
            case _:
                assert_never(self.test)

    @property
    def is_closed(self) -> bool:
        """Whether two equal values satisfy it."""
        return (self.test is not IndexTest.BELOW) != self.is_negated


class Comparator(Enum):
    """A comparison operator; its value is how it is written."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="
    SAME = "<=>"  # equality that treats NULL as a value

    def __str__(self) -> str:
        return str(self.value)

    # Members are compared by identity; Enum's own hash of the name is many times slower.
    __hash__ = object.__hash__

    @property
    def code(self) -> int:
        """Its number in kernels."""
        return _CODES[self]

    @property
    def positive(self) -> Comparator:
        """If this comparison negates another one, the other one; otherwise itself.

        The difference matters if a value is missing: then a negation may hold.
        """
        match self:
            case Comparator.NOT_EQUAL:
                return Comparator.EQUAL
            case Comparator.EQUAL | Comparator.SAME | Comparator.BELOW | Comparator.AT_MOST:
                return self
            case Comparator.ABOVE | Comparator.AT_LEAST:
                return self
            case _:
                assert_never(self)

    @property
    def is_equality(self) -> bool:
        """Whether it asks only if two values are equal, not which comes first."""
        return self.mirrored is self

    def holds(self, order: int) -> bool:
        """Whether it is true of two values; `order` is negative where the left one comes first."""
        match self:
            case Comparator.EQUAL | Comparator.SAME:
                return order == 0
            case Comparator.NOT_EQUAL:
                return order != 0
            case Comparator.BELOW:
                return order < 0
            case Comparator.AT_MOST:
                return order <= 0
            case Comparator.ABOVE:
                return order > 0
            case Comparator.AT_LEAST:
                return order >= 0
            case _:
                assert_never(self)

    @property
    def mirrored(self) -> Comparator:
        """The comparison with its sides exchanged: 5 < a is a > 5."""
        match self:
            case Comparator.EQUAL | Comparator.NOT_EQUAL | Comparator.SAME:
                return self
            case Comparator.BELOW:
                return Comparator.ABOVE
            case Comparator.AT_MOST:
                return Comparator.AT_LEAST
            case Comparator.ABOVE:
                return Comparator.BELOW
            case Comparator.AT_LEAST:
                return Comparator.AT_MOST
            case _:
                assert_never(self)

    @property
    def inverse(self) -> Comparator:
        """The comparison that is true where this one is false."""
        test, is_negated = self.signed_test
        return compare_by(test, is_negated=not is_negated)

    @property
    def signed_test(self) -> SignedTest:
        """The test of an index; a canonical tree has other leaves instead of `<=>`."""
        match self:
            case Comparator.EQUAL:
                return SignedTest(IndexTest.EQUAL, False)
            case Comparator.NOT_EQUAL:
                return SignedTest(IndexTest.EQUAL, True)
            case Comparator.BELOW:
                return SignedTest(IndexTest.BELOW, False)
            case Comparator.AT_LEAST:
                return SignedTest(IndexTest.BELOW, True)
            case Comparator.AT_MOST:
                return SignedTest(IndexTest.AT_MOST, False)
            case Comparator.ABOVE:
                return SignedTest(IndexTest.AT_MOST, True)
            case Comparator.SAME:
                raise TamisError(f"no single test answers {self}; make the tree canonical first")
            case _:
                assert_never(self)


# Kernels use these numbers.
_CODES: Final = {comparator: code for code, comparator in enumerate(Comparator)}
# These two also compare conditions: XNOR and XOR.
EQUALITIES: Final = (Comparator.EQUAL, Comparator.NOT_EQUAL)
COMPARATORS: Final = {comparator.value: comparator for comparator in Comparator}


def compare_by(test: IndexTest, *, is_negated: bool = False) -> Comparator:
    """The comparison that a test of an index decides, or the negation of it."""
    match test:
        case IndexTest.EQUAL:
            return Comparator.NOT_EQUAL if is_negated else Comparator.EQUAL
        case IndexTest.BELOW:
            return Comparator.AT_LEAST if is_negated else Comparator.BELOW
        case IndexTest.AT_MOST:
            return Comparator.ABOVE if is_negated else Comparator.AT_MOST
        case _:
            assert_never(test)


def bound_by(*, is_upper: bool, is_closed: bool) -> Comparator:
    """The comparison that bounds values from above or from below, the bound included or not."""
    test = IndexTest.AT_MOST if is_upper == is_closed else IndexTest.BELOW
    return compare_by(test, is_negated=not is_upper)
