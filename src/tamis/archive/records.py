"""An entry as a record of a journal, and back.

A record is a head and five sections, each padded to eight bytes: the number of matches of each
event, the matches, where the text of each event is, the texts, the answer. Numbers are
little-endian. A checksum covers all but itself and the magic number.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.archive.model import DIGEST_BYTES, Answer, ArrowEvents, JsonEvents
from tamis.errors import InputError

if TYPE_CHECKING:
    from tamis.archive.model import Entry, Keep

MAGIC: Final = b"TmsE"
MOST_BYTES: Final = 1 << 31  # of one section: places in it have 32 bits

NO_TEXTS, JSON, ARROW = range(3)
NARROW, WIDE = 4, 8  # bytes of a match

_HEAD: Final = struct.Struct("<4sIQQqqqqQIIQQ")
HEAD_BYTES: Final = _HEAD.size
_CHECKED_FROM: Final = 8  # the checksum covers the record from here
_COUNTS: Final = np.dtype("<u4")
_WIDTHS: Final[dict[int, np.dtype[Any]]] = {NARROW: np.dtype("<u4"), WIDE: np.dtype("<i8")}


class Head(NamedTuple):
    """The first bytes of a record."""

    magic: bytes
    checksum: int
    n_bytes: int  # of the whole record
    group_start: int  # where the first record that was written together with this one begins
    first_event: int
    n_events: int
    moment: int
    change: int
    n_matches: int
    text_kind: int
    match_width: int
    n_text_bytes: int
    n_answer_bytes: int

    def places(self) -> Places:
        """Where the sections are, from the start of the record."""
        n_span_bytes = (0, 8, 4)[self.text_kind] * self.n_events
        counts = HEAD_BYTES
        matches = counts + _padded(4 * self.n_events)
        spans = matches + _padded(self.match_width * self.n_matches)
        texts = spans + _padded(n_span_bytes)
        answer = texts + _padded(self.n_text_bytes)
        return Places(counts, matches, spans, texts, answer, answer + _padded(self.n_answer_bytes))


class Places(NamedTuple):
    """The first byte of each section, from the start of the record, and the end of the record."""

    counts: int
    matches: int
    spans: int
    texts: int
    answer: int
    end: int


# ── writing ─────────────────────────────────────────────────────────────────────────────────


class CheckedEntry(NamedTuple):
    """The arrays of an entry, which have been checked."""

    n_events: int
    counts: np.ndarray  # uint32[n_events]
    matches: np.ndarray  # uint32 or int64
    text_kind: int
    spans: bytes
    texts: Any  # bytes or a buffer


def check_entry(entry: Entry, keep: Keep) -> CheckedEntry:
    """The parts of an entry in the form in which they are written; raises an `InputError` if they
    contradict each other.
    """
    starts, matches = np.asarray(entry.match_starts), np.asarray(entry.matches)
    if isinstance(entry.events, JsonEvents):
        n_events = len(entry.events.starts)
    elif isinstance(entry.events, ArrowEvents):
        n_events = entry.events.batch.num_rows
    else:
        raise InputError(f"events are {entry.events!r}; JsonEvents or ArrowEvents are expected")
    _expect_integers(starts, "match_starts")
    _expect_integers(matches, "matches")
    if len(starts) != n_events + 1:
        raise InputError(
            f"match_starts has {len(starts)} places for {n_events} events; one more than the "
            "number of events is expected"
        )
    counts = np.diff(starts)
    if starts[0] != 0 or starts[-1] != len(matches) or (n_events and counts.min() < 0):
        raise InputError(
            f"match_starts goes from {starts[0]} to {starts[-1]}; ascending places from 0 to the "
            f"number of matches, {len(matches)}, are expected"
        )
    has_text = _choose(counts, keep)
    if isinstance(entry.events, JsonEvents):
        kind, spans, texts = _write_json(entry.events, has_text)
    else:
        kind, spans, texts = _write_arrow(entry.events, has_text)
    return CheckedEntry(
        n_events, counts.astype(_COUNTS), _narrow(matches), kind, spans, memoryview(texts)
    )


def _expect_integers(array: np.ndarray, argument: str) -> None:
    is_empty = array.size == 0 and argument == "matches"
    if array.ndim != 1 or not (array.dtype.kind in "iu" or is_empty):
        raise InputError(
            f"{argument} has {array.ndim} dimensions of {array.dtype}; one of int64 is expected"
        )


def _narrow(matches: np.ndarray) -> np.ndarray:
    """The matches in 32 bits, if they fit."""
    if len(matches) == 0:
        return np.empty(0, _WIDTHS[NARROW])
    least, most = int(matches.min()), int(matches.max())
    if least < 0 or most >= 1 << 63:
        wrong = least if least < 0 else most
        raise InputError(f"matches has the subscription {wrong}; 0 to 2^63 - 1 are expected")
    narrowed: np.ndarray = matches.astype(_WIDTHS[NARROW if most < 1 << 32 else WIDE])
    return narrowed


def _choose(counts: np.ndarray, keep: Keep) -> np.ndarray | None:
    """The events whose texts are kept; None for all."""
    if keep == "all" or (keep == "matched" and counts.all()):
        return None
    return counts > 0 if keep == "matched" else np.zeros(len(counts), np.bool_)


def _write_json(events: JsonEvents, has_text: np.ndarray | None) -> tuple[int, bytes, Any]:
    starts, ends = np.asarray(events.starts), np.asarray(events.ends)
    _expect_integers(starts, "starts")
    _expect_integers(ends, "ends")
    lengths = ends - starts if len(starts) == len(ends) else np.zeros(1)
    if len(starts) and not (
        lengths.min() > 0 and starts.min() >= 0 and ends.max() <= len(events.buffer)
    ):
        raise InputError(
            f"starts and ends are not places of texts in a buffer of {len(events.buffer)} bytes"
        )
    chosen = slice(None) if has_text is None else np.flatnonzero(has_text)
    lengths = lengths[chosen]
    if len(lengths) == 0:
        return NO_TEXTS, b"", b""
    low, high = int(starts[chosen].min()), int(ends[chosen].max())
    spans = np.zeros((2, len(starts)), "<u4")
    if high - low <= 2 * int(lengths.sum()):  # little lies between the texts
        texts: Any = memoryview(events.buffer)[low:high]
        spans[0, chosen], spans[1, chosen] = starts[chosen] - low, ends[chosen] - low
    else:
        view = memoryview(events.buffer)
        pairs = zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True)
        texts = b"".join(view[start:end] for start, end in pairs)
        spans[1, chosen] = np.cumsum(lengths)
        spans[0, chosen] = spans[1, chosen] - lengths
    _expect_small(len(texts))
    return JSON, spans.tobytes(), texts


def _write_arrow(events: ArrowEvents, has_text: np.ndarray | None) -> tuple[int, bytes, Any]:
    batch = events.batch
    names = batch.schema.names
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise InputError(f'two columns "{twice}"; column names must be unique')
    if has_text is not None:
        batch = batch.filter(pa.array(has_text))
    if batch.num_rows == 0:
        return NO_TEXTS, b"", b""
    rows = np.arange(1, batch.num_rows + 1, dtype="<u4")  # 0: the event has none
    if has_text is not None:
        rows, own = np.zeros(len(has_text), "<u4"), rows
        rows[has_text] = own
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    written = sink.getvalue()
    _expect_small(written.size)
    return ARROW, rows.tobytes(), written


def _expect_small(n_bytes: int) -> None:
    if n_bytes >= MOST_BYTES:
        raise InputError(
            f"the events of one entry have {n_bytes:,} bytes; less than {MOST_BYTES:,} are allowed",
            hint="publish them in several requests",
        )


def write_record(  # noqa: PLR0913 - what is known only when the record is written
    entry: CheckedEntry,
    *,
    first_event: int,
    moment: int,
    change: int,
    group_start: int,
    answer: Answer | None,
) -> list[Any]:
    """The record of an entry, as parts that follow each other."""
    digests = b"" if answer is None else _check_answer(answer)
    sections = (
        (entry.counts.tobytes(),),
        (entry.matches.tobytes(),),
        (entry.spans,),
        (entry.texts,),
        (digests, b"" if answer is None else answer.answer),
    )
    parts: list[Any] = []
    for section in sections:
        parts += section
        n_bytes = sum(map(len, section))
        parts.append(bytes(_padded(n_bytes) - n_bytes))
    head = Head(
        MAGIC,
        0,
        HEAD_BYTES + sum(map(len, parts)),
        group_start,
        first_event,
        entry.n_events,
        moment,
        change,
        len(entry.matches),
        entry.text_kind,
        entry.matches.itemsize,
        len(entry.texts),
        0 if answer is None else len(digests) + len(answer.answer),
    )
    checksum = zlib.crc32(_HEAD.pack(*head)[_CHECKED_FROM:])
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return [_HEAD.pack(*head._replace(checksum=checksum)), *parts]


def _check_answer(answer: Answer) -> bytes:
    if not len(answer.key) == len(answer.request) == DIGEST_BYTES:
        raise InputError(
            f"the digests of an answer have {len(answer.key)} and {len(answer.request)} bytes; "
            f"{DIGEST_BYTES} are expected"
        )
    return answer.key + answer.request


def _padded(n_bytes: int) -> int:
    return (n_bytes + 7) & ~7


# ── reading ─────────────────────────────────────────────────────────────────────────────────


def read_head(data: Any, at: int = 0) -> Head | None:
    """The head of the record at a place; None if none can be there."""
    if len(data) - at < HEAD_BYTES:
        return None
    head = Head(*_HEAD.unpack_from(data, at))
    if head.magic != MAGIC or head.text_kind > ARROW or head.match_width not in _WIDTHS:
        return None
    is_sane = max(head.n_events, head.n_matches, head.n_text_bytes, head.n_answer_bytes) < 1 << 40
    return head if head.n_events >= 0 and is_sane and head.places().end == head.n_bytes else None


def check_record(data: Any, at: int) -> Head | None:
    """The head of the record at a place, if the record is complete and intact."""
    head = read_head(data, at)
    if head is None or len(data) - at < head.n_bytes:
        return None
    checked = memoryview(data)[at + _CHECKED_FROM : at + head.n_bytes]
    try:
        return head if zlib.crc32(checked) == head.checksum else None
    finally:
        checked.release()


class Record:
    """A record in memory."""

    def __init__(self, data: Any, at: int, head: Head) -> None:
        """`data` has the record at `at`."""
        self.head = head
        self._data = data
        self._at = at
        self._places = head.places()

    def counts(self) -> np.ndarray:
        """The number of matches of each event."""
        return self._array(_COUNTS, self.head.n_events, self._places.counts)

    def matches(self) -> np.ndarray:
        """The subscriptions, by event."""
        return self._array(
            _WIDTHS[self.head.match_width], self.head.n_matches, self._places.matches
        )

    def json_spans(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the JSON texts of the events begin and end; the end is 0 if there is none."""
        n_events = self.head.n_events
        spans = self._array(np.dtype("<u4"), 2 * n_events, self._places.spans)
        return spans[:n_events], spans[n_events:]

    def rows(self) -> np.ndarray:
        """The row of each event in the Arrow batch, from 1; 0 if there is none."""
        return self._array(np.dtype("<u4"), self.head.n_events, self._places.spans)

    def texts(self) -> memoryview:
        """The JSON texts, or an Arrow stream."""
        return self._bytes(self._places.texts, self.head.n_text_bytes)

    def batch(self) -> pa.RecordBatch:
        """The events as an Arrow batch."""
        return read_batch(self.texts())

    def answer(self) -> Answer | None:
        """The answer that was stored with the entry."""
        return read_answer(bytes(self._bytes(self._places.answer, self.head.n_answer_bytes)))

    def _array(self, dtype: np.dtype[Any], length: int, place: int) -> np.ndarray:
        return np.frombuffer(self._data, dtype, length, self._at + place)

    def _bytes(self, place: int, length: int) -> memoryview:
        return memoryview(self._data)[self._at + place : self._at + place + length]


def read_batch(stream: Any) -> pa.RecordBatch:
    """The one batch of an Arrow stream."""
    with pa.ipc.open_stream(pa.py_buffer(stream)) as reader:
        return reader.read_next_batch()


def read_answer(stored: bytes) -> Answer | None:
    """The answer whose digests and text these bytes are."""
    if not stored:
        return None
    key, request = stored[:DIGEST_BYTES], stored[DIGEST_BYTES : 2 * DIGEST_BYTES]
    return Answer(key, request, stored[2 * DIGEST_BYTES :])
