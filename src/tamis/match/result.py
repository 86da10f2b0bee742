"""Tables of matches: who matched what, and what else was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.match.batch import Pairs, allocate
from tamis.match.event_ids import EventIds
from tamis.match.kernels.readout import write_rows
from tamis.match.operators import spell_bindings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tamis.index.contents import Contents
    from tamis.match.details import Details

EVENT_ROW: Final = pa.field("event_row", pa.int32())
SUBSCRIPTION_ID: Final = pa.field("subscription_id", pa.dictionary(pa.int32(), pa.string()))
BINDINGS: Final = pa.field("bindings", pa.string())


class Found(NamedTuple):
    """Some matches."""

    pairs: Pairs  # by rows of all events
    first_row: int  # of the batch of events that they are in
    event_ids: pa.Array | None  # of that batch


class Result:
    """Turns matches into record batches of the columns that were asked for."""

    def __init__(
        self,
        contents: Contents,
        details: Details,
        event_id: str | None,
        columns: Sequence[str],
        *,
        bindings: bool,
    ) -> None:
        details.expect(columns)
        self.event_ids = None if event_id is None else EventIds(event_id, contents.schema)
        self._ids = contents.ids
        self._columns = {name: details.column(name) for name in columns}
        self._bindings = bindings

    def schema(self) -> pa.Schema:
        """The columns; ids of events have a type when the first of them are read."""
        event = EVENT_ROW
        if self.event_ids is not None:
            event = pa.field("event_id", self.event_ids.type or pa.null())
        own = [pa.field(name, column.type) for name, column in self._columns.items()]
        return pa.schema([event, SUBSCRIPTION_ID, *([BINDINGS] if self._bindings else []), *own])

    def batches(self, found: Iterable[Found]) -> Iterator[pa.RecordBatch]:
        """The matches, a block of events at a time."""
        for some in found:
            pairs = some.pairs
            rows = allocate(len(pairs.subscriptions), np.int32)
            write_rows(pairs.first_row, pairs.starts, rows)
            event = pa.array(rows)
            if some.event_ids is not None:
                event = some.event_ids.take(pa.array(rows - some.first_row))
            ordinals = pa.array(pairs.subscriptions)
            columns = [event, pa.DictionaryArray.from_arrays(ordinals, self._ids)]
            columns += [spell_bindings(pairs)] if self._bindings else []
            columns += [column.take(ordinals) for column in self._columns.values()]
            yield pa.record_batch(columns, schema=self.schema())
        if self.event_ids is not None:
            self.event_ids.report()
