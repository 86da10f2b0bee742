"""Parts of dates and timestamps, for one value and for many; see `value_functions`.

Many dates are int64[n] days since 1970, many timestamps int64[n] microseconds. Time is in UTC.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from tamis.language.types.moments import from_days, from_microseconds, to_days, to_microseconds

if TYPE_CHECKING:
    from collections.abc import Callable

_SECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
DAY: Final = 24 * _HOUR
# The units of date_trunc, and those of a fixed length.
UNITS: Final = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    "QUARTER": "QUARTER",
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    "WEEK": "WEEK",
    **dict.fromkeys(("DAY", "DD"), "DAY"),
    **{name: name for name in ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")},
}
_LENGTHS: Final = {
    "DAY": DAY,
    "HOUR": _HOUR,
    "MINUTE": _MINUTE,
    "SECOND": _SECOND,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}


def of_moments(part_of_days: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A part of dates, as one of timestamps."""
    return lambda microseconds: part_of_days(microseconds // DAY)


def years(days: Any) -> Any:
    """The years of dates."""
    return _since(days, "Y") + 1970


def months(days: Any) -> Any:
    """The months of dates, from 1."""
    return _since(days, "M") % 12 + 1


def quarters(days: Any) -> Any:
    """The quarters of dates, from 1."""
    return _since(days, "M") % 12 // 3 + 1


def days_of_month(days: Any) -> Any:
    """The days of dates in their months, from 1."""
    return days - _first_of(days, "M") + 1


def days_of_year(days: Any) -> Any:
    """The days of dates in their years, from 1."""
    return days - _first_of(days, "Y") + 1


def days_of_week(days: Any) -> Any:
    """1 for Sunday to 7 for Saturday, as in Spark."""
    return (days + 4) % 7 + 1


def weekdays(days: Any) -> Any:
    """0 for Monday to 6 for Sunday, as in Spark."""
    return (days + 3) % 7


def hours(microseconds: Any) -> Any:
    """The hours of timestamps."""
    return microseconds // _HOUR % 24


def minutes(microseconds: Any) -> Any:
    """The minutes of timestamps."""
    return microseconds // _MINUTE % 60


def seconds(microseconds: Any) -> Any:
    """The whole seconds of timestamps."""
    return microseconds // _SECOND % 60


def truncate(unit: str, moment: datetime | date) -> datetime:
    """The beginning of the year, month, hour … that the moment is in, in UTC."""
    name = UNITS[unit.upper()]
    if isinstance(moment, datetime) and name in _LENGTHS:
        microseconds = to_microseconds(moment)
        return from_microseconds(microseconds - microseconds % _LENGTHS[name])
    month, day = moment.month, moment.day
    if name == "WEEK":
        monday = from_days(to_days(moment) - moment.weekday())
        return datetime(monday.year, monday.month, monday.day, tzinfo=UTC)
    if name in ("YEAR", "QUARTER", "MONTH"):
        month, day = {"YEAR": 1, "QUARTER": (month - 1) // 3 * 3 + 1}.get(name, month), 1
    return datetime(moment.year, month, day, tzinfo=UTC)


def truncate_many(unit: str, microseconds: Any) -> Any:
    """`truncate` of timestamps."""
    name = UNITS[unit.upper()]
    if name in _LENGTHS:
        return microseconds - microseconds % _LENGTHS[name]
    days = microseconds // DAY
    if name == "WEEK":
        first = days - weekdays(days)
    elif name == "QUARTER":
        quarters_since = (_since(days, "M") // 3 * 3).astype("datetime64[M]")
        first = quarters_since.astype("datetime64[D]").astype("int64")
    else:
        first = _first_of(days, name[0])
    return first * DAY


def truncate_days(unit: str, days: Any) -> Any:
    """`truncate` of dates."""
    return truncate_many(unit, days * DAY)


def find_unit_problem(unit: str) -> str | None:
    """The error of the constant of `date_trunc`."""
    if unit.upper() in UNITS:
        return None
    allowed = ", ".join(dict.fromkeys(UNITS.values()))
    return f"date_trunc() does not know the unit '{unit}'; allowed: {allowed}"


def days_between(end: date, start: date) -> int:
    """The days from the second to the first; of timestamps, those of their dates in UTC."""
    return end.toordinal() - start.toordinal()


def days_between_many(end_unit: int, start_unit: int) -> Callable[[Any, Any], Any]:
    """`days_between` of dates, whose unit is 1, or of timestamps, whose unit is that of a day."""

    def compute(end: Any, start: Any) -> Any:
        return _as_days(end, end_unit) - _as_days(start, start_unit)

    return compute


def _as_days(value: Any, unit: int) -> Any:
    return to_days(value) if isinstance(value, date) else value // unit


def day_of_week(day: date) -> int:
    """1 for Sunday to 7 for Saturday."""
    return day.isoweekday() % 7 + 1


def day_of_year(day: date) -> int:
    """The day in its year, from 1."""
    return day.timetuple().tm_yday


def quarter(day: date) -> int:
    """The quarter, from 1."""
    return (day.month - 1) // 3 + 1


def _since(days: Any, unit: str) -> Any:
    """Years or months since 1970."""
    return days.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype("int64")


def _first_of(days: Any, unit: str) -> Any:
    """The first days of the years or months of dates."""
    firsts = days.astype("datetime64[D]").astype(f"datetime64[{unit}]")
    return firsts.astype("datetime64[D]").astype("int64")
