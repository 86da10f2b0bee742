"""Encodes events: the codes of each column of an index for each event, as flat arrays.

An index may have several parts. Events are read once, for the attributes of all parts, and then
encoded for each part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.events.attributes import AttributeTable
from tamis.events.derive import derive_values
from tamis.events.part_encoder import PartEncoder
from tamis.events.read import hold_events, read_events
from tamis.events.rejects import Rejects
from tamis.events.single_reader import EventReader, Needs
from tamis.language.names import print_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.events.elements import MakeMatcher
    from tamis.events.entries import EventValues
    from tamis.events.event_arrays import EventArrays
    from tamis.events.part_coder import PartCoder
    from tamis.index.columns import Column
    from tamis.index.contents import Contents
    from tamis.kernels.arrays import Int32, Int64


class EncodedEvents(NamedTuple):
    """An encoded batch of events, and its rejects."""

    n_rows: int
    parts: tuple[EventArrays, ...]  # in the codes of each part of the index
    rejects: Rejects
    # Of the parts they are encoded for: the codes are valid for these parts only.
    columns: tuple[Sequence[Column], ...]
    source: Any = None  # the original events, and the column that contains them, for operators
    column: str | None = None
    has_values: np.ndarray | None = None  # bool[n_attributes]: some event has a value of it

    @property
    def arrays(self) -> EventArrays:
        """The codes of an index that has one part."""
        (arrays,) = self.parts
        return arrays

    @property
    def bad_rows(self) -> Int64:
        """Rows without a valid event, ascending."""
        return np.array(sorted(self.rejects.bad_rows), dtype=np.int64)


class _Reused(NamedTuple):
    """The encoder of a part, and the numbers in its table of the attributes of all parts."""

    encoder: PartEncoder
    table: AttributeTable  # of all parts
    numbers: Int32 | None  # None if they are the same
    coder: PartCoder  # of single events


class EventEncoder:
    """Encodes events for the parts of an index. Immutable: threads share it."""

    def __init__(
        self,
        *parts: Contents,
        like: EventEncoder | None = None,
        match_elements: MakeMatcher | None = None,
    ) -> None:
        """`like` is an encoder for some of the same parts: what it has made for them is reused.
        `match_elements` makes what matches the elements of arrays; parts with lambdas need it.
        """
        self._match_elements = match_elements
        known: dict[int, _Reused] = {} if like is None else like._reused
        more = [part.columns for part in parts if id(part.columns) not in known]
        # The attributes that are needed; attributes of parts that are gone may be among them.
        self.table: AttributeTable = (
            like.table
            if like is not None and all(map(like.table.covers, more))
            else AttributeTable.of(column for part in parts for column in part.columns)
        )
        self.columns = tuple(part.columns for part in parts)
        made = [self._make(part, known.get(id(part.columns))) for part in parts]
        # The columns are referenced here, so no other object gets their addresses.
        self._reused: dict[int, _Reused] = dict(zip(map(id, self.columns), made, strict=True))
        self.parts = tuple(own.encoder for own in made)
        self.coders = tuple(own.coder for own in made)
        self._numbers = tuple(own.numbers for own in made)
        self.reader: EventReader = self._make_reader(like)

    def _make(self, contents: Contents, known: _Reused | None) -> _Reused:
        """The encoder of a part, a known one if the types of its attributes are the same."""
        if known is not None and known.table is self.table:
            return known
        by_path = self.table.by_path
        if known is not None and all(
            by_path[path] == type_ for path, type_ in known.encoder.table.by_path.items()
        ):
            encoder = known.encoder
        else:
            encoder = PartEncoder(contents, self.table, self._match_elements)
        numbers = self.table.numbers_in(encoder.table)
        return _Reused(encoder, self.table, numbers, encoder.make_coder(self.table.forms, numbers))

    def encode(
        self, source: Any, *, column: str | None = None, strict: bool = False
    ) -> EncodedEvents:
        """A batch of events; see `read_events` for the allowed `source` and `column`."""
        source = hold_events(source)
        values = read_events(source, self.table, Rejects(strict=strict), column=column)
        return self.encode_read(values)._replace(source=source, column=column)

    def _make_reader(self, like: EventEncoder | None) -> EventReader:
        """The reader of single events, a known one if it reads the same."""
        used, kept, folded = set[int](), set[int](), set[int]()
        for part, numbers in zip(self.parts, self._numbers, strict=True):
            of_own = _invert(numbers, len(part.table))
            used.update(of_own)
            kept.update(of_own[own] for own in part.kept)
            folded.update(of_own[own] for own in part.folded)
        needs = Needs(frozenset(used), frozenset(kept), frozenset(folded))
        if like is not None and like.table is self.table and like.reader.needs == needs:
            return like.reader
        return EventReader(self.table, needs)

    def encode_event(
        self, event: Mapping[str, Any], rejects: Rejects | None = None, part: int = 0
    ) -> EventArrays:
        """One event, a mapping, as a batch of one row in the codes of one part; rejects are added
        to `rejects`.
        """
        buffer = self.reader.read(event, rejects)
        arrays = self.coders[part].encode(buffer)
        self.reader.give_back(buffer)
        return arrays

    def encode_read(self, values: EventValues) -> EncodedEvents:
        """A batch of events that have been read."""
        values = derive_values(values, self.table)
        own = [_renumber(values, numbers) for numbers in self._numbers]
        arrays = tuple(part.encode_values(its) for part, its in zip(self.parts, own, strict=True))
        self._report_padded(own, values.rejects)
        encoded = EncodedEvents(values.n_rows, arrays, values.rejects, self.columns)
        return encoded._replace(has_values=_find_values(values, len(self.table)))

    def _report_padded(self, values: Sequence[EventValues], rejects: Rejects) -> None:
        # Parts that test the same attribute may find the same texts.
        padded = {
            path: found
            for part, own in zip(self.parts, values, strict=True)
            for path, found in part.find_padded(own)
        }
        for path, found in padded.items():
            in_source = found._replace(row=rejects.first_row + found.row)
            rejects.oddities.add_padded(print_path(path), in_source)


def _invert(numbers: Int32 | None, n_own: int) -> list[int]:
    """The attribute among all of each attribute of a part."""
    if numbers is None:
        return list(range(n_own))
    of_own = np.full(n_own + 1, -1)
    of_own[numbers] = np.arange(len(numbers))
    found: list[int] = of_own[:n_own].tolist()
    return found


def _renumber(values: EventValues, numbers: Int32 | None) -> EventValues:
    """The values by the attributes of one part; None if it has the same numbers."""
    if numbers is None:
        return values
    entries = {
        carrier: own._replace(attributes=numbers[own.attributes])
        for carrier, own in values.entries.items()
    }
    marks = values.marks._replace(attributes=numbers[values.marks.attributes])
    return values._replace(entries=entries, marks=marks)


def _find_values(values: EventValues, n_attributes: int) -> np.ndarray:
    has_values = np.zeros(n_attributes, dtype=np.bool_)
    for entries in values.entries.values():
        has_values[entries.attributes] = True
    has_values[values.marks.attributes] = True
    return has_values
