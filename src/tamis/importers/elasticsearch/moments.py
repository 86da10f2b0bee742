"""Dates as Elasticsearch reads them in queries: a date without a time is a span of time.

Elasticsearch fills the missing parts of a bound, month and day with 01; the time with zeros for gte
and lt, and with the last moment of the day, hour, minute or second for gt and lte. A term is the
whole span. Fields of the type `date` have milliseconds.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.importers.conditions import NEVER, All, Test, Wish, exists, quote
from tamis.importers.elasticsearch.errors import bad
from tamis.importers.model import not_expressible
from tamis.language.types.moments import EPOCH

if TYPE_CHECKING:
    from tamis.language.types import Type

MOMENTS: Final = ("timestamp", "date")
# The formats that the pattern below reads, as `format` of a range names them.
FORMATS: Final = ("strict_date_optional_time||epoch_millis", "strict_date_optional_time")
_DATE: Final = re.compile(
    r"(\d{4})(?:-(\d{2})(?:-(\d{2})"
    r"(?:T(?:(\d{2})(?::(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?)?(Z|[+-]\d{2}:?\d{2})?)?)?)?",
    re.ASCII,
)
_EPOCH_MILLIS: Final = re.compile(r"-?[0-9]{1,18}")  # of other lengths than a year's
_MILLISECOND: Final = timedelta(milliseconds=1)


class Span(NamedTuple):
    """All moments that a text stands for."""

    start: datetime
    end: datetime | None  # the first moment after it; None after the year 9999


def read_span(field: str, text: str) -> Span:
    """The span of a date; raises an error for what is none."""
    if "||" in text or text.startswith("now"):
        raise not_expressible(
            f"{field}: {text!r} depends on the time of the search or rounds a date",
            hint="write a moment, or test the age when the event arrives",
        )
    found = _DATE.fullmatch(text)
    if found is None and _EPOCH_MILLIS.fullmatch(text):
        try:
            start = EPOCH + int(text) * _MILLISECOND
            return _span(start, _MILLISECOND)
        except OverflowError:
            raise bad(f"{field}: {text} milliseconds since 1970 are beyond the year 9999") from None
    if found is None:
        raise not_expressible(
            f"{field}: {text!r} is not a date such as 2024-01-31 or 2024-01-31T12:30:00Z"
        )
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    size = _MILLISECOND  # of what the last part, that is given, stands for
    for given, own in (
        (hour, timedelta(days=1)),
        (minute, timedelta(hours=1)),
        (second, timedelta(minutes=1)),
        (fraction, timedelta(seconds=1)),
    ):
        if given is None:
            size = own
            break
    milliseconds = int((fraction or "0").ljust(3, "0")[:3])
    try:
        day_start = datetime(int(year), int(month or 1), int(day or 1), tzinfo=_read_zone(zone))
        start = day_start.replace(
            hour=int(hour or 0),
            minute=int(minute or 0),
            second=int(second or 0),
            microsecond=1000 * milliseconds,
        ).astimezone(UTC)
        return _span(start, size)
    except (ValueError, OverflowError):
        raise bad(f"{field}: {text!r} is not a date of the calendar") from None


def _span(start: datetime, size: timedelta) -> Span:
    try:
        return Span(start, start + size)
    except OverflowError:
        return Span(start, None)


def _read_zone(zone: str | None) -> timezone:
    if zone is None or zone == "Z":
        return UTC
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return timezone(-offset if zone[0] == "-" else offset)


def compare_moment(name: str, type_: Type, comparator: str, span: Span) -> Wish:
    """The value is before or after the span, or in it: gt and lte mean the whole span."""
    moment = span.end if comparator in (">", "<=") else span.start
    is_last_day = type_.name == "date" and moment is not None and moment.date() == date.max
    if moment is None or (is_last_day and moment.time() != time()):
        return exists(name) if comparator in ("<", "<=") else NEVER
    return Test(
        f"{name} {'>=' if comparator in ('>', '>=') else '<'} {_spell(moment, type_)}",
        needed=(name,),
    )


def equal_moment(name: str, type_: Type, span: Span) -> Wish:
    """The value is in the span."""
    bounds = (compare_moment(name, type_, own, span) for own in (">=", "<="))
    return All(tuple(bounds))


def _spell(moment: datetime, type_: Type) -> str:
    """The moment as a constant; of dates, the first day that does not begin before it."""
    is_midnight = moment.time() == time()
    if type_.name == "date":
        day = moment.date() if is_midnight else moment.date() + timedelta(days=1)
        return quote(day.isoformat())
    if is_midnight:
        return quote(moment.date().isoformat())
    precision = "milliseconds" if moment.microsecond else "seconds"
    return quote(moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z")
