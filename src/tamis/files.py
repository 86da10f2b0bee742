"""Where do subscriptions and events come from? Rows of JSON lines, CSV and Parquet files.

A file that cannot be read is an `InputError`. A row that cannot be read is a row with an error,
and the rows after it still come.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import InputError
from tamis.language.schema import Schema
from tamis.records import (
    Columns,
    Format,
    RowError,
    Values,
    detect_format,
    json_kind,
    opened,
    parse_event,
    read_records,
    refuse_encoding,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.records import Record, Source

__all__ = [
    "Columns",
    "EventRow",
    "Format",
    "RowError",
    "SubscriptionRow",
    "detect_format",
    "parse_event",
    "read_events",
    "read_schema",
    "read_subscriptions",
]


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """One row of a file of subscriptions; with an error, the rest may be unknown."""

    number: int  # of the record, from 1; header and blank lines do not count
    file_line: int | None  # where the record starts, from 1; None in Parquet
    subscription_id: str | None
    text: str
    error: RowError | None = None
    given: Values | None = None  # with an error: what the row has as its id and its expression


@dataclass(frozen=True, slots=True)
class EventRow:
    """One row of a file of events; with an error, the event is empty."""

    number: int
    file_line: int | None
    event: Values
    error: RowError | None = None
    n_bytes: int = 0  # about as many as the event takes


def read_subscriptions(
    source: Source, file_format: Format | None = None, columns: Columns | None = None
) -> Iterator[SubscriptionRow]:
    """The subscriptions of a file or of an open binary stream, one at a time.

    Ids are strings or integers, and are strings in the rows.
    """
    columns = columns or Columns()
    for record in read_records(source, file_format, columns):
        yield to_subscription(record, columns)


def read_events(source: Source, file_format: Format | None = None) -> Iterator[EventRow]:
    """The events of a JSON lines or Parquet file, or of an open binary stream, one at a time."""
    for record in read_records(source, file_format, None):
        yield EventRow(record.number, record.file_line, record.values, record.error, record.n_bytes)


def read_schema(text: str) -> Schema:
    """The schema that a DDL or JSON text declares, or the `.json` file that the text names."""
    if not text.strip().endswith(".json"):
        return Schema.of(text)
    path = Path(text.strip())
    with opened(path) as stream:
        try:
            declared = json.loads(stream.read().decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(declared, dict):
        raise InputError(
            f"{path} holds {json_kind(declared)}; an object is expected",
            hint='such as {"level": "integer", "tags": "array<string>"}',
        )
    return Schema.of(declared)


# ── subscriptions ───────────────────────────────────────────────────────────────────────────


def to_subscription(record: Record, columns: Columns) -> SubscriptionRow:
    """The subscription that a record holds, or what is wrong with it."""
    number, file_line = record.number, record.file_line
    if record.error is not None:
        return SubscriptionRow(number, file_line, None, "", record.error)
    subscription_id = None
    id_name, expression_name = found = columns.find(record.values)
    try:
        if id_name is not None:
            subscription_id = _read_id(record.values[id_name])
        if id_name is None or expression_name is None:
            raise RowError(
                "missing-key",
                f"the row has no {columns.describe_missing(found)}",
                hint=f"its keys: {', '.join(record.values) or 'none'}",
            )
        text = _read_text(record.values[expression_name])
    except RowError as error:
        names = {"subscription_id": id_name, "expression": expression_name}
        given = {part: record.values[name] for part, name in names.items() if name is not None}
        return SubscriptionRow(number, file_line, subscription_id, "", error, given)
    return SubscriptionRow(number, file_line, subscription_id, text)


def _read_id(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, bytes):
        _refuse_bytes(value)
    if not isinstance(value, str) or not value:
        found = "an empty string" if value == "" else json_kind(value)
        message = f"the id is {found}; a string or a whole number is expected"
        raise RowError("bad-id", message)
    return value


def _read_text(value: Any) -> str:
    if isinstance(value, bytes):
        _refuse_bytes(value)
    if not isinstance(value, str):
        raise RowError("not-text", f"the expression is {json_kind(value)}; text is expected")
    return value


def _refuse_bytes(value: bytes) -> None:
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise refuse_encoding(error) from None
