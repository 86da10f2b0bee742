"""Reads subscriptions of files: rows of an id, an expression, and other columns.

An unreadable file raises an `InputError`. An unreadable row becomes a row with an error, and the
rows after it are still read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.errors import RowError
from tamis.events.json_texts import json_kind, refuse_encoding
from tamis.input.formats import Format, read_rows
from tamis.input.rows import Columns, Values, Wanted
from tamis.input.sources import Source, open_stream
from tamis.language.moments import HINT as MOMENT_HINT
from tamis.language.moments import REVERSED_HINT, read_moment
from tamis.language.types import WrongTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

VALIDITY: Final = ("valid_from", "valid_until")

CSV_HINT: Final = (
    "write an expression with a comma or a double quote in double quotes, "
    'and a double quote inside as ""'
)


class Details(NamedTuple):
    """The details of a subscription besides its id and its expression."""

    tags: tuple[str, ...]
    valid_from: datetime | None
    valid_until: datetime | None
    attributes: Mapping[str, Any]  # all other columns that have a value


NO_DETAILS: Final = Details((), None, None, {})


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """One row of a file of subscriptions; with an error, the rest may be unknown."""

    number: int  # of the record, from 1; header and blank lines do not count
    file_line: int | None  # first line of the record, from 1; None in formats without lines
    subscription_id: str | None
    text: str
    error: RowError | None = None
    given: Values | None = None  # with an error: the row's id and expression, unchecked
    details: Details = NO_DETAILS


def read_subscriptions(
    source: Source, file_format: Format | None = None, columns: Columns | None = None
) -> Iterator[SubscriptionRow]:
    """The subscriptions of a source, one at a time.

    Ids are strings or integers, and are strings in the rows.
    """
    columns = columns or Columns()
    with open_stream(source, file_format) as stream:
        wanted = Wanted(expect=partial(_expect_columns, columns, stream.name), hint=CSV_HINT)
        for rows in read_rows(stream, wanted):
            lines = rows.lines or repeat(None)
            for number, line, found in zip(
                rows.numbers, lines, rows.to_records(columns), strict=False
            ):
                yield to_subscription(number, line, found, columns)


def _expect_columns(columns: Columns, name: str, names: list[str]) -> None:
    columns.expect(names, name)


def to_subscription(
    number: int, file_line: int | None, values: Values | RowError, columns: Columns
) -> SubscriptionRow:
    """The subscription of a row, or its error."""
    if isinstance(values, RowError):
        return SubscriptionRow(number, file_line, None, "", values)
    subscription_id = None
    id_name, expression_name = found = columns.find(values)
    try:
        if id_name is not None:
            subscription_id = _read_id(values[id_name])
        if id_name is None or expression_name is None:
            raise RowError(
                "missing-key",
                f"the row has no {columns.describe_missing(found)}",
                hint=f"its keys: {', '.join(values) or 'none'}",
            )
        text = _read_text(values[expression_name])
        details = read_details(values, (id_name, expression_name))
    except RowError as error:
        names = {"subscription_id": id_name, "expression": expression_name}
        given = {part: values[name] for part, name in names.items() if name is not None}
        return SubscriptionRow(number, file_line, subscription_id, "", error, given)
    return SubscriptionRow(number, file_line, subscription_id, text, details=details)


def read_details(values: Values, except_for: Iterable[str]) -> Details:
    """The other columns of a row; an empty text is a missing value."""
    others = {
        name: value
        for name, value in values.items()
        if name not in except_for and not (value is None or value == "")
    }
    if not others:
        return NO_DETAILS
    tags = read_tags(others.pop("tags", ()))
    start, end = (_read_moment(name, others.pop(name, None)) for name in VALIDITY)
    if start is not None and end is not None and start >= end:
        raise RowError(
            "bad-validity",
            f"valid_until is '{_spell(end)}', not after valid_from, '{_spell(start)}'",
            hint=REVERSED_HINT,
        )
    return Details(tags, start, end, others)


def read_tags(value: Any) -> tuple[str, ...]:
    """Tags as a list of strings; in CSV as a JSON list, or separated by commas."""
    found = value
    if isinstance(value, str):
        text = value.strip()
        try:
            found = json.loads(text) if text.startswith("[") else text.split(",")
        except ValueError:
            found = None
        found = [tag.strip() if isinstance(tag, str) else tag for tag in found or ("",)]
        found = [tag for tag in found if tag != ""] if found != [""] else None
    if not isinstance(found, list | tuple) or not all(isinstance(tag, str | None) for tag in found):
        message = f"the tags are {json_kind(value)}; a list of strings is expected"
        raise RowError("bad-tags", message, hint='write ["news", "urgent"], or in CSV news,urgent')
    return tuple(tag for tag in found if tag is not None)


def _read_moment(name: str, value: Any) -> datetime | None:
    if value is None:
        return None
    try:
        return read_moment(value)
    except WrongTypeError:
        message = f"{name} is '{str(value)[:60]}', not a timestamp"
        raise RowError("bad-validity", message, hint=MOMENT_HINT) from None


def _spell(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(sep=" ")


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
        raise RowError("not-text", f"the expression is {json_kind(value)}; a string is expected")
    return value


def _refuse_bytes(value: bytes) -> None:
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise refuse_encoding(error) from None
