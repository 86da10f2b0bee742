"""Reads events from JSON texts: a kernel finds the needed values, and others are never decoded.

Rows that the kernel does not accept are parsed by `json_texts`, values that no kernel converts are
parsed one by one. Both return what parsing every row would return.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tamis.errors import RowError
from tamis.events.entries import Collector, Converted, ConvertedArrays, Given, Piece
from tamis.events.event_strings import add_strings, collect_mappings
from tamis.events.json_source import hold_texts
from tamis.events.json_texts import parse_exactly, parse_quickly
from tamis.events.kernels.json_scan import (
    N_TOKENS,
    TOKEN_BOOLEAN,
    TOKEN_ESCAPED,
    TOKEN_LIST,
    TOKEN_NUMBER,
    TOKEN_OBJECT,
    TOKEN_TEXT,
    Spans,
    copy_spans,
    make_scratch,
    scan_rows,
)
from tamis.events.kernels.json_strings import scan_strings
from tamis.events.mappings import refuse_event
from tamis.events.python_values import (
    FINER_THAN_MICROSECONDS,
    as_objects,
    classes_of,
    convert_objects,
    give,
)
from tamis.events.rejects import explain_by, is_wrong_type
from tamis.events.repeated_keys import find_repeated_key, has_plain_keys
from tamis.events.spelled import convert_texts
from tamis.index.carriers import texts_of
from tamis.language.types import Written, read_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from tamis.events.attributes import AttributeTable, NameTree
    from tamis.events.entries import EventValues
    from tamis.events.json_names import Group
    from tamis.events.json_source import JsonSpans
    from tamis.events.rejects import Rejects
    from tamis.kernels.arrays import Int64
    from tamis.language.types import Type

# Odd rows of a batch that are searched for repeated keys, by parsing them again.
MOST_SEARCHED: Final = 100
_LEAST_BYTES: Final = 4  # of a name and its value: "":1
_SHORTEST_STRING: Final = 3  # with what follows it: "",
_SMALL_T: Final = ord("t")
# A value of the class that each kind of token has in Python.
_EXAMPLES: Final = {
    TOKEN_TEXT: "",
    TOKEN_ESCAPED: "",
    TOKEN_NUMBER: 0,
    TOKEN_BOOLEAN: False,
    TOKEN_LIST: [],
    TOKEN_OBJECT: {},
}
_TEXTS: Final = frozenset((TOKEN_TEXT, TOKEN_ESCAPED))
_NUMBERS: Final = frozenset((TOKEN_NUMBER,))
# The tokens of each type that `convert_texts` reads as a parser and `read_value` would.
_SPELLED: Final = {
    "string": _TEXTS,
    "date": _TEXTS,
    "timestamp": _TEXTS,
    "ip": _TEXTS,
    "integer": _NUMBERS,
    "float": _NUMBERS,
    "double": _NUMBERS,
    "decimal": _NUMBERS,
    "number": _NUMBERS,
}


def read_json(texts: Iterable[Any], table: AttributeTable, rejects: Rejects) -> EventValues:
    """Events as JSON objects, one in each text (`str` or `bytes`); anything else is a rejected
    row.
    """
    source = hold_texts(texts)
    parse = parse_exactly if table.needs_digits else parse_quickly
    spans, is_odd = _scan(source, table)
    parsed: Iterable[tuple[int, dict[str, Any]]]
    parsed = _parse_odd(source, np.flatnonzero(is_odd).tolist(), parse, rejects)
    collector = Collector(table, rejects)
    if table.strings is not None:
        parsed = held = list(parsed)
        _collect_strings(source, is_odd, held, collector)
    reader = _Reader(source, table, parse, spans)
    odd_values = _OddValues.of(parsed, table)
    for group, places, odd_places in _by_group(spans, odd_values, table):
        pieces = reader.read(group.type, places)
        if len(odd_places):
            pieces.append(odd_values.read(group.type, odd_places))
        collector.add_pieces(group.type, pieces)
    return collector.finish(len(source))


def _scan(source: JsonSpans, table: AttributeTable) -> tuple[Spans, np.ndarray]:
    """The needed values of the rows that the kernel accepts, and where the other rows are."""
    spans = _make_spans(source, _LEAST_BYTES)
    is_odd = np.empty(len(source), dtype=np.bool_)
    arrays = (source.data, source.starts, source.ends)
    n_found = scan_rows(*arrays, table.json_names.arrays, make_scratch(), spans, is_odd)
    return Spans._make(array[:n_found] for array in spans), is_odd


def _make_spans(source: JsonSpans, least_bytes: int) -> Spans:
    """Room for as many values as there can be."""
    n_most = int((source.ends - source.starts).sum()) // least_bytes + 1
    return Spans(
        np.empty(n_most, np.int32),
        np.empty(n_most, np.int32),
        np.empty(n_most, np.uint8),
        np.empty(n_most, np.int64),
        np.empty(n_most, np.int64),
    )


def _collect_strings(
    source: JsonSpans,
    is_odd: np.ndarray,
    parsed: Sequence[tuple[int, dict[str, Any]]],
    collector: Collector,
) -> None:
    """Add the strings of all events; those of odd rows were parsed."""
    spans = _make_spans(source, _SHORTEST_STRING)
    n_found = scan_strings(source.data, source.starts, source.ends, is_odd, spans)
    spans = Spans._make(array[:n_found] for array in spans)
    lengths = np.bincount(spans.rows, minlength=len(source)).astype(np.int64)
    texts = _copy_texts(source, spans, np.arange(n_found))
    rows = np.flatnonzero(~is_odd)
    add_strings(rows, lengths[rows], texts, collector)
    odd_rows = np.array([row for row, _ in parsed], dtype=np.int64)
    collect_mappings([event for _, event in parsed], odd_rows, collector)


def _copy_texts(source: JsonSpans, spans: Spans, places: Int64) -> pa.Array:
    """Strings and numbers as Arrow strings, with escapes replaced by what they stand for."""
    n_bytes = int((spans.ends[places] - spans.starts[places]).sum())
    offsets, copied = np.empty(len(places) + 1, np.int64), np.empty(n_bytes, np.uint8)
    n_copied = copy_spans(source.data, spans, places, offsets, copied)
    return texts_of(offsets, copied[:n_copied])


# ── rows that are parsed ────────────────────────────────────────────────────────────────────


def _parse_odd(
    source: JsonSpans, rows: list[int], parse: Callable[[Any], dict[str, Any]], rejects: Rejects
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The events of these rows; those without one are rejected, and repeated keys are counted."""
    n_searched = 0
    for row in rows:
        text = source[row]
        if not isinstance(text, str | bytes):
            rejects.add_row(row, text, _refuse_text(text))
            continue
        try:
            event = parse(text)
        except RowError as error:
            rejects.add_row(row, _decode(text), error)
            continue
        yield row, event
        if n_searched < MOST_SEARCHED and not has_plain_keys(text, event):
            n_searched += 1
            if (key := find_repeated_key(text)) is not None:
                rejects.oddities.add_repeated(rejects.first_row + row, key)


