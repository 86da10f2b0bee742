"""A batch of events by attribute: typed values in their carriers, and the rejects."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.events.rejects import Refused, Rejects
from tamis.index.carriers import OTHERS, TEXTS, carrier_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.events.attributes import AttributeTable
    from tamis.kernels.arrays import Int32, UInt8
    from tamis.language.types import Type


class Entries(NamedTuple):
    """Values of one carrier: event `rows[i]` has `values[i]` for `attributes[i]`.

    They are in any order; an attribute of an array type has an entry for each element that is not
    NULL.
    """

    rows: Int32
    attributes: Int32
    values: Any  # see `carriers`


class Marks(NamedTuple):
    """The arrays that are present, empty or not, and whether an element is NULL."""

    rows: Int32
    attributes: Int32
    has_null: UInt8


class EventValues(NamedTuple):
    """A batch of events: only typed values of known attributes."""

    n_rows: int
    entries: dict[str, Entries]  # by carrier; a carrier without values is absent
    marks: Marks
    rejects: Rejects


class Converted(NamedTuple):
    """Values of one scalar type in their carrier; the values that are not good are undefined."""

    values: Any
    is_good: np.ndarray | None = None  # bool[n]; None: all are


class ConvertedArrays(NamedTuple):
    """Values of one array type: their elements concatenated, without NULL."""

    values: Any
    lengths: np.ndarray  # int[n], number of known elements of each; 0 if not good
    has_null: np.ndarray  # bool[n]
    is_good: np.ndarray | None = None


class Given(NamedTuple):
    """The origin of values, to describe the errors of those that are not good."""

    value_at: Callable[[int], Any]
    is_wrong_type: Callable[[np.ndarray], np.ndarray]  # of the values at some positions
    explain: Callable[[Any], str]


class Piece(NamedTuple):
    """Some values of one type, with their origin."""

    rows: np.ndarray
    attributes: Int32 | int  # one for all, or one for each
    converted: Converted | ConvertedArrays
    give: Callable[[], Given]


class Collector:
    """Collects values attribute by attribute or type by type, and builds `EventValues`."""

    def __init__(self, table: AttributeTable, rejects: Rejects) -> None:
        self.table = table
        self.rejects = rejects
        self._pieces: dict[str, list[tuple[Any, Any, Any]]] = defaultdict(list)
        self._marks: list[tuple[Any, Any, Any]] = []

    def add(
        self,
        type_: Type,
        rows: np.ndarray,
        attributes: Int32 | int,  # one for all, or one for each
        converted: Converted | ConvertedArrays,
        give: Callable[[], Given],
    ) -> None:
        """Add the good values of a scalar or an array type, and reject the others."""
        self.add_pieces(type_, [Piece(rows, attributes, converted, give)])

    def add_pieces(self, type_: Type, pieces: Iterable[Piece]) -> None:
        """Add values of one type from several origins, and reject the others in their order."""
        refused = [own for own in (self._keep(type_, piece) for piece in pieces) if own]
        if refused:
            self.rejects.add_values(_by_row(refused), type_, self.table.paths)

    def _keep(self, type_: Type, piece: Piece) -> Refused | None:
        """Add the good values; return the others."""
        rows, attributes, converted, give = piece
        is_good, values, refused = converted.is_good, converted.values, None
        if is_good is not None and not is_good.all():
            refused = _refuse(rows, attributes, np.flatnonzero(~is_good), give())
        else:
            is_good = None
        if isinstance(converted, ConvertedArrays):
            self._mark(rows, attributes, converted.has_null, is_good)
            rows = np.repeat(rows, converted.lengths)
            if not isinstance(attributes, int):
                attributes = np.repeat(attributes, converted.lengths)
        elif is_good is not None:
            rows = rows[is_good]
            attributes = attributes if isinstance(attributes, int) else attributes[is_good]
            values = _filter(values, is_good)
        if len(rows):
            self._pieces[carrier_of(type_)].append((rows, attributes, values))
        return refused

    def finish(self, n_rows: int) -> EventValues:
        """All values that were added."""
        entries = {carrier: _join(carrier, self._pieces[carrier]) for carrier in self._pieces}
        return EventValues(n_rows, entries, _join_marks(self._marks), self.rejects)

    def _mark(
        self,
        rows: np.ndarray,
        attributes: Int32 | int,
        has_null: np.ndarray,
        is_good: np.ndarray | None,
    ) -> None:
        spread = _spread(attributes, len(rows))
        if is_good is not None:
            rows, spread, has_null = rows[is_good], spread[is_good], has_null[is_good]
        self._marks.append((rows, spread, has_null))


def _refuse(rows: np.ndarray, attributes: Int32 | int, places: np.ndarray, given: Given) -> Refused:
    return Refused(
        rows[places],
        _spread(attributes, len(rows))[places],
        given.is_wrong_type(places),
        lambda at: given.value_at(int(places[at])),
        given.explain,
    )


def _by_row(refused: list[Refused]) -> Refused:
    """Refused values of one type as one record, by row."""
    if len(refused) == 1:
        return refused[0]
    rows, attributes, are_wrong, _, _ = zip(*refused, strict=True)
    ends = np.cumsum([len(own) for own in rows])
    joined = np.concatenate(rows)
    order = np.argsort(joined, kind="stable")

    def value_at(place: int) -> Any:
        number = int(np.searchsorted(ends, order[place], side="right"))
        return refused[number].value_at(int(order[place] - ends[number] + len(rows[number])))

    return Refused(
        joined[order],
        np.concatenate(attributes)[order],
        np.concatenate(are_wrong)[order],
        value_at,
        refused[0].explain,
    )


def _spread(attributes: Int32 | int, length: int) -> Int32:
    if isinstance(attributes, int):
        return np.full(length, attributes, dtype=np.int32)
    return attributes


def _filter(values: Any, is_good: np.ndarray) -> Any:
    if isinstance(values, pa.Array):
        return values.filter(pa.array(is_good))
    return None if values is None else values[is_good]


def _join(carrier: str, pieces: list[tuple[Any, Any, Any]]) -> Entries:
    rows, attributes, values = zip(*pieces, strict=True)
    lengths = [len(own) for own in rows]
    if all(isinstance(attribute, int) for attribute in attributes):
        numbers = np.repeat(np.array(attributes, dtype=np.int32), lengths)
    else:
        numbers = np.concatenate([_spread(a, n) for a, n in zip(attributes, lengths, strict=True)])
    joined: Any = None
    if carrier == TEXTS:
        joined = pa.concat_arrays(values)
    elif carrier != OTHERS:
        joined = np.concatenate(values)
    return Entries(np.concatenate(rows).astype(np.int32, copy=False), numbers, joined)


def _join_marks(pieces: list[tuple[Any, Any, Any]]) -> Marks:
    if not pieces:
        return Marks(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint8))
    rows, attributes, has_null = map(np.concatenate, zip(*pieces, strict=True))
    return Marks(rows.astype(np.int32), attributes.astype(np.int32), has_null.astype(np.uint8))


def group_elements(
    elements: Converted, parents: np.ndarray, has_null: np.ndarray, is_good: np.ndarray
) -> ConvertedArrays:
    """Arrays from their known elements; one invalid element makes its whole array invalid."""
    if elements.is_good is not None:
        is_good = is_good.copy()
        is_good[parents[~elements.is_good]] = False
    values = elements.values
    if not is_good.all():
        is_kept = is_good[parents]
        parents, values = parents[is_kept], _filter(values, is_kept)
    lengths = np.bincount(parents, minlength=len(is_good))
    return ConvertedArrays(values, lengths, has_null, is_good)
