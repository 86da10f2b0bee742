"""Tables that lie in the parts, read by workers: no driver holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from tamis.index.stored_texts import all_texts
from tamis.index.validity import limits_columns
from tamis.match.details import Details
from tamis.spark.parts import REJECTS

OWNER: Final = "owner"
# All attributes of a subscription in one column, as objects of JSON; nobody else's column.
PACKED: Final = "\x01attributes"

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
    with_attributes: bool = False  # as objects of JSON, in one more column

    def schema(self) -> str:
        """What comes out."""
        more = f", `{PACKED}` string" if self.with_attributes else ""
        return (
            "subscription_id string, expression string, tags array<string>, owner string, "
            f"valid_from timestamp, valid_until timestamp{more}"
        )

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in numbered_parts(self.parts, batches):
            table = self._read(part)
            yield from table.to_batches(max_chunksize=65_536)

    def _read(self, part: Part) -> pa.Table:
        contents = self.parts.inspect(part).contents
        n_subscriptions = len(contents.ids)
        nobody = pa.nulls(n_subscriptions, pa.string())
        owner = Details(contents).column(OWNER) if OWNER in contents.attribute_names else nobody
        start, end = limits_columns(contents.validity, n_subscriptions)
        columns = {
            "subscription_id": contents.ids,
            "expression": all_texts(contents.texts),
            "tags": contents.tags,
            OWNER: owner.cast(pa.string()),
            "valid_from": start,
            "valid_until": end,
        }
        if self.with_attributes:
            own = contents.attributes
            columns[PACKED] = nobody if own is None else all_texts(own)
        table = pa.table(columns)
        gone = self.parts.replaced(part)
        return table if gone is None else table.filter(pc.invert(pc.is_in(contents.ids, gone)))


def numbered_parts(parts: PartSet, batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
    """The parts whose numbers are in the first column."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield parts.parts[number]
