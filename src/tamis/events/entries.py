"""A batch of events by attribute: typed values in their carriers, and the rejects."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.events.objects import Objects, join_objects
from tamis.events.oddities import Foreign
from tamis.events.rejects import Refused, Rejects, show
from tamis.index.carriers import OBJECTS, OTHERS, TEXTS, carrier_of
from tamis.language.names import print_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tamis.events.attributes import AttributeTable
    from tamis.kernels.arrays import Int32, Int64, UInt8
    from tamis.language.types import Type


class Entries(NamedTuple):
    """Values of one carrier: event `rows[i]` has `values[i]` for `attributes[i]`.

    They are in any order; an attribute of an array type has an entry for each element that is not
    NULL.
    """

    rows: Int32
    attributes: Int32
    values: Any  # see `carriers`
    # The NULLs before an element in its array, 0 for other values; None if there are none at all.
    nulls_before: Int32 | None = None


class Marks(NamedTuple):
    """The arrays that are present, empty or not, whether an element is NULL, and their sizes."""

    rows: Int32
    attributes: Int32
    has_null: UInt8
    sizes: Int64  # numbers of elements, NULLs included


NO_MARKS: Final = Marks(
    np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.int64)
)


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
    is_foreign: np.ndarray | None = None  # bool[n], read from another kind; None: none is


class Nulls(NamedTuple):
    """The elements of arrays that are NULL."""

    counts: np.ndarray  # int[n_arrays]
    before: Int32  # of each known element, the number of NULLs before it in its array


class ConvertedArrays(NamedTuple):
    """Values of one array type: their elements concatenated, without NULL."""

    values: Any
    lengths: np.ndarray  # int[n], number of known elements of each; 0 if not good
    nulls: Nulls | None  # None if no element is NULL
    is_good: np.ndarray | None = None
    is_foreign: np.ndarray | None = None  # an element of them is
    is_one: np.ndarray | None = None  # bool[n]: a value that counts as an array of one; None: none


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
        self._pieces: dict[str, list[tuple[Any, Any, Any, Any]]] = defaultdict(list)
        self._marks: list[tuple[Any, Any, Any, Any]] = []

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
        nulls_before = None
        if converted.is_foreign is not None:
            self._count_foreign(type_, piece, converted.is_foreign)
        if is_good is not None and not is_good.all():
            refused = _refuse(rows, attributes, np.flatnonzero(~is_good), give())
        else:
            is_good = None
        if isinstance(converted, ConvertedArrays):
            self._mark(rows, attributes, converted, is_good)
            if converted.is_one is not None:
                self._count_ones(rows, attributes, converted.is_one)
            nulls_before = None if converted.nulls is None else converted.nulls.before
            rows = np.repeat(rows, converted.lengths)
            if not isinstance(attributes, int):
                attributes = np.repeat(attributes, converted.lengths)
        elif is_good is not None:
            rows = rows[is_good]
            attributes = attributes if isinstance(attributes, int) else attributes[is_good]
            values = _filter(values, is_good)
        if len(rows):
            self._pieces[carrier_of(type_)].append((rows, attributes, values, nulls_before))
        return refused

    def _count_ones(self, rows: np.ndarray, attributes: Int32 | int, is_one: np.ndarray) -> None:
        """Count the values that are read as arrays of one element."""
        numbers = _spread(attributes, len(rows))[is_one]
        first_row = self.rejects.first_row
        for number in np.unique(numbers).tolist():
            own = rows[is_one][numbers == number]
            name = print_path(self.table.paths[number])
            self.rejects.oddities.add_ones(name, first_row + int(own[0]), len(own))

    def finish(self, n_rows: int) -> EventValues:
        """All values that were added."""
        entries = {carrier: _join(carrier, self._pieces[carrier]) for carrier in self._pieces}
        return EventValues(n_rows, entries, _join_marks(self._marks), self.rejects)

    def _count_foreign(self, type_: Type, piece: Piece, is_foreign: np.ndarray) -> None:
        """Count the good values that are read from another kind, with the first of each
        attribute.
        """
        is_good = piece.converted.is_good
        places = np.flatnonzero(is_foreign if is_good is None else is_foreign & is_good)
        attributes = _spread(piece.attributes, len(piece.rows))[places]
        found, firsts, counts = np.unique(attributes, return_index=True, return_counts=True)
        given = piece.give() if len(places) else None
        for attribute, first, count in zip(found, places[firsts], counts, strict=True):
            assert given is not None
            row = self.rejects.first_row + int(piece.rows[first])
            foreign = Foreign(int(count), row, show(given.value_at(int(first))), str(type_))
            self.rejects.oddities.add_foreign(print_path(self.table.paths[attribute]), foreign)

    def _mark(
        self,
        rows: np.ndarray,
        attributes: Int32 | int,
        converted: ConvertedArrays,
        is_good: np.ndarray | None,
    ) -> None:
        spread, lengths = _spread(attributes, len(rows)), converted.lengths
        counts = np.zeros_like(lengths) if converted.nulls is None else converted.nulls.counts
        is_kept = slice(None) if is_good is None else is_good
        sizes, has_null = (lengths + counts)[is_kept], counts[is_kept] > 0
        self._marks.append((rows[is_kept], spread[is_kept], has_null, sizes))


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
    rows, attributes, are_wrong, *_ = zip(*refused, strict=True)
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
    if isinstance(values, Objects):
        return values.pick(is_good)
    return None if values is None else values[is_good]


def _join(carrier: str, pieces: list[tuple[Any, Any, Any, Any]]) -> Entries:
    rows, attributes, values, nulls = zip(*pieces, strict=True)
    lengths = [len(own) for own in rows]
    if all(isinstance(attribute, int) for attribute in attributes):
        numbers = np.repeat(np.array(attributes, dtype=np.int32), lengths)
    else:
        numbers = np.concatenate([_spread(a, n) for a, n in zip(attributes, lengths, strict=True)])
    joined: Any = None
    if carrier == TEXTS:
        joined = pa.concat_arrays(values)
    elif carrier == OBJECTS:
        joined = join_objects(values)
    elif carrier != OTHERS:
        joined = np.concatenate(values)
    all_rows = np.concatenate(rows).astype(np.int32, copy=False)
    return Entries(all_rows, numbers, joined, join_nulls(nulls, lengths))


def join_nulls(pieces: Sequence[Int32 | None], lengths: Sequence[int]) -> Int32 | None:
    """The `nulls_before` of entries, one after another."""
    if all(own is None for own in pieces):
        return None
    return np.concatenate(
        [
            np.zeros(length, dtype=np.int32) if own is None else own
            for own, length in zip(pieces, lengths, strict=True)
        ]
    )


def _join_marks(pieces: list[tuple[Any, Any, Any, Any]]) -> Marks:
    if not pieces:
        return NO_MARKS
    rows, attributes, has_null, sizes = map(np.concatenate, zip(*pieces, strict=True))
    return Marks(
        rows.astype(np.int32),
        attributes.astype(np.int32),
        has_null.astype(np.uint8),
        sizes.astype(np.int64),
    )


def find_nulls(parents: np.ndarray, is_known: np.ndarray, n_arrays: int) -> Nulls | None:
    """The elements that are NULL, given the array of each, or -1; those of an array are
    consecutive.
    """
    if is_known.all():
        return None
    is_null = ~is_known
    n_until = np.cumsum(is_null)
    firsts = np.flatnonzero(np.diff(parents, prepend=-2))
    bases = n_until[firsts] - is_null[firsts]
    before = n_until - np.repeat(bases, np.diff(np.append(firsts, len(parents))))
    counts = np.bincount(parents[is_null & (parents >= 0)], minlength=n_arrays)
    return Nulls(counts, before[is_known & (parents >= 0)].astype(np.int32))


def group_elements(
    elements: Converted, parents: np.ndarray, nulls: Nulls | None, is_good: np.ndarray
) -> ConvertedArrays:
    """Arrays from their known elements; one invalid element makes its whole array invalid."""
    is_foreign = None
    if elements.is_foreign is not None:
        is_foreign = np.zeros(len(is_good), dtype=np.bool_)
        is_foreign[parents[elements.is_foreign]] = True
    if elements.is_good is not None:
        is_good = is_good.copy()
        is_good[parents[~elements.is_good]] = False
    values = elements.values
    if not is_good.all():
        is_kept = is_good[parents]
        parents, values = parents[is_kept], _filter(values, is_kept)
        nulls = nulls and nulls._replace(before=nulls.before[is_kept])
    lengths = np.bincount(parents, minlength=len(is_good))
    return ConvertedArrays(values, lengths, nulls, is_good, is_foreign)
