"""Dates and timestamps; in arrays they are int64: days and microseconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Final

from tamis.language.ast import Literal
from tamis.language.types.texts import STRING
from tamis.language.types.type import Kind, Type, WrongTypeError, wrong

DATE = Type("date")
TIMESTAMP = Type("timestamp")

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
FIRST_DAY: Final = date.min.toordinal() - EPOCH_ORDINAL
LAST_DAY: Final = date.max.toordinal() - EPOCH_ORDINAL
FIRST_INSTANT: Final = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MICROSECOND
LAST_INSTANT: Final = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND

_DATE_TEXT = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP_TEXT = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?(?:[ ]?(Z|[+-]\d{2}:\d{2}))?)?"
)


def parse_date(text: str) -> date:
    """The date written as YYYY-MM-DD."""
    if not _DATE_TEXT.fullmatch(text) or not text.isascii():
        raise WrongTypeError(f"'{text}' is not a date; write YYYY-MM-DD")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise WrongTypeError(f"'{text}' is not a date of the calendar") from None


def parse_timestamp(text: str) -> datetime:
    """The instant written as YYYY-MM-DD[ HH:MM[:SS[.ffffff]][[ ]Z|±HH:MM]]; UTC without a zone."""
    match = _TIMESTAMP_TEXT.fullmatch(text)
    if match is None or not text.isascii():
        raise WrongTypeError(
            f"'{text}' is not a timestamp; write YYYY-MM-DD HH:MM:SS with at most six fractional "
            "digits and an optional zone such as Z or +02:00 (UTC without one)"
        )
    day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(day).replace(
            hour=int(hour or 0),
            minute=int(minute or 0),
            second=int(second or 0),
            microsecond=int((fraction or "0").ljust(6, "0")),
            tzinfo=_parse_zone(zone),
        )
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise WrongTypeError(
            f"'{text}' is not an instant: hours go to 23, minutes and seconds to 59, zones to "
            "18:00, years from 1 to 9999"
        ) from None


def _parse_zone(zone: str | None) -> timezone:
    if zone is None or zone == "Z":
        return UTC
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    # Spark's widest offset; a larger one is a typing mistake.
    if hours * 60 + minutes > 18 * 60 or minutes > 59:
        raise ValueError(zone)
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if zone[0] == "-" else offset)


def to_days(value: date) -> int:
    """The date as days since 1970."""
    return value.toordinal() - EPOCH_ORDINAL


def from_days(days: int) -> date:
    """The date so many days after 1970."""
    return date.fromordinal(days + EPOCH_ORDINAL)


def to_microseconds(value: datetime) -> int:
    """The instant as microseconds since 1970."""
    return (value - EPOCH) // MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """The instant so many microseconds after 1970."""
    return EPOCH + microseconds * MICROSECOND


def _read_date(value: Any, type_: Type) -> date:
    if isinstance(value, str):
        return parse_date(value)
    if not isinstance(value, date) or isinstance(value, datetime):
        raise wrong(value, type_)
    return value


def _read_timestamp(value: Any, type_: Type) -> datetime:
    if isinstance(value, str):
        return parse_timestamp(value)
    if not isinstance(value, date):
        raise wrong(value, type_)
    if not isinstance(value, datetime):  # a date means its midnight
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    # A subclass may have a finer resolution than microseconds, or no time at all (pandas' NaT).
    if value != value:  # noqa: PLR0124
        raise wrong(value, type_)
    if getattr(value, "nanosecond", False):
        raise WrongTypeError(f"{value} is not a whole number of microseconds")
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise wrong(value, type_) from None


def _fit_date(literal: Literal, type_: Type) -> Literal | None:
    if literal.type == DATE:
        return literal
    if literal.type != STRING:
        return None
    return Literal(parse_date(literal.value), DATE, literal.span)


def _fit_timestamp(literal: Literal, type_: Type) -> Literal | None:
    if literal.type == TIMESTAMP:
        return literal
    if literal.type not in (STRING, DATE):
        return None
    text = literal.value if literal.type == STRING else literal.value.isoformat()
    return Literal(parse_timestamp(text), TIMESTAMP, literal.span)


def _hint(literal: Literal, type_: Type) -> str:
    return f"write {str(type_).upper()} '2024-01-31'"


def _print_timestamp(value: datetime) -> str:
    return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}Z'"


def _step_date(value: date, n_steps: int) -> date | None:
    days = to_days(value) + n_steps
    return from_days(days) if FIRST_DAY <= days <= LAST_DAY else None


def _step_timestamp(value: datetime, n_steps: int) -> datetime | None:
    microseconds = to_microseconds(value) + n_steps
    is_inside = FIRST_INSTANT <= microseconds <= LAST_INSTANT
    return from_microseconds(microseconds) if is_inside else None


KINDS = (
    Kind(
        "date",
        (),
        _read_date,
        fit=_fit_date,
        hint=_hint,
        print=lambda value: f"DATE '{value.isoformat()}'",
        family="moment",
        is_spelled=True,
        step=_step_date,
        arrow=lambda pa, type_: pa.date32(),
        classes=(str, date),  # a datetime is also one
        bulk_classes=frozenset((date,)),
        filler=EPOCH.date(),
    ),
    Kind(
        "timestamp",
        ("timestamp_ntz", "timestamp_ltz"),
        _read_timestamp,
        fit=_fit_timestamp,
        hint=_hint,
        print=_print_timestamp,
        family="moment",
        is_spelled=True,
        step=_step_timestamp,
        arrow=lambda pa, type_: pa.timestamp("us", "UTC"),
        classes=(str, date),  # a datetime is also one
        bulk_classes=frozenset((datetime,)),
        filler=EPOCH,
    ),
)
