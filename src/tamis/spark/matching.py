"""What a Python worker does with Arrow batches of events: functions for `mapInArrow`.

Each is a picklable object: a question and what to read out. It opens the parts on the worker.
Batches are cut to a size that keeps memory flat, whatever one event or one batch holds.
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

    from tamis.events.encoder import EncodedEvents
    from tamis.match.index import Index
    from tamis.spark.layout import Layout
    from tamis.spark.operators import News
    from tamis.versions.part_set import PartSet

ROWS_AT_ONCE: Final = 16_384  # events taken at once
MOST_BYTES: Final = 32 << 20  # of their Arrow data
OUTPUT_ROWS: Final = 65_536  # matches in one batch to Spark


@dataclass(frozen=True, slots=True)
class WorkerQuestion:
    """Which parts are asked, of which columns of events, and which subscriptions answer."""

    parts: PartSet
    layout: Layout
    news: News | None = None  # of operators
    subset: tuple[str, ...] | None = None  # ids; those that the parts do not have match nothing
    tagged: tuple[str, ...] | None = None

    def choose(self, index: Index) -> dict[str, Any]:
        """The options of the methods of `Index` that match."""
        options: dict[str, Any] = {"at": self.parts.at}
        if self.tagged is not None:
            options["subset"] = index.list_tagged(self.tagged)
        if self.subset is not None:
            known = set(options.get("subset", index))
            options["subset"] = [one for one in self.subset if one in known]
        return options


@dataclass(frozen=True, slots=True)
class Matcher:
    """Common to all: opens the index on the worker and reads batch after batch."""

    question: WorkerQuestion

    @property
    def parts(self) -> PartSet:
        """The parts that are asked."""
        return self.question.parts

    @property
    def layout(self) -> Layout:
        """The columns of events."""
        return self.question.layout

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = self.parts.open()
        options = self.question.choose(index)
        for batch in cut(batches):
            yield from self.read(index, batch, options)
        self.report_news(index)

    def read(
        self, index: Index, batch: pa.RecordBatch, options: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """What is made of one batch."""
        raise NotImplementedError

    def report_news(self, index: Index) -> None:
        """Report on operators since the last task."""
        if self.question.news is not None:
            self.question.news.report(index)

    def encode(self, index: Index, batch: pa.RecordBatch) -> EncodedEvents:
        """The events of a batch as the index reads them."""
        return index.encode(only_attributes(batch), column=self.layout.event)


@dataclass(frozen=True, slots=True)
class MatchRows(Matcher):
    """One row for each match: event_id, subscription_id, and the other columns asked for."""

    with_tags: bool = False
    with_version: bool = False
    with_bindings: bool = False
    columns: tuple[str, ...] = ()  # of subscriptions
    n_best: int | None = None  # of each event; all matches if None

    def read(
        self, index: Index, batch: pa.RecordBatch, options: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """The matches of one batch."""
        chunks: list[pa.RecordBatch] = []
        n_waiting = 0
        for chunk in self._match(index, self.encode(index, batch), options):
            chunks.append(chunk)
            n_waiting += len(chunk)
            if n_waiting >= OUTPUT_ROWS:
                yield from self._make_rows(index, batch, chunks)
                chunks, n_waiting = [], 0
        if n_waiting:
            yield from self._make_rows(index, batch, chunks)

    def _match(
        self, index: Index, events: EncodedEvents, options: dict[str, Any]
    ) -> Iterable[pa.RecordBatch]:
        if self.n_best is None:
            return index.match_chunks(events, bindings=self.with_bindings, **options)
        best: list[pa.RecordBatch] = index.match_top(events, self.n_best, **options).to_batches()
        return best

    def _make_rows(
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
            columns["subscription_id"] = index.ids.take(at_ids)
            if bindings is not None:
                columns["bindings"] = bindings.slice(start, OUTPUT_ROWS)
            if self.with_tags:
                columns["tags"] = index.view.details.column("tags").take(at_ids)
            if self.with_version:
                columns["version"] = pa.repeat(self.parts.version.name, len(at_rows))
            for name in self.columns:
                columns[name] = index.view.details.text_column(name).take(at_ids)
            yield pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True, slots=True)
class MatchLists(Matcher):
    """One row for each event: event_id and the list of subscription ids."""

    def read(
        self, index: Index, batch: pa.RecordBatch, options: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """The lists of one batch."""
        lists = plain_lists(index.match_lists(self.encode(index, batch), **options))
        yield pa.RecordBatch.from_pydict({"event_id": batch.column(ID), "subscription_ids": lists})


@dataclass(frozen=True, slots=True)
class CountByEvent(Matcher):
    """One row for each event: event_id and how many subscriptions it satisfies."""

    def read(
        self, index: Index, batch: pa.RecordBatch, options: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """The counts of one batch."""
        counts = index.count_by_event(self.encode(index, batch), **options)
        yield pa.RecordBatch.from_pydict({"event_id": batch.column(ID), "n": pa.array(counts)})


@dataclass(frozen=True, slots=True)
class CountTerms(Matcher):
    """One row for each word or phrase that some part looks for: how many events have it."""

    SCHEMA: ClassVar[str] = "attribute string, term string, n bigint"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = self.parts.open()
        counts = TermCounts(index.parts)
        for batch in cut(batches):
            counts.add(self.encode(index, batch))
        for attribute, counted in counts.by_attribute().items():
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
        table = self.parts.inspect().view.encoder.table
        for batch in cut(batches):
            rejects = ListedRejects()
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
                n_rows + piece.num_rows > ROWS_AT_ONCE or n_bytes + piece.nbytes > MOST_BYTES
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
    n_rows = max(1, min(ROWS_AT_ONCE, int(MOST_BYTES / max(per_row, 1))))
    for start in range(0, batch.num_rows, n_rows):
        yield batch.slice(start, n_rows)


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def plain_lists(lists: pa.ChunkedArray) -> pa.ListArray:
    """The lists that `Index.match_lists` returns, of texts and with 32-bit offsets, for Spark."""
    plain = lists.cast(pa.list_(pa.string())).combine_chunks()
    return plain.chunk(0) if isinstance(plain, pa.ChunkedArray) else plain
