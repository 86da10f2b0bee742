"""Headers of answers that say when to ask again."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_AGE: Final = re.compile(r"(?:^|,)\s*max-age\s*=\s*\"?(\d{1,10})\"?\s*(?:,|$)", re.IGNORECASE)
_NO_CACHE: Final = re.compile(r"(?:^|,)\s*no-(?:cache|store)\b", re.IGNORECASE)


def read_retry_after(text: str | None, now: datetime) -> float | None:
    """The seconds of a Retry-After header, which has a number or a date."""
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 10:
        return float(text)
    moment = _read_date(text)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def read_freshness(headers: Mapping[str, str]) -> float:
    """For how many seconds an answer is fresh; 0 if it does not say."""
    control = headers.get("cache-control", "")
    if _NO_CACHE.search(control):
        return 0.0
    if (found := _MAX_AGE.search(control)) is not None:
        age = headers.get("age", "0")
        spent = int(age) if age.isascii() and age.isdigit() and len(age) <= 10 else 0
        return float(max(0, int(found[1]) - spent))
    # Against the server's own clock: only the difference of its dates is known to be right.
    expires, date = _read_date(headers.get("expires")), _read_date(headers.get("date"))
    if expires is None or date is None:
        return 0.0
    return max(0.0, (expires - date).total_seconds())


def _read_date(text: str | None) -> datetime | None:
    try:
        moment = None if text is None else parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment is None:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
