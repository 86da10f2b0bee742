"""When is a digest due? Pure functions of local time, also when clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from tamis.broker.checking import expect_member, expect_text
from tamis.errors import InputError, suggest

_MINUTE: Final = timedelta(minutes=1)
# A change of the clock by an hour can skip the minute of one hour, but not of two.
_MOST_MINUTES: Final = 240


class Period(StrEnum):
    """How often a digest is sent."""

    HOURLY = "hourly"
    DAILY = "daily"


class DigestTime(NamedTuple):
    """At which local time a digest is sent."""

    period: Period
    minute: int = 0
    hour: int = 0  # of a daily one
    zone: str = "UTC"


def check_time(given: Any) -> DigestTime:
    """The time, if it is valid."""
    if not isinstance(given, DigestTime):
        raise InputError(f"{given!r:.100} is not the time of a digest; a DigestTime is expected")
    period = expect_member(given.period, Period, "period")
    minute = _expect_below(given.minute, "minute", 60)
    hour = _expect_below(given.hour, "hour", 24)
    return DigestTime(period, minute, hour, _expect_zone(given.zone))


def find_next_due(at: DigestTime, after: datetime) -> datetime:
    """The first moment after another one at which a digest is due, in UTC.

    A local time that a change of the clock skips is taken as if the clock had not been changed; of
    a local time that occurs twice, the first counts for a daily digest.
    """
    zone = ZoneInfo(at.zone)
    if at.period is Period.HOURLY:
        return _next_hourly(at.minute, zone, after)
    # The day before: its time may have been moved past midnight.
    day = after.astimezone(zone).date() - timedelta(days=1)
    while True:
        local = datetime.combine(day, time(at.hour, at.minute), zone)
        if (due := local.astimezone(UTC)) > after:
            return due
        day += timedelta(days=1)


def _next_hourly(minute: int, zone: ZoneInfo, after: datetime) -> datetime:
    due = after.astimezone(UTC).replace(second=0, microsecond=0)
    # By minutes of UTC: offsets may be fractions of an hour, and so may changes of the clock.
    for _ in range(_MOST_MINUTES):
        due += _MINUTE
        if due.astimezone(zone).minute == minute:
            return due
    raise AssertionError(f"no minute {minute} in four hours of {zone.key}")


def _expect_below(value: Any, argument: str, limit: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
        raise InputError(f"{argument} is {value!r:.100}; 0 to {limit - 1} is expected")
    return value


def _expect_zone(name: Any) -> str:
    zone = expect_text(name, "zone")
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = suggest(zone, _all_zones())
        hint = 'write "Europe/Paris"' if near is None else f'did you mean "{near}"?'
        raise InputError(f"there is no time zone {zone!r:.100}", hint=hint) from None
    return zone


@lru_cache(maxsize=1)
def _all_zones() -> frozenset[str]:
    return frozenset(available_timezones())
