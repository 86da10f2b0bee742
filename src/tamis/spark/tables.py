"""Tables that lie in the parts, read by workers: no driver holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from tamis.spark.parts import DETAIL_SCHEMA, DETAILS, REJECTS, all_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.spark.manifest import Part
    from tamis.spark.parts import PartSet


@dataclass(frozen=True, slots=True)
class ReadRejects:
    """The rejects of the parts whose numbers come in."""

    parts: PartSet
    SCHEMA: ClassVar[str] = (
        "subscription_id string, expression string, code string, line int, `column` int, "
        "message string, hint string"
    )

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in numbered_parts(self.parts, batches):
            table = self.parts.read(part, REJECTS)
            yield from [] if table is None else table.to_batches(max_chunksize=65_536)


@dataclass(frozen=True, slots=True)
class ReadSubscriptions:
    """The subscriptions of the parts whose numbers come in, replaced ones left out."""

    parts: PartSet
    SCHEMA: ClassVar[str] = (
        "subscription_id string, expression string, tags array<string>, owner string, "
        "valid_from timestamp, valid_until timestamp"
    )

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in numbered_parts(self.parts, batches):
            table = self._read(part)
            yield from table.to_batches(max_chunksize=65_536)

    def _read(self, part: Part) -> pa.Table:
        contents = self.parts.inspect(part).contents
        details = self.parts.read(part, DETAILS)
        if details is None:
            nulls = [pa.nulls(len(contents.ids), field.type) for field in DETAIL_SCHEMA]
            details = pa.table(nulls, schema=DETAIL_SCHEMA)
        table = pa.table(
            {
                "subscription_id": contents.ids,
                "expression": all_texts(contents),
                "tags": contents.tags,
                **{name: details[name] for name in DETAIL_SCHEMA.names[1:]},
            }
        )
        gone = self.parts.replaced(part)
        return table if gone is None else table.filter(pc.invert(pc.is_in(contents.ids, gone)))


def numbered_parts(parts: PartSet, batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
    """The parts whose numbers are in the first column."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield parts.parts[number]