def _refuse_text(given: Any) -> RowError:
    """The error of an event among JSON texts that is not a text."""
    if given is None or isinstance(given, RowError):
        return refuse_event(given)
    what = type(given).__name__
    return RowError("bad-row", f"the first event is JSON text, this one is not: it is {what}")


def _decode(text: str | bytes) -> str:
    """The text as shown to people."""
    return text.decode(errors="replace") if isinstance(text, bytes) else text


class _OddValues(NamedTuple):
    """The needed values of the rows that were parsed."""

    rows: np.ndarray  # int32[n]
    attributes: np.ndarray  # int32[n]
    values: np.ndarray  # object[n]

    @classmethod
    def of(cls, events: Iterable[tuple[int, dict[str, Any]]], table: AttributeTable) -> _OddValues:
        found = [(row, *own) for row, event in events for own in _pick(event, table.tree)]
        rows, attributes, values = zip(*found, strict=True) if found else ((), (), ())
        return cls(
            np.array(rows, dtype=np.int32),
            np.array(attributes, dtype=np.int32),
            as_objects(values, len(values)),
        )

    def read(self, type_: Type, places: Int64) -> Piece:
        own = self.values[places]
        converted = convert_objects(own, classes_of(own), type_)
        give_values = partial(give, own, type_)
        return Piece(self.rows[places], self.attributes[places], converted, give_values)


def _pick(event: Mapping[str, Any], tree: NameTree) -> Iterator[tuple[int, Any]]:
    """The needed attributes of an event, and their values."""
    names = tree.slots if len(tree.slots) < len(event) else event
    for name in names:
        slot, value = tree.slots.get(name), event.get(name)
        if slot is None or value is None:
            continue
        if tree.attributes[slot] >= 0:
            yield tree.attributes[slot], value
        if slot in tree.children and isinstance(value, Mapping):
            yield from _pick(value, tree.children[slot])


