"""Suspicious values of events that are read nevertheless: counted, with the first as an example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN: Final = 3


class Padded(NamedTuple):
    """Texts of one attribute that begin or end with a blank, unlike a constant."""

    n_padded: int  # with blanks, of the values that were checked
    n_values: int
    row: int  # the first that would satisfy a test without its blanks
    value: str


class Foreign(NamedTuple):
    """Values of one attribute that are read from another kind, as its schema allows."""

    n_values: int
    row: int  # of the first
    value: str  # as shown to people
    type: str  # of the attribute


class Oddities:
    """Repeated keys of JSON events, texts with surrounding blanks, values of other kinds, and
    values that are read as arrays of one element.
    """

    __slots__ = ("foreign", "n_repeated", "ones", "padded", "repeated")

    def __init__(self) -> None:
        self.n_repeated = 0
        self.repeated: tuple[int, str] | None = None  # the first row and its key
        self.padded: dict[str, Padded] = {}  # by attribute
        self.foreign: dict[str, Foreign] = {}  # by attribute
        self.ones: dict[str, tuple[int, int]] = {}  # by attribute: the first row, and how many

    def add_repeated(self, row: int, key: str) -> None:
        """Count an event that has a key twice."""
        self.n_repeated += 1
        self.repeated = self.repeated or (row, key)

    def add_padded(self, attribute: str, found: Padded) -> None:
        """Count texts with surrounding blanks."""
        before = self.padded.get(attribute)
        if before is not None:
            n_padded, n_values = before.n_padded + found.n_padded, before.n_values + found.n_values
            found = before._replace(n_padded=n_padded, n_values=n_values)
        self.padded[attribute] = found

    def add_foreign(self, attribute: str, found: Foreign) -> None:
        """Count values that are read from another kind."""
        before = self.foreign.get(attribute)
        if before is not None:
            first = min(before, found, key=lambda own: own.row)
            found = first._replace(n_values=before.n_values + found.n_values)
        self.foreign[attribute] = found

    def add_ones(self, attribute: str, row: int, n_values: int) -> None:
        """Count values that are read as arrays of one element."""
        first_row, n_before = self.ones.get(attribute, (row, 0))
        self.ones[attribute] = first_row, n_before + n_values

    def merge(self, other: Oddities) -> None:
        """Add those of another batch."""
        self.n_repeated += other.n_repeated
        self.repeated = self.repeated or other.repeated
        for attribute, found in other.padded.items():
            self.add_padded(attribute, found)
        for attribute, foreign in other.foreign.items():
            self.add_foreign(attribute, foreign)
        for attribute, ones in other.ones.items():
            self.add_ones(attribute, *ones)

    def numbered(self, numbers: Sequence[int]) -> Oddities:
        """The same with other numbers for rows, such as those of their file."""
        other = Oddities()
        other.n_repeated = self.n_repeated
        if self.repeated is not None:
            other.repeated = (numbers[self.repeated[0]], self.repeated[1])
        for attribute, found in self.padded.items():
            other.padded[attribute] = found._replace(row=numbers[found.row])
        for attribute, foreign in self.foreign.items():
            other.foreign[attribute] = foreign._replace(row=numbers[foreign.row])
        for attribute, (row, n_values) in self.ones.items():
            other.ones[attribute] = numbers[row], n_values
        return other

    def describe(self, unit: str = "row") -> list[str]:
        """One sentence about each kind, with a remedy."""
        notes = [_describe_padded(self.padded, unit)] if self.padded else []
        if self.repeated is not None:
            notes.append(describe_repeated(self.n_repeated, *self.repeated, unit))
        if self.foreign:
            notes.append(_describe_foreign(self.foreign, unit))
        if self.ones:
            notes.append(_describe_ones(self.ones, unit))
        return notes


def _describe_padded(padded: dict[str, Padded], unit: str) -> str:
    n = len(padded)
    what = "an attribute have" if n == 1 else f"{n:,} attributes have"
    shown = "; ".join(
        f"{attribute} ({found.n_padded:,} of {found.n_values:,} values; {unit} {found.row}: "
        f"{found.value!r}, which is not {found.value.strip()!r})"
        for attribute, found in list(padded.items())[:SHOWN]
    )
    return (
        f"values of {what} a blank before or after them, so that tests on them fail: "
        f"{shown}{'; …' * (n > SHOWN)}. Remove the blanks from the events, unless they are intended"
    )


def _describe_foreign(foreign: dict[str, Foreign], unit: str) -> str:
    n = sum(found.n_values for found in foreign.values())
    what = "1 value was" if n == 1 else f"{n:,} values were"
    shown = "; ".join(
        f"{attribute} ({found.n_values:,} as {found.type}; {unit} {found.row}: {found.value})"
        for attribute, found in list(foreign.items())[:SHOWN]
    )
    return (
        f"{what} read from another kind of value, as the schema allows: {shown}"
        f"{'; …' * (len(foreign) > SHOWN)}. To reject such values, declare the type without FROM"
    )


def _describe_ones(ones: dict[str, tuple[int, int]], unit: str) -> str:
    shown = "; ".join(
        f"{attribute} ({n_values:,} values, the first in {unit} {row})"
        for attribute, (row, n_values) in list(ones.items())[:SHOWN]
    )
    return (
        "values that are not arrays count as arrays of one element, as the schema says: "
        f"{shown}{'; …' * (len(ones) > SHOWN)}"
    )


def describe_repeated(n_events: int, row: int, key: str, unit: str = "row") -> str:
    """One sentence about events that have a key twice."""
    what = "1 event has" if n_events == 1 else f"at least {n_events:,} events have"
    return (
        f'{what} a key twice, such as "{key}" in {unit} {row}; the last value counts. '
        "Write each key once"
    )
