"""Counts per subscription: functions for `mapInArrow`, before and after the shuffle.

A task counts for all subscriptions, and there are many tasks. So the shuffle does not transfer a
row for each subscription but runs of counts, which are added up and given their ids at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from tamis.spark.layout import KEPT, Layout
from tamis.spark.matching import OUTPUT_ROWS, Matcher, cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.match.index import Index
    from tamis.versions.part_set import PartSet

RUN: Final = 8_192  # subscriptions whose counts are shuffled as one value
KEYS: Final = ("part", "first")


def run_schema(layout: Layout) -> StructType:
    """The schema of runs of counts."""
    fields = [StructField("part", StringType()), StructField("first", LongType())]
    return _with_kept(layout, [*fields, StructField("counts", BinaryType())])


def count_schema(layout: Layout) -> StructType:
    """The schema of counts per subscription."""
    fields = [StructField("subscription_id", StringType()), StructField("n", LongType())]
    return _with_kept(layout, fields)


def _with_kept(layout: Layout, fields: list[StructField]) -> StructType:
    kept = [] if layout.kept_type is None else [StructField("kept", layout.kept_type)]
    return StructType(kept + fields)


@dataclass(frozen=True, slots=True)
class CountRuns(Matcher):
    """The counts of one partition's events: a row for each run of subscriptions (and kept value)
    with matches.
    """

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = self.parts.open()
        options = self.question.choose(index)
        counts = np.zeros(len(index), dtype=np.int64)
        kept = None
        for batch in cut(batches):
            for value, own in self._by_kept(batch):
                if kept is not None and not kept.equals(value):
                    yield from self._make_rows(index, counts, kept)
                    counts[:] = 0
                kept = value
                counts += index.count_by_subscription(self.encode(index, own), **options)
        yield from self._make_rows(index, counts, kept)
        self.report_news(index)

    def _by_kept(self, batch: pa.RecordBatch) -> Iterator[tuple[Any, pa.RecordBatch]]:
        """The batch split into runs of equal kept values."""
        if self.layout.kept_type is None:
            yield None, batch
            return
        encoded = pc.run_end_encode(batch.column(KEPT))
        start = 0
        for end, value in zip(encoded.run_ends.to_pylist(), encoded.values, strict=True):
            yield value, batch.slice(start, end - start)
            start = end

    def _make_rows(self, index: Index, counts: np.ndarray, kept: Any) -> Iterator[pa.RecordBatch]:
        for part, numbering in zip(self.parts.parts, index.view.catalogue.numberings, strict=True):
            so_far = numbering.to_part(counts)
            for first in range(0, len(so_far), RUN):
                own = so_far[first : first + RUN]
                if own.any():
                    columns: dict[str, Any] = {}
                    if self.layout.kept_type is not None:
                        columns["kept"] = pa.repeat(kept, 1)
                    columns |= {"part": [part.id], "first": [first], "counts": [own.tobytes()]}
                    yield pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True, slots=True)
class SumRuns:
    """One row for each subscription (and kept value) with matches; runs of one key must be
    adjacent.
    """

    parts: PartSet
    has_kept: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ids: dict[str, pa.Array] = {}  # of parts that were met
        for (kept, part_id, first), rows in groupby(self._rows(batches), lambda row: row[:3]):
            counts = sum(np.frombuffer(row[3], dtype=np.int64) for row in rows)
            if part_id not in ids:
                (part,) = (part for part in self.parts.parts if part.id == part_id)
                ids[part_id] = self.parts.map_part(part).ids
            yield self._name(kept, ids[part_id], first, np.asarray(counts))

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
        for batch in batches:
            # A kept value stays an Arrow scalar: its Python value need not be equal to it.
            kept = batch.column("kept") if self.has_kept else [None] * batch.num_rows
            named = (batch.column(name).to_pylist() for name in (*KEYS, "counts"))
            yield from zip(kept, *named, strict=True)

    def _name(self, kept: Any, ids: pa.Array, first: int, counts: np.ndarray) -> pa.RecordBatch:
        found = np.flatnonzero(counts)
        assert len(found) <= OUTPUT_ROWS, "a run is one batch"
        columns: dict[str, Any] = {"kept": pa.repeat(kept, len(found))} if self.has_kept else {}
        columns["subscription_id"] = ids.take(pa.array(first + found))
        columns["n"] = pa.array(counts[found])
        return pa.RecordBatch.from_pydict(columns)
