"""The memory of one event that is read and matched: made once, reused for each event."""

from __future__ import annotations

import json
from array import array
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.events.kernels.json_scan import TOKEN_ESCAPED, TOKEN_TEXT, Spans, make_scratch
from tamis.events.kernels.json_single import (
    N_BYTES,
    N_DOUBLES,
    N_JSON_COUNTS,
    N_ODD,
    N_WORDS,
    JsonSpace,
    read_json_event,
)
from tamis.events.kernels.single import N_SPACE_COUNTS, EventSpace, PartSpace
from tamis.index.patterns.kernels.matching import PatternResults, PatternScratch
from tamis.kernels.records import Records, bind
from tamis.language.types import Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tamis.events.kernels.json_scan import NameArrays
    from tamis.events.rejects import Rejects
    from tamis.events.single_reader import ReadValues
    from tamis.index.patterns.kernels.matching import Search
    from tamis.kernels.arrays import UInt8

_FEW_WORDS: Final = 512
_FEW_BYTES: Final = 1 << 13
_FEW_DOUBLES: Final = 64
_NOTHING_TYPED: Final[dict[int, Any]] = {}
_MOST_PACKED: Final = 128  # more are packed faster by `array`


class EventBuffer:
    """One event: its values, its codes for one part after another, and the event itself, unless it
    was read from JSON.
    """

    __slots__ = (
        "_data",
        "_doubles",
        "_most_bytes",
        "_most_doubles",
        "_most_words",
        "_words",
        "address",
        "event",
        "exact",
        "n_bytes",
        "n_doubles",
        "n_words",
        "records",
        "rejects",
        "space",
        "typed",
    )

    def __init__(self) -> None:
        self.n_words = self.n_bytes = self.n_doubles = 0
        self.typed: Mapping[int, Any] = {}
        self.exact: Sequence[tuple[int, Any]] = ()
        self.event: Mapping[str, Any] = {}
        self.rejects: Rejects | None = None  # for values that are computed when it is matched
        self._make(_FEW_WORDS, _FEW_BYTES, _FEW_DOUBLES)

    def _make(self, n_words: int, n_bytes: int, n_doubles: int) -> None:
        self._most_words, self._most_bytes, self._most_doubles = n_words, n_bytes, n_doubles
        self._words, self._doubles = bytearray(8 * n_words), bytearray(8 * n_doubles)
        self._data = bytearray(n_bytes)
        self.space = EventSpace(
            np.frombuffer(self._words, np.int64),
            np.frombuffer(self._doubles, np.float64),
            np.frombuffer(self._data, np.uint8),
            np.empty(n_bytes, np.uint8),
            np.empty((1, 2), np.int64),
            np.zeros(2, np.int64),
            # A text has two words and at most three codes, of which one is for the regular
            # expressions found in it.
            np.empty(2 * n_words, np.int32),
            np.empty(2 * n_words, np.int32),
            np.zeros(2, np.int64),
            np.zeros(n_words, np.int32),
            np.empty(n_words, np.int32),
            np.empty(n_words, np.uint8),
        )
        self.records = Records([self.space])
        self.address = self.records.address

    def reserve(self, n_words: int, n_bytes: int, n_doubles: int) -> None:
        """Make room; what was written is kept."""
        most_words, most_bytes = self._most_words, self._most_bytes
        if n_words <= most_words and n_bytes <= most_bytes and n_doubles <= self._most_doubles:
            return
        old = self._words, self._data, self._doubles
        self._make(
            max(2 * n_words, most_words),
            max(2 * n_bytes, most_bytes),
            max(2 * n_doubles, self._most_doubles),
        )
        for new, kept in zip((self._words, self._data, self._doubles), old, strict=True):
            new[: len(kept)] = kept

    def write(self, values: ReadValues) -> None:
        """Write the values of an event."""
        self.n_words = self.n_bytes = self.n_doubles = 0
        self.append(values)

    def append(self, values: ReadValues) -> None:
        """Add values to those that are written."""
        words, doubles = values.words, values.doubles
        data = "".join(values.texts).encode()
        n_words, n_bytes = self.n_words + len(words), self.n_bytes + len(data)
        n_doubles = self.n_doubles + len(doubles)
        self.reserve(n_words, n_bytes, n_doubles)
        if words:
            pack("q", words, self._words, self.n_words)
        if data:
            self._data[self.n_bytes : n_bytes] = data
        if doubles:
            pack("d", doubles, self._doubles, self.n_doubles)
        self.n_words, self.n_bytes, self.n_doubles = n_words, n_bytes, n_doubles
        self.typed, self.exact = values.typed, values.exact

    def text(self, begin: int, end: int) -> bytes:
        """Some bytes of the texts."""
        return bytes(self._data[begin:end])


