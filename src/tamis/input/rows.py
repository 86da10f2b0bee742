"""Rows of a source in batches, in the layout of their format, columnar for columnar formats.

An unreadable row is a `RowError` in its place, and the rows after it are still read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from tamis.errors import InputError, RowError
from tamis.input.arrivals import LINGER_SECONDS, batched_as_they_come
from tamis.input.batches import batched

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Container,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from tamis.events.attributes import AttributeTable
    from tamis.events.entries import EventValues
    from tamis.events.rejects import Rejects
    from tamis.input.batches import Item
    from tamis.input.sources import Stream
    from tamis.language.schema import Path
    from tamis.language.types import Type

Values: TypeAlias = dict[str, Any]
Types: TypeAlias = "Mapping[Path, Type]"

BATCH_ROWS: Final = 8192  # sixteen blocks of the batch kernel


class CutOffError(RowError):
    """The file cannot be read from this row on: the start of the next row is unknown."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            "bad-json",
            f"the array cannot be read from here on: {reason}",
            hint="JSON lines have one object on each line, without brackets and commas around them",
        )


class UnreadableError(InputError):
    """Stands for a value that Python cannot represent; it is not a value of any type."""


class Wanted(NamedTuple):
    """What to read from a source, and how."""

    columns: Container[str] | None = None  # names at the top of events; None for all
    n_rows: int = BATCH_ROWS  # of a batch, at most
    expect: Callable[[list[str]], None] | None = None  # called with the names of a table's columns
    hint: str | None = None  # for rows of CSV that have too many fields
    as_they_come: bool = False  # rows of a pipe are returned while it waits for more
    linger: float = LINGER_SECONDS  # how long a batch of such rows waits to be filled
    in_blocks: bool = False  # texts of JSON lines are spans of large blocks

    def choose(self, names: list[str]) -> list[str] | None:
        """The columns to read among the existing ones; None for all."""
        if self.expect is not None:
            self.expect(names)
        return None if self.columns is None else [own for own in names if own in self.columns]

    def gather(
        self, stream: Stream, items: Iterable[Item], weigh: Callable[[Item], int]
    ) -> Iterator[list[Item]]:
        """The rows of a stream in batches."""
        if stream.is_pipe and self.as_they_come:
            return batched_as_they_come(items, self.n_rows, weigh, self.linger)
        return batched(items, self.n_rows, weigh)


@dataclass(frozen=True, slots=True)
class Columns:
    """The names (columns or keys) of the two parts of a subscription."""

    subscription_id: str | None = None  # None: "subscription_id", else "id"
    expression: str = "expression"

    def find(self, names: Iterable[str]) -> tuple[str | None, str | None]:
        """The names as they are among `names`; None for a missing one."""
        known = set(names)
        wanted = [self.subscription_id] if self.subscription_id else ["subscription_id", "id"]
        id_name = next((name for name in wanted if name in known), None)
        return id_name, self.expression if self.expression in known else None

    def expect(self, names: list[str], name: str, what: str = "column") -> None:
        """Raise an `InputError` for a table without the columns of a subscription."""
        found = self.find(names)
        if None in found:
            raise InputError(
                f"{name} has no {what} {self.describe_missing(found)}; "
                f"its {what}s: {', '.join(names) or 'none'}"
            )

    def describe_missing(self, found: tuple[str | None, str | None]) -> str:
        """The names that `find` did not find, for messages."""
        missing = []
        if found[0] is None:
            wanted = self.subscription_id
            missing.append(f'"{wanted}"' if wanted else '"subscription_id" (or "id")')
        if found[1] is None:
            missing.append(f'"{self.expression}"')
        return " and no ".join(missing)


class Rows(ABC):
    """Some rows of a source."""

    numbers: Sequence[int] = ()  # of each row in its source, from 1; blank lines do not count
    lines: Sequence[int] | None = None  # line of each row in its file, from 1

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    @abstractmethod
    def read(self, table: AttributeTable, rejects: Rejects) -> EventValues:
        """The attributes of the events, typed."""

    @abstractmethod
    def hold(self, types: Types) -> Any:
        """The events in the form of `events.read_events`; `types` are those of texts in CSV."""

    @abstractmethod
    def to_mappings(self, types: Types, names: Collection[str] | None = None) -> list[Any]:
        """Each event as a mapping, or a `RowError`; `names` are the needed attributes."""

    @abstractmethod
    def to_records(self, columns: Columns) -> Iterable[Values | RowError]:
        """Each row as the values of a subscription by name, or a `RowError`."""

    @abstractmethod
    def take(self, places: Sequence[int]) -> Rows:
        """The rows at some positions, without their numbers."""

    def without(self, places: Container[int]) -> Rows:
        """All other rows."""
        kept = [at for at in range(len(self)) if at not in places]
        taken = self.take(kept)
        taken.numbers = [self.numbers[at] for at in kept]
        taken.lines = None if self.lines is None else [self.lines[at] for at in kept]
        return taken


class ObjectRows(Rows):
    """Events as Python objects: mappings, JSON texts, or errors in their place."""

    def __init__(self, events: Sequence[Any]) -> None:
        self.events = events

    def __len__(self) -> int:
        return len(self.events)

    def read(self, table: AttributeTable, rejects: Rejects) -> EventValues:
        from tamis.events.read import read_events

        return read_events(self.events, table, rejects)

    def hold(self, types: Types) -> Any:
        return self.events

    def to_mappings(self, types: Types, names: Collection[str] | None = None) -> list[Any]:
        return list(self.events)

    def to_records(self, columns: Columns) -> Iterable[Values | RowError]:
        return self.events

    def take(self, places: Sequence[int]) -> ObjectRows:
        return ObjectRows([self.events[at] for at in places])
