"""What a Python worker does with Arrow batches of events: functions for `mapInArrow`.

Each is a picklable object that is told its parts and opens them on the worker. Batches are cut to
a size that keeps memory flat, whatever one event or one batch holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from tamis.events.read import read_events
from tamis.match.terms import TermCounts
from tamis.spark.event_rejects import ListedRejects
from tamis.spark.layout import ID, KEPT, only_attributes, undisguised

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.match.index import Index
    from tamis.spark.layout import Layout
    from tamis.spark.operators import News
    from tamis.versions.part_set import PartSet

MOST_ROWS: Final = 16_384  # events taken at once
MOST_BYTES: Final = 32 << 20  # of their Arrow data
OUTPUT_ROWS: Final = 65_536  # matches in one batch to Spark


@dataclass(frozen=True, slots=True)
class Matcher:
    """Common to all: which parts, which columns."""

    parts: PartSet
    layout: Layout
    news: News | None = None  # of operators

    def tell_news(self, indexes: list[Index]) -> None:
        """Hand over what was seen of operators since the last task."""
        if self.news is not None:
            self.news.tell(indexes)

    def encode(self, index: Index, batch: pa.RecordBatch) -> Any:
        """The events of a batch as the index reads them."""
        return index.encode(only_attributes(batch), column=self.layout.event)


@dataclass(frozen=True, slots=True)
class MatchRows(Matcher):
    """One row for each match: event_id, subscription_id, and what was asked for beside them."""

    with_tags: bool = False
    with_version: bool = False
    with_bindings: bool = False
    columns: tuple[str, ...] = ()  # of subscriptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        indexes = self.parts.open()
        for batch in cut(batches):
            for index in indexes:
                yield from self._match(index, batch)
        self.tell_news(indexes)

    def _match(self, index: Index, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        chunks: list[pa.RecordBatch] = []
        n_waiting = 0
        for chunk in index.match_chunks(self.encode(index, batch), bindings=self.with_bindings):
            chunks.append(chunk)
            n_waiting += len(chunk)
            if n_waiting >= OUTPUT_ROWS:
                yield from self._tell(index, batch, chunks)
                chunks, n_waiting = [], 0
        if n_waiting:
            yield from self._tell(index, batch, chunks)

    def _tell(
        self, index: Index, batch: pa.RecordBatch, chunks: list[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        all_rows = np.concatenate([chunk["event_row"].to_numpy() for chunk in chunks])
        all_ordinals = np.concatenate(
            [chunk["subscription_id"].indices.to_numpy() for chunk in chunks]
        )
        bindings = (
            pa.concat_arrays([chunk["bindings"] for chunk in chunks])
            if self.with_bindings
            else None
        )
        # One event can match a million subscriptions: what goes out is cut as well.
        for start in range(0, len(all_rows), OUTPUT_ROWS):
            at_rows = pa.array(all_rows[start : start + OUTPUT_ROWS])
            at_ids = pa.array(all_ordinals[start : start + OUTPUT_ROWS])
            columns = {"event_id": batch.column(ID).take(at_rows)}
            if self.layout.kept_type is not None:
                columns[KEPT] = batch.column(KEPT).take(at_rows)
            columns["subscription_id"] = index.contents.ids.take(at_ids)
            if bindings is not None:
                columns["bindings"] = bindings.slice(start, OUTPUT_ROWS)
            if self.with_tags:
                columns["tags"] = index.contents.tags.take(at_ids)
            if self.with_version:
                columns["version"] = pa.repeat(self.parts.version.name, len(at_rows))
            for name in self.columns:
                columns[name] = index.details.text_column(name).take(at_ids)
            yield pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True, slots=True)
class MatchLists(Matcher):
    """One row for each event: event_id and the list of subscription ids."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        indexes = self.parts.open()
        for batch in cut(batches):
            lists = match_lists(indexes, [self.encode(index, batch) for index in indexes])
            yield pa.RecordBatch.from_pydict(
                {"event_id": batch.column(ID), "subscription_ids": lists}
            )
        self.tell_news(indexes)