# ── values that the kernel found ────────────────────────────────────────────────────────────


def _by_group(
    spans: Spans, odd: _OddValues, table: AttributeTable
) -> Iterator[tuple[Group, Int64, Int64]]:
    """Each group of attributes that has values, with their places in both sources."""
    groups, numbers = table.json_names.groups, table.json_names.group_numbers
    if len(groups) == 1:
        yield groups[0], np.arange(len(spans.rows)), np.arange(len(odd.rows))
        return
    places, odd_places = (_split(numbers[own.attributes], len(groups)) for own in (spans, odd))
    for group in groups:
        own, odd_own = places[group.number], odd_places[group.number]
        if len(own) or len(odd_own):
            yield group, own, odd_own


def _split(numbers: np.ndarray, n_groups: int) -> list[np.ndarray]:
    """The places of each number, ascending."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers, minlength=n_groups))[:-1])


class _Reader:
    """Converts the values at spans to carriers."""

    def __init__(
        self,
        source: JsonSpans,
        table: AttributeTable,
        parse: Callable[[Any], dict[str, Any]],
        spans: Spans,
    ) -> None:
        self._source = source
        self._table = table
        self._parse = parse
        self._spans = spans

    def read(self, type_: Type, places: Int64) -> list[Piece]:
        """The values at some spans, all of one type."""
        if type_.name == "any":
            return [self._piece(type_, places, Converted(None))]
        kinds = self._spans.kinds[places]
        counts = np.bincount(kinds, minlength=N_TOKENS)
        present = np.flatnonzero(counts).tolist()
        wrong = [kind for kind in present if is_wrong_type(_EXAMPLES[kind], type_)]
        plain = [kind for kind in present if kind in _SPELLED.get(type_.name, ())]
        others = [kind for kind in present if kind not in (*wrong, *plain)]
        chosen = ((wrong, _refuse), (plain, self._convert_spelled), (others, self._convert_objects))
        return [
            self._piece(type_, own, convert(type_, own))
            for kinds_of, convert in chosen
            if kinds_of
            for own in [places if kinds_of == present else places[np.isin(kinds, kinds_of)]]
        ]

    def _piece(self, type_: Type, places: Int64, converted: Converted | ConvertedArrays) -> Piece:
        rows, attributes = self._spans.rows[places], self._spans.attributes[places]
        return Piece(rows, attributes, converted, partial(self._give, type_, places))

    def _convert_spelled(self, type_: Type, places: Int64) -> Converted:
        return convert_texts(_copy_texts(self._source, self._spans, places), type_)

    def _convert_objects(self, type_: Type, places: Int64) -> Converted | ConvertedArrays:
        if type_.name == "boolean" and not type_.reads:
            is_true = self._source.data[self._spans.starts[places]] == _SMALL_T
            return Converted(is_true.astype(np.int64))
        values = [self._parse_span(at) for at in places.tolist()]
        return convert_objects(as_objects(values, len(values)), classes_of(values), type_)

    def _parse_span(self, at: int) -> Any:
        begin, end = self._spans.starts[at], self._spans.ends[at]
        if self._spans.kinds[at] in _TEXTS:
            begin, end = begin - 1, end + 1  # with its quotes
        return json.loads(self._source.data[begin:end].tobytes(), parse_float=Written)

    def _give(self, type_: Type, places: Int64) -> Given:
        is_wrong = np.array([is_wrong_type(_EXAMPLES[kind], type_) for kind in range(N_TOKENS)])

        def value_at(at: int) -> Any:
            place = int(places[at])
            event: Any = self._parse(self._source[int(self._spans.rows[place])])
            for name in self._table.paths[self._spans.attributes[place]]:
                event = event[name]
            return event

        return Given(
            value_at,
            lambda asked: is_wrong[self._spans.kinds[places[asked]]],
            explain_by(read_value, type_, FINER_THAN_MICROSECONDS),
        )


def _refuse(type_: Type, places: Int64) -> Converted | ConvertedArrays:
    none_good = np.zeros(len(places), dtype=np.bool_)
    if type_.element is None:
        return Converted(None, none_good)
    return ConvertedArrays(None, np.zeros(len(places), dtype=np.int64), None, none_good)
