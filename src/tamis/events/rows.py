"""Events one by one as mappings, for operators and the tests evaluated with them.

Attributes are unchanged; texts of maps and JSON are read as the encoder reads them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.errors import InputError, RowError
from tamis.events.arrow_arrays import expect_readable
from tamis.events.json_texts import parse_exactly
from tamis.language.names import parse_path
from tamis.language.spelled import SpelledEvent

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tamis.language.schema import Schema


class EventRows:
    """The events of a batch by row; None for one that cannot be read."""

    def __init__(
        self,
        source: Any,
        column: str | None,
        schema: Schema,
        names: Collection[str] | None = None,
    ) -> None:
        """`names` are the needed columns, if attributes are in separate columns."""
        if source is None:
            raise InputError(
                "these events were encoded without the original events, which operators need",
                hint="encode them by Index.encode, a batch at a time",
            )
        is_table = isinstance(source, pa.Table | pa.RecordBatch)
        self._is_flat = is_table and column is None
        self._source = source.column(column) if is_table and column is not None else source
        self._schema = schema
        self._names = _asked_for(source.schema, names) if self._is_flat else ()

    def __getitem__(self, row: int) -> Mapping[str, Any] | None:
        if self._is_flat:
            return {name: _to_python(self._source.column(name)[row]) for name in self._names}
        event = self._source[row]
        if isinstance(event, pa.Scalar):
            return self._from_arrow(event)
        return self._from_python(event)

    def _from_python(self, event: Any) -> Mapping[str, Any] | None:
        if isinstance(event, str | bytes):
            with suppress(RowError):
                event = parse_exactly(event)
        return event if hasattr(event, "get") else None

    def _from_arrow(self, scalar: pa.Scalar) -> Mapping[str, Any] | None:
        if isinstance(scalar, pa.StructScalar):
            return _to_python(scalar) or {}
        value = scalar.as_py()
        if value is None:
            return {}
        if isinstance(scalar, pa.MapScalar):
            if pa.types.is_float32(scalar.type.item_type):
                value = [(own["key"].as_py(), _to_python(own["value"])) for own in scalar.values]
            return self._from_pairs(value)
        return self._from_python(value)

    def _from_pairs(self, pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
        event = SpelledEvent()
        for name, value in pairs:
            if value is not None:
                path = parse_path(name) if name else (name,)
                event.put(path, value, self._schema.get(path))
        return event


def _asked_for(schema: pa.Schema, names: Collection[str] | None) -> tuple[str, ...]:
    fields = [field for field in schema if names is None or field.name in names]
    for field in fields:
        expect_readable(field)
    return tuple(field.name for field in fields)


def _to_python(scalar: pa.Scalar) -> Any:
    """The value; a value that Python cannot represent, such as a date in the year 20000, is
    missing.
    """
    if isinstance(scalar, pa.StructScalar):
        return None if not scalar.is_valid else {x: _to_python(scalar[x]) for x in scalar}
    if isinstance(scalar, pa.ListScalar | pa.LargeListScalar) and scalar.is_valid:
        return list(map(_to_python, scalar.values))
    if isinstance(scalar, pa.FloatScalar) and scalar.is_valid:
        return np.float32(scalar.as_py())  # for type number, the value that it prints as
    try:
        return scalar.as_py()
    except Exception:  # OverflowError, UnicodeDecodeError, unknown zones, …
        return None
