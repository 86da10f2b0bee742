"""Events one by one as mappings, for operators and what is decided beside them.

Attributes are as they come; texts of maps and JSON are read as the encoder reads them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import InputError
from tamis.events.mappings import parse_exactly
from tamis.events.spelled import read_text
from tamis.language.names import parse_path
from tamis.language.types import WrongTypeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.schema import Schema


class EventRows:
    """The events of a batch by row; None for one that cannot be read."""

    def __init__(self, source: Any, column: str | None, schema: Schema) -> None:
        if source is None:
            raise InputError(
                "these events were encoded without being kept, and operators need them",
                hint="encode them by Index.encode, a batch at a time",
            )
        is_table = isinstance(source, pa.Table | pa.RecordBatch)
        self._is_flat = is_table and column is None
        self._source = source.column(column) if is_table and column is not None else source
        self._schema = schema

    def __getitem__(self, row: int) -> Mapping[str, Any] | None:
        if self._is_flat:
            return dict(self._source.slice(row, 1).to_pylist()[0])
        event = self._source[row]
        if isinstance(event, pa.Scalar):
            return self._from_arrow(event)
        return self._from_python(event)

    def _from_python(self, event: Any) -> Mapping[str, Any] | None:
        if event is None:
            return {}
        if isinstance(event, str | bytes):
            with suppress(ValueError, TypeError, RecursionError):
                event = parse_exactly(event)
        return event if hasattr(event, "get") else None

    def _from_arrow(self, scalar: pa.Scalar) -> Mapping[str, Any] | None:
        value = scalar.as_py()
        if isinstance(scalar, pa.MapScalar) and value is not None:
            return self._from_pairs(value)
        return self._from_python(value)

    def _from_pairs(self, pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
        event: dict[str, Any] = {}
        for name, value in pairs:
            path = parse_path(name) if name else (name,)
            type_ = self._schema.read_type(path)
            read = value
            if isinstance(value, str) and type_ is not None:
                with suppress(WrongTypeError):
                    read = read_text(value, type_)
            inner = event
            for step in path[:-1]:
                inner = inner.setdefault(step, {})
            inner[path[-1]] = read
        return event
