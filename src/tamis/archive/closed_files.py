"""Writes the files of a closed segment from its journal."""

from __future__ import annotations

import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis import durable
from tamis.archive.array_file import write_arrays
from tamis.archive.folder import (
    ANSWERS,
    EVENTS,
    INDEX,
    JOURNALS,
    MATCHES,
    SegmentName,
    journal_path,
)
from tamis.archive.journal import RECORDS_AT, Journal, find_records
from tamis.archive.model import DIGEST_BYTES
from tamis.archive.postings import build_postings
from tamis.archive.reading import SCHEMA, as_strings
from tamis.archive.records import ARROW, JSON, Record
from tamis.archive.texts import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

N_ROWS: Final = 2048  # of a row group of events, at most: an event is read with its neighbours
N_TEXT_BYTES: Final = 4 << 20
N_MATCHED_ROWS: Final = 16_384  # of a row group of matches
N_MATCHES: Final = 1 << 20
MATCH_SCHEMA: Final = pa.schema(
    [
        *(SCHEMA.field(name) for name in ("number", "moment", "change")),
        pa.field("subscriptions", pa.list_(pa.field("element", pa.int64(), nullable=False)), False),
    ]
)


class _Columns(NamedTuple):
    """What all files of a segment share."""

    records: list[Record]
    numbers: np.ndarray  # int64[n_events]
    moments: np.ndarray  # int64[n_events]
    changes: np.ndarray  # int64[n_events]
    counts: np.ndarray  # int64[n_events]


def close_journal(
    root: Path, serial: int, end_event: int, go_on: Callable[[], bool] = lambda: True
) -> SegmentName:
    """Write the files of a closed segment durably; those that exist are replaced.

    Records from `end_event` on were never acknowledged. Raises InterruptedError if `go_on`, which
    is called before each file, returns False.
    """
    # A writer that opens the archive waits until a process whose parent was killed has ended.
    with durable.locked(root / JOURNALS):
        _expect(go_on)
        return _close_journal(root, serial, end_event, go_on)


def _expect(go_on: Callable[[], bool]) -> None:
    if not go_on():
        raise InterruptedError("the archive was closed")


def _close_journal(
    root: Path, serial: int, end_event: int, go_on: Callable[[], bool]
) -> SegmentName:
    journal = Journal.open(journal_path(root, serial), read_only=True)
    data = journal.map()
    found = find_records(
        data,
        journal.path,
        begin=RECORDS_AT,
        first_event=journal.first_event,
        mark=min(journal.header().mark, journal.size),
    )
    records = [
        Record(data, at, head)
        for at, head in found
        if head.first_event + head.n_events <= end_event
    ]
    columns = _join(records)
    name = SegmentName(serial, journal.first_event, end_event - 1)
    for kind, write in (
        (MATCHES, _write_matches),
        (ANSWERS, _write_answers),
        (EVENTS, _write_events),
    ):
        _expect(go_on)
        write(name.path(root, kind), columns)
    _expect(go_on)
    _write_index(name.path(root, INDEX), name, columns, measure_groups(name.path(root, EVENTS)))
    return name


def _join(records: list[Record]) -> _Columns:
    n_events = np.array([own.head.n_events for own in records], np.int64)
    first = records[0].head.first_event if records else 0
    return _Columns(
        records,
        np.arange(first, first + int(n_events.sum())),
        np.repeat(np.array([own.head.moment for own in records], np.int64), n_events),
        np.repeat(np.array([own.head.change for own in records], np.int64), n_events),
        _concatenate([own.counts() for own in records]).astype(np.int64),
    )