def pack(kind: str, numbers: Sequence[Any], to: bytearray, at: int) -> None:
    """Write numbers of eight bytes from a position on."""
    if len(numbers) <= _MOST_PACKED:
        _PACKERS[kind][len(numbers)](to, 8 * at, *numbers)
    else:
        to[8 * at : 8 * (at + len(numbers))] = array(kind, numbers).tobytes()


# By kind and number of numbers.
_PACKERS: Final = {
    kind: [Struct(f"={n_numbers}{kind}").pack_into for n_numbers in range(_MOST_PACKED + 1)]
    for kind in "qd"
}


class JsonBuffer:
    """Scratch for reading events from JSON."""

    def __init__(self, names: NameArrays, readings: UInt8) -> None:
        self._names, self._readings = names, readings
        self._n_names = len(names.nodes)
        n_names = self._n_names
        self._spans = Spans(
            np.empty(n_names + 1, np.int32),
            np.empty(n_names + 1, np.int32),
            np.empty(n_names + 1, np.uint8),
            np.empty(n_names + 1, np.int64),
            np.empty(n_names + 1, np.int64),
        )
        self._odd = np.empty(n_names + 1, np.int64)
        self._open_objects = make_scratch()
        self._counts = np.zeros(N_JSON_COUNTS, np.int64)
        self._get_counts: Callable[[], list[int]] = self._counts.tolist
        self._enter: Any = None
        self._make(_FEW_BYTES)

    def _make(self, n_bytes: int) -> None:
        self._text = bytearray(n_bytes)
        self._records = Records(
            [
                JsonSpace(
                    np.frombuffer(self._text, np.uint8),
                    self._names,
                    self._readings,
                    self._open_objects,
                    self._spans,
                    self._odd,
                    self._counts,
                )
            ]
        )

    def read(self, data: bytes, buffer: EventBuffer) -> bool:
        """Write the words of the event to a buffer; return whether that was possible."""
        n_bytes = len(data)
        if n_bytes > len(self._text):
            self._make(2 * n_bytes)
        # A name has at most three words and one double.
        buffer.reserve(3 * self._n_names, n_bytes, self._n_names)
        if self._enter is None:
            self._enter = bind(read_json_event, (self._records, buffer.records), 1)
        self._text[:n_bytes] = data
        is_read: bool = self._enter(self._records.address, buffer.address, n_bytes)
        counts = self._get_counts()
        buffer.n_words, buffer.n_bytes = counts[N_WORDS], counts[N_BYTES]
        buffer.n_doubles, self.n_odd = counts[N_DOUBLES], counts[N_ODD]
        buffer.typed, buffer.exact = _NOTHING_TYPED, ()
        return is_read

    def odd_values(self) -> Iterator[tuple[int, Any]]:
        """The attributes and values that no kernel reads; numbers with a point stay exact."""
        for at in self._odd[: self.n_odd].tolist():
            begin, end = int(self._spans.starts[at]), int(self._spans.ends[at])
            if self._spans.kinds[at] in (TOKEN_TEXT, TOKEN_ESCAPED):
                begin, end = begin - 1, end + 1  # with its quotes
            value = json.loads(bytes(self._text[begin:end]), parse_float=Written)
            yield int(self._spans.attributes[at]), value


class PartBuffer:
    """Scratch for the patterns of one part."""

    __slots__ = ("counts", "records", "scratches", "space")

    def __init__(self, patterns: Sequence[Search], n_patterns: int) -> None:
        """`n_patterns` is the number of all patterns of all columns."""
        self.counts = np.zeros(N_SPACE_COUNTS, np.int64)
        n_candidates = sum(len(own.candidates.tests) for own in patterns)
        found = PatternResults(
            np.zeros(1, np.int64),
            np.empty(n_patterns, np.int32),
            np.empty((n_candidates, 2), np.int32),
        )
        n_columns = len(patterns)
        self.space = PartSpace(
            np.zeros(2 * n_columns + 1, np.int64),
            np.zeros((n_columns, 2), np.int64),
            found,
            self.counts,
        )
        self.records = Records([self.space])
        self.scratches = Records([make_pattern_scratch(own, self.counts) for own in patterns])


def make_pattern_scratch(patterns: Search, counts: np.ndarray) -> PatternScratch:
    """Scratch for the patterns of one column."""
    n_candidates = len(patterns.candidates.tests)
    return PatternScratch(
        np.zeros(len(patterns.literals.table), dtype=np.int32),
        np.zeros(n_candidates, dtype=np.int32),
        np.empty(n_candidates, dtype=np.int32),
        counts,
    )
