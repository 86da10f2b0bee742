"""Every value of an event that cannot be read, as rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.events.rejects import Refused, Reject, RejectKind, Rejects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.schema import Path
    from tamis.language.types import Type

MOST_LISTED: Final = 100_000  # of one batch; a column of the wrong type would list every event
NULL_EVENT: Final = "the event is NULL; it counts as an event without attributes"
_TEXTS: Final = ("attribute", "expected", "value", "reason", "kind")


class ListedRejects(Rejects):
    """Rejects of which each one is kept."""

    __slots__ = ("listed",)

    def __init__(self) -> None:
        super().__init__()
        self.listed: list[Reject] = []

    def add_values(self, refused: Refused, type_: Type, paths: Sequence[Path]) -> None:
        """Keep each value."""
        for at in np.argsort(refused.rows, kind="stable").tolist():
            reject = self._make_reject(at, refused, type_, paths)
            self._add(reject.attribute, reject.kind, [reject])

    def _add(
        self, attribute: str | None, kind: RejectKind, rejects: list[Reject], n_rejects: int = 1
    ) -> None:
        if len(self.listed) < MOST_LISTED:
            self.listed.extend(rejects)

    def add_nulls(self, is_null: pa.Array) -> None:
        """Keep a row for each whole event that is NULL."""
        for row in np.flatnonzero(is_null.to_numpy(zero_copy_only=False)).tolist():
            reject = Reject(row, None, None, "NULL", NULL_EVENT, RejectKind.BAD_ROW)
            self._add(None, reject.kind, [reject])

    def to_batch(self, event_ids: pa.Array) -> pa.RecordBatch:
        """The rejects with the ids of their events."""
        columns: dict[str, Any] = {
            "event_id": event_ids.take(pa.array([reject.row for reject in self.listed], pa.int64()))
        }
        rows = [asdict(reject) for reject in self.listed]
        for name in _TEXTS:
            values = [None if row[name] is None else str(row[name]) for row in rows]
            columns[name] = pa.array(values, pa.string())
        return pa.RecordBatch.from_pydict(columns)