def _concatenate(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.empty(0, np.uint32)


# ── Parquet ─────────────────────────────────────────────────────────────────────────────────


def _write_parquet(path: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    with (
        durable.replacing(path) as file,
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_dictionary=["moment", "change"],
        ) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch, row_group_size=len(batch))


def _write_events(path: Path, columns: _Columns) -> None:
    _write_parquet(path, SCHEMA, _event_batches(columns))


def _event_batches(columns: _Columns) -> Iterator[pa.RecordBatch]:
    first = int(columns.numbers[0]) if len(columns.numbers) else 0
    places: list[int] = []
    texts: list[bytes] = []
    n_bytes = 0
    for record in columns.records:
        for row, text in list_texts(record):
            places.append(record.head.first_event + row - first)
            texts.append(text)
            n_bytes += len(text)
            if len(texts) >= N_ROWS or n_bytes >= N_TEXT_BYTES:
                yield _event_batch(columns, places, texts)
                places, texts, n_bytes = [], [], 0
    if texts:
        yield _event_batch(columns, places, texts)


def _event_batch(columns: _Columns, places: list[int], texts: list[bytes]) -> pa.RecordBatch:
    stamps = _stamp(columns, np.array(places))
    return pa.record_batch([*stamps, as_strings(texts)], schema=SCHEMA)


def _stamp(columns: _Columns, places: Any) -> list[pa.Array]:
    moments = pa.array(columns.moments[places]).cast(SCHEMA.field("moment").type)
    return [pa.array(columns.numbers[places]), moments, pa.array(columns.changes[places])]


def list_texts(record: Record) -> Iterator[tuple[int, bytes]]:
    """The places of the events of a record that have texts, and the texts."""
    if record.head.text_kind == JSON:
        starts, ends = record.json_spans()
        data = record.texts()
        for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            if end:
                yield row, bytes(data[start:end])
    elif record.head.text_kind == ARROW:
        yield from zip(np.flatnonzero(record.rows()).tolist(), to_json(record.batch()), strict=True)


def _write_matches(path: Path, columns: _Columns) -> None:
    _write_parquet(path, MATCH_SCHEMA, _match_batches(columns))


def _match_batches(columns: _Columns) -> Iterator[pa.RecordBatch]:
    """The events that matched something; a group is bounded by its rows and its matches."""
    matches = _concatenate([own.matches() for own in columns.records]).astype(np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(columns.counts)))
    matched = np.flatnonzero(columns.counts)
    at = 0
    while at < len(matched):
        most = np.searchsorted(starts, starts[matched[at]] + N_MATCHES, side="right") - 1
        end = max(at + 1, int(np.searchsorted(matched, most)))
        own = matched[at : min(end, at + N_MATCHED_ROWS)]
        low, high = int(starts[own[0]]), int(starts[own[-1] + 1])
        offsets = np.append(starts[own], high) - low
        lists = pa.ListArray.from_arrays(
            pa.array(offsets.astype(np.int32)),
            pa.array(matches[low:high]),
            type=MATCH_SCHEMA.field("subscriptions").type,
        )
        yield pa.record_batch([*_stamp(columns, own), lists], schema=MATCH_SCHEMA)
        at += len(own)


def measure_groups(path: Path) -> dict[str, np.ndarray]:
    """Where the row groups of a file and its footer begin, and the checksum of each: Parquet's own
    do not cover everything.
    """
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    data = pa.memory_map(str(path)).read_buffer()
    footer = data.size - 8 - metadata.serialized_size
    starts = [min(map(_first_byte, _column_chunks(group))) for group in groups]
    bounds = [*starts, footer, data.size]
    checksums = [zlib.crc32(data[low:high]) for low, high in pairwise(bounds)]
    return {
        "group_starts": np.array(bounds, np.int64),
        "group_checksums": np.array(checksums, np.uint32),
    }


def _column_chunks(group: Any) -> list[Any]:
    return [group.column(at) for at in range(group.num_columns)]


def _first_byte(chunk: Any) -> int:
    places = (chunk.dictionary_page_offset, chunk.data_page_offset)
    return min(int(place) for place in places if place is not None)


# ── arrays ──────────────────────────────────────────────────────────────────────────────────


def _write_index(
    path: Path, name: SegmentName, columns: _Columns, groups: dict[str, np.ndarray]
) -> None:
    heads = [own.head for own in columns.records]
    events = np.repeat(np.arange(len(columns.counts), dtype=np.uint32), columns.counts)
    matches = _concatenate([own.matches() for own in columns.records])
    arrays = {
        "entry_firsts": np.array([own.first_event for own in heads], np.int64),
        "entry_moments": np.array([own.moment for own in heads], np.int64),
        "entry_changes": np.array([own.change for own in heads], np.int64),
        **build_postings(matches, events)._asdict(),
        **groups,
    }
    facts = {
        "first_event": name.first_event,
        "next_event": name.last_event + 1,
        "first_moment": heads[0].moment if heads else 0,
        "last_moment": heads[-1].moment if heads else 0,
        "n_matches": len(matches),
    }
    write_arrays(path, facts, arrays)


def _write_answers(path: Path, columns: _Columns) -> None:
    """Answers by key; of equal keys the last one stays."""
    found = {}
    for record in columns.records:
        answer = record.answer()
        if answer is not None:
            found[answer.key] = (record.head.moment, answer)
    rows = [found[key] for key in sorted(found)]
    texts = [answer.answer for _, answer in rows]
    arrays = {
        "keys": np.frombuffer(b"".join(answer.key for _, answer in rows), f"S{DIGEST_BYTES}"),
        "requests": np.frombuffer(b"".join(answer.request for _, answer in rows), np.uint8),
        "moments": np.array([moment for moment, _ in rows], np.int64),
        "starts": np.cumsum([0, *map(len, texts)]),
        "texts": np.frombuffer(b"".join(texts), np.uint8),
    }
    write_arrays(path, {"last_moment": max((own[0] for own in rows), default=0)}, arrays)
