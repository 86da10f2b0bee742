"""Instants in text, as Spark casts a text to a timestamp, in UTC."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Final

from tamis.errors import InputError
from tamis.language.types import TIMESTAMP, WrongTypeError, read_value

HINT: Final = "write 2030-01-31T12:00:00, in UTC"
REVERSED_HINT: Final = "it would never be valid; are the two swapped?"
# Also the short forms that `types.parse_timestamp`, for constants of expressions, does not accept.
_TEXT: Final = re.compile(
    r"\s*(?P<year>\d{4})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})(?:[T ]|"
    r"[T ](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)?"
    r"(?P<zone> ?(?:Z|UTC|GMT|[+-]\d{1,2}(?::\d{2})?))?)?)?)?\s*",
    re.ASCII,
)

_AGE: Final = re.compile(r"\s*(\d{1,6})\s*(min|h|d|w)\s*", re.ASCII)
_UNITS: Final = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
AGE_HINT: Final = "write an age as 30min, 12h, 7d or 2w"


def read_age(text: str) -> timedelta | None:
    """The duration that a text such as `7d` says; None if it says none."""
    found = _AGE.fullmatch(text)
    return None if found is None else timedelta(**{_UNITS[found[2]]: int(found[1])})


def read_moment(value: Any) -> datetime:
    """The instant of a value of a row; raises `WrongTypeError` if it is not one."""
    return _parse(value) if isinstance(value, str) else read_value(value, TIMESTAMP)


def read_at(at: Any) -> datetime:
    """The moment that a caller gives; the current time if None."""
    if at is None:
        return datetime.now(UTC)
    if isinstance(at, str | date):
        try:
            return read_moment(at)
        except WrongTypeError:
            pass
    raise InputError(f"{at!r} is not a moment", hint=HINT)


def spell_moment(moment: datetime) -> str:
    """The instant in UTC, as answers spell it: 2030-01-31T12:00:00Z."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def spell_second(moment: datetime) -> str:
    """As `spell_moment`, without parts of a second, for people."""
    return spell_moment(moment.replace(microsecond=0))


def _parse(text: str) -> datetime:
    found = _TEXT.fullmatch(text)
    if found is None:
        raise WrongTypeError(f"'{text[:60]}' is not a timestamp")
    parts = {name: int(found[name] or least) for name, least in _LEAST.items()}
    # Digits beyond microseconds are dropped, as in Spark.
    micros = int((found["fraction"] or "0")[:6].ljust(6, "0"))
    try:
        moment = datetime(**parts, microsecond=micros, tzinfo=_zone(found["zone"]))
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise WrongTypeError(f"'{text[:60]}' is not an instant") from None


_LEAST: Final = {"year": 1, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}


def _zone(text: str | None) -> timezone:
    zone = (text or "").strip()
    if zone in ("", "Z", "UTC", "GMT"):
        return UTC
    hours, _, minutes = zone[1:].partition(":")
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    if offset > timedelta(hours=18) or int(minutes or 0) > 59:
        raise ValueError(zone)
    return timezone(-offset if zone[0] == "-" else offset)
