"""Reads the strings of events, wherever they are: the array that `any_attribute` tests."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.events.arrow_arrays import is_text, plain_array, read_texts, take, valid_places
from tamis.events.entries import ConvertedArrays, Given
from tamis.index.carriers import LARGE_STRING
from tamis.language.types import STRINGS
from tamis.logic.event_strings import strings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tamis.events.entries import Collector

_is = pa.types


def collect_mappings(
    events: Sequence[Mapping[str, Any]], rows: np.ndarray, collector: Collector
) -> None:
    """Add the strings of these events, if they are needed."""
    if collector.table.strings is None or not len(events):
        return
    found = [strings_of(event) for event in events]
    lengths = np.fromiter(map(len, found), np.int64, len(found))
    texts = pa.array(list(chain.from_iterable(found)), LARGE_STRING)
    add_strings(rows, lengths, texts, collector)


def add_strings(
    rows: np.ndarray, lengths: np.ndarray, texts: pa.Array, collector: Collector
) -> None:
    """Add the strings of some events, given their number in each."""
    assert collector.table.strings is not None
    converted = ConvertedArrays(texts, lengths, None)
    collector.add(STRINGS, rows, collector.table.strings, converted, _give_none)


def _give_none() -> Given:
    raise AssertionError("all strings are good")


# ── Arrow ───────────────────────────────────────────────────────────────────────────────────


def collect_arrays(
    columns: Iterable[tuple[int, pa.Array]], n_rows: int, collector: Collector
) -> None:
    """Add the strings in all columns, given as arrays with their first rows, if they are needed."""
    if collector.table.strings is None:
        return
    pieces = [
        piece
        for first_row, array in columns
        for piece in _strings_in(array, np.arange(first_row, first_row + len(array)))
    ]
    rows = np.concatenate([own for own, _ in pieces] or [np.empty(0, dtype=np.int64)])
    texts = pa.concat_arrays([own for _, own in pieces] or [pa.array([], LARGE_STRING)])
    order = np.argsort(rows, kind="stable")
    lengths = np.bincount(rows, minlength=n_rows).astype(np.int64)
    good = np.setdiff1d(np.arange(n_rows), collector.rejects.bad_rows)
    add_strings(good, lengths[good], texts.take(pa.array(order)), collector)


def _strings_in(array: pa.Array, rows: np.ndarray) -> Iterator[tuple[np.ndarray, pa.Array]]:
    """The strings of an array of any type, each with its row; `rows` has that of each value."""
    array = plain_array(array)
    if is_text(array.type):
        places = valid_places(array)
        texts = read_texts(array, places)
        rows = rows if places is None else rows[places]
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:  # Arrow does not check that strings are UTF-8
            is_good = np.array([_is_utf8(own) for own in texts.cast(pa.large_binary()).to_pylist()])
            rows, texts = rows[is_good], texts.filter(pa.array(is_good))
        yield rows, texts
    elif _is.is_struct(array.type):
        # A field of a NULL struct may hold any value: flatten() makes it NULL.
        for field in array.flatten():
            yield from _strings_in(field, rows)
    elif _is.is_map(array.type):
        places = valid_places(array)
        array, rows = take(array, places), rows if places is None else rows[places]
        starts = array.offsets.to_numpy()
        items = array.items.slice(int(starts[0]), int(starts[-1] - starts[0]))
        yield from _strings_in(items, np.repeat(rows, np.diff(starts)))
    elif _is.is_nested(array.type) and not _is.is_union(array.type):
        import pyarrow.compute as pc

        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        # Those of lists that are not NULL.
        yield from _strings_in(pc.list_flatten(array), np.repeat(rows, lengths))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
