"""Parts of dates and timestamps, for one value and for many; see `value_functions`.

Many dates are int64[n] days since 1970, many timestamps int64[n] microseconds. Time is in UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

_SECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


def of_moments(part_of_days: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A part of dates, as one of timestamps."""
    return lambda microseconds: part_of_days(microseconds // _DAY)


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