@dataclass(frozen=True, slots=True)
class CountByEvent(Matcher):
    """One row for each event: event_id and how many subscriptions it satisfies."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        indexes = self.parts.open()
        for batch in cut(batches):
            counts = sum(index.count_by_event(self.encode(index, batch)) for index in indexes)
            total = np.broadcast_to(counts, batch.num_rows).astype(np.int64)
            yield pa.RecordBatch.from_pydict({"event_id": batch.column(ID), "n": pa.array(total)})
        self.tell_news(indexes)


@dataclass(frozen=True, slots=True)
class CountTerms(Matcher):
    """One row for each word or phrase that some part looks for: how many events have it."""

    SCHEMA: ClassVar[str] = "attribute string, term string, n bigint"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        indexes = self.parts.open()
        counts = [TermCounts(index.parts) for index in indexes]
        for batch in cut(batches):
            for index, own in zip(indexes, counts, strict=True):
                own.add(self.encode(index, batch))
        # Parts that look for the same term have counted the same events.
        merged: dict[str, dict[str, int]] = {}
        for own in counts:
            for attribute, terms in own.by_attribute().items():
                merged.setdefault(attribute, {}).update(terms)
        for attribute, counted in merged.items():
            whole = pa.RecordBatch.from_pydict(
                {
                    "attribute": pa.repeat(attribute, len(counted)),
                    "term": pa.array(counted, pa.string()),
                    "n": pa.array(counted.values(), pa.int64()),
                }
            )
            for start in range(0, len(counted), OUTPUT_ROWS):
                yield whole.slice(start, OUTPUT_ROWS)


@dataclass(frozen=True, slots=True)
class RejectValues(Matcher):
    """One row for each value (or whole event) that cannot be read as the schema says."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Parts may look at the same attributes: each is told of once.
        tables = []
        seen: set[tuple[str, ...]] = set()
        for index in map(self.parts.inspect, self.parts.parts):
            tables.append((index.encoder.table, frozenset(seen)))
            seen.update(index.encoder.table.paths)
        for batch in cut(batches):
            for number, (table, known) in enumerate(tables):
                rejects = ListedRejects(known, has_rows=number == 0)
                source = batch if self.layout.event is None else batch.column(self.layout.event)
                read_events(source, table, rejects)
                if self.layout.kept_type is not None:
                    rejects.add_nulls(batch.column(KEPT))
                if rejects.listed:
                    yield rejects.to_batch(batch.column(ID))


# ── helpers ─────────────────────────────────────────────────────────────────────────────────


def cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches in pieces of bounded rows and bytes, columns named as in the events; tiny ones
    are put together."""
    waiting: list[pa.RecordBatch] = []
    n_rows = n_bytes = 0
    for batch in batches:
        for piece in _split(undisguised(batch)):
            if waiting and (
                n_rows + piece.num_rows > MOST_ROWS or n_bytes + piece.nbytes > MOST_BYTES
            ):
                yield _join(waiting)
                waiting, n_rows, n_bytes = [], 0, 0
            waiting.append(piece)
            n_rows += piece.num_rows
            n_bytes += piece.nbytes
    if waiting:
        yield _join(waiting)


def _split(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows == 0:
        return
    per_row = batch.nbytes / batch.num_rows
    n_rows = max(1, min(MOST_ROWS, int(MOST_BYTES / max(per_row, 1))))
    for start in range(0, batch.num_rows, n_rows):
        yield batch.slice(start, n_rows)


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def match_lists(indexes: list[Index], encoded: list[Any]) -> pa.ListArray:
    """The ids of the subscriptions of all parts that each event satisfies, in order of parts."""
    rows: list[np.ndarray] = [np.empty(0, dtype=np.int64)]
    ids: list[pa.Array] = [pa.array([], pa.string())]
    for index, events in zip(indexes, encoded, strict=True):
        for chunk in index.match_chunks(events):
            rows.append(chunk["event_row"].to_numpy())
            ids.append(index.contents.ids.take(chunk["subscription_id"].indices))
    all_rows, all_ids = np.concatenate(rows), pa.concat_arrays(ids)
    if len(indexes) > 1:
        order = np.argsort(all_rows, kind="stable")
        all_ids = all_ids.take(pa.array(order))
    n_rows = encoded[0].n_rows
    starts = np.zeros(n_rows + 1, dtype=np.int32)
    np.cumsum(np.bincount(all_rows, minlength=n_rows), out=starts[1:])
    return pa.ListArray.from_arrays(pa.array(starts), all_ids)
