"""Tables of the parts, read by workers: the driver does not hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tamis.versions.tables import PACKED, list_subscriptions, read_rejects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from tamis.versions.part_set import PartSet

CHUNK_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class ReadRejects:
    """The rejects of the parts with the given numbers."""

    parts: PartSet
    SCHEMA: ClassVar[str] = (
        "subscription_id string, expression string, code string, line int, `column` int, "
        "message string, hint string"
    )

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in numbered_parts(self.parts, batches).parts:
            yield from read_rejects(self.parts, part).to_batches(max_chunksize=CHUNK_ROWS)


@dataclass(frozen=True, slots=True)
class ReadSubscriptions:
    """The subscriptions of the parts with the given numbers, except replaced ones."""

    parts: PartSet
    with_attributes: bool = False  # as JSON objects, in an additional column

    def schema(self) -> str:
        """The schema of the result."""
        more = f", `{PACKED}` string" if self.with_attributes else ""
        return (
            "subscription_id string, expression string, tags array<string>, owner string, "
            f"valid_from timestamp, valid_until timestamp{more}"
        )

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in numbered_parts(self.parts, batches).open_parts():
            table = list_subscriptions(part, with_attributes=self.with_attributes)
            yield from table.to_batches(max_chunksize=CHUNK_ROWS)


def numbered_parts(parts: PartSet, batches: Iterable[pa.RecordBatch]) -> PartSet:
    """The parts whose numbers are in the first column."""
    numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
    return parts.only([parts.parts[number] for number in numbers])
