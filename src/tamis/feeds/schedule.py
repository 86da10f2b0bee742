"""When a source is fetched next. Pure functions: the time and a random number are arguments."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.broker.sources import Hints

    Dice = Callable[[], float]  # from 0 to 1

FASTER: Final = 0.6  # of the interval, after a fetch with new items
SLOWER: Final = 1.25  # after one without
LONGEST_HOLD: Final = 7 * 86_400.0  # seconds: a Retry-After of more is taken for a mistake
# For the other sources of the host: one of them must not stop all of a shared host for days. If the
# host still wants a pause then, it says so to the first that asks.
LONGEST_HOST_HOLD: Final = 3_600.0
_JITTER: Final = 0.1
_HOURS_A_WEEK: Final = 168


class Pace(NamedTuple):
    """The limits of intervals, in seconds."""

    least: float = 900.0
    most: float = 86_400.0


class Plan(NamedTuple):
    """The next fetch."""

    at: datetime
    interval: float  # seconds


def plan_success(  # noqa: PLR0913 - what decides
    now: datetime,
    interval: float,
    pace: Pace,
    hints: Hints,
    fresh_for: float,
    n_new: int,
    dice: Dice,
) -> Plan:
    """After a fetch that found `n_new` new items; `fresh_for`: as headers say.

    The interval adapts to how often the source changes. What its publisher asks for delays the
    next fetch, but never beyond the longest interval.
    """
    factor = FASTER if n_new else SLOWER
    adapted = min(max(interval * factor, pace.least), pace.most)
    asked = min(max(hints.least_interval, fresh_for), pace.most)
    # Later, never earlier: sources that were added together spread.
    seconds = max(adapted, asked) * (1 + _JITTER * dice())
    return Plan(_skip(now + timedelta(seconds=seconds), hints, dice), adapted)


def plan_failure(  # noqa: PLR0913 - what decides
    now: datetime,
    interval: float,
    pace: Pace,
    n_failed: int,
    retry_after: float | None,
    dice: Dice,
) -> Plan:
    """After the nth failure in a row: twice as late as after the one before, and not all sources
    of a host at the same moment.
    """
    backed_off = min(pace.least * 2.0 ** min(n_failed - 1, 30), pace.most)
    seconds = backed_off * (0.5 + 0.5 * dice())
    if retry_after is not None:
        asked = min(retry_after, LONGEST_HOLD)
        seconds = max(seconds, asked * (1 + _JITTER * dice()))
    return Plan(now + timedelta(seconds=seconds), interval)


def plan_held(now: datetime, interval: float, seconds: float, dice: Dice) -> Plan:
    """If the host of a source asked to be left alone for so many seconds."""
    return Plan(now + timedelta(seconds=seconds * (1 + _JITTER * dice())), interval)


def _skip(moment: datetime, hints: Hints, dice: Dice) -> datetime:
    """The moment, moved out of the hours and days in which a source does not change."""
    for _ in range(_HOURS_A_WEEK):
        is_skipped = moment.hour in hints.skip_hours or moment.weekday() in hints.skip_days
        if not is_skipped:
            return moment
        start = moment.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        moment = start + timedelta(minutes=10 * dice())
    return moment  # all hours are skipped, which cannot be meant
