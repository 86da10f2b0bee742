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


class Oddities:
    """Repeated keys of JSON events, and texts with surrounding blanks."""

    __slots__ = ("n_repeated", "padded", "repeated")

    def __init__(self) -> None:
        self.n_repeated = 0
        self.repeated: tuple[int, str] | None = None  # the first row and its key
        self.padded: dict[str, Padded] = {}  # by attribute

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

    def merge(self, other: Oddities) -> None:
        """Add those of another batch."""
        self.n_repeated += other.n_repeated
        self.repeated = self.repeated or other.repeated
        for attribute, found in other.padded.items():
            self.add_padded(attribute, found)

    def numbered(self, numbers: Sequence[int]) -> Oddities:
        """The same with other numbers for rows, such as those of their file."""
        other = Oddities()
        other.n_repeated = self.n_repeated
        if self.repeated is not None:
            other.repeated = (numbers[self.repeated[0]], self.repeated[1])
        for attribute, found in self.padded.items():
            other.padded[attribute] = found._replace(row=numbers[found.row])
        return other

    def describe(self, unit: str = "row") -> list[str]:
        """One sentence about each kind, with a remedy."""
        notes = [_describe_padded(self.padded, unit)] if self.padded else []
        if self.repeated is not None:
            notes.append(_describe_repeated(self.n_repeated, *self.repeated, unit))
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


def _describe_repeated(n_events: int, row: int, key: str, unit: str) -> str:
    what = "1 event has" if n_events == 1 else f"at least {n_events:,} events have"
    return (
        f'{what} a key twice, such as "{key}" in {unit} {row}; the last value counts. '
        "Write each key once"
    )
