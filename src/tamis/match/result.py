"""Tables of matches: event, subscription, and the requested columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.arguments import expect_name
from tamis.errors import InputError
from tamis.match.batch import Pairs, allocate
from tamis.match.event_columns import EventColumn, read_names
from tamis.match.kernels.readout import write_rows
from tamis.match.operators import spell_bindings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tamis.match.catalogue import Catalogue
    from tamis.match.details import Details

EVENT_ROW: Final = pa.field("event_row", pa.int32())
SUBSCRIPTION_ID: Final = pa.field("subscription_id", pa.dictionary(pa.int32(), pa.string()))
BINDINGS: Final = pa.field("bindings", pa.string())
TAKEN: Final = ("event_row", "event_id", "subscription_id", "bindings")  # our columns


def refuse_columns(**arguments: Any) -> None:
    """Raise an error for columns of a result that is only a list of ids."""
    for name, given in arguments.items():
        if given is not None and given not in ((), []):
            raise InputError(
                f"{name} is {given!r}, but the result for one event is a list of ids",
                hint="pass a list of one event to get a table",
            )


class FoundMatches(NamedTuple):
    """Some matches."""

    pairs: Pairs  # by rows of all events
    first_row: int  # of the batch of events that they are in
    event_columns: list[pa.Array]  # of that batch


class Result:
    """Converts matches to record batches of the requested columns."""

    def __init__(  # noqa: PLR0913 - what is asked for
        self,
        catalogue: Catalogue,
        details: Details,
        event_id: str | None,
        columns: Sequence[str],
        event_columns: Sequence[str],
        bindings: bool = False,
    ) -> None:
        columns = details.expect(columns, TAKEN)
        names = read_names(event_columns, TAKEN, columns)
        schema = catalogue.schema
        self._has_ids = event_id is not None
        ids = []
        if event_id is not None:
            ids = [EventColumn(expect_name(event_id, "event_id"), schema, "event_id")]
        # Readers of the columns of events; the id, if there is one, comes first.
        self.readers = ids + [EventColumn(name, schema, "event_columns") for name in names]
        self._ids = catalogue.ids
        self._columns = {name: details.column(name) for name in columns}
        self._bindings = bindings

    def schema(self) -> pa.Schema:
        """The columns; those of events have a type once the first of them are read."""
        own = [pa.field(name, column.type) for name, column in self._columns.items()]
        read = [pa.field(reader.name, reader.type or pa.null()) for reader in self.readers]
        event = read.pop(0).with_name("event_id") if self._has_ids else EVENT_ROW
        bindings = [BINDINGS] if self._bindings else []
        return pa.schema([event, SUBSCRIPTION_ID, *bindings, *own, *read])

    def batches(self, found: Iterable[FoundMatches]) -> Iterator[pa.RecordBatch]:
        """The matches, one block of events at a time."""
        for some in found:
            pairs = some.pairs
            rows = allocate(len(pairs.subscriptions), np.int32)
            write_rows(pairs.first_row, pairs.starts, rows)
            own_rows = pa.array(rows - some.first_row) if some.event_columns else None
            read = [column.take(own_rows) for column in some.event_columns]
            event = read.pop(0) if self._has_ids else pa.array(rows)
            ordinals = pa.array(pairs.subscriptions)
            columns = [event, pa.DictionaryArray.from_arrays(ordinals, self._ids)]
            columns += [spell_bindings(pairs)] if self._bindings else []
            columns += [column.take(ordinals) for column in self._columns.values()]
            yield pa.record_batch(columns + read, schema=self.schema())
        for reader in self.readers:
            reader.report()
