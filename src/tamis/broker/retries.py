"""When is a failed delivery tried again? Pure functions of the time and a random number."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.language.moments import spell_second

if TYPE_CHECKING:
    from datetime import datetime

_MINUTE: Final = 60.0
_HOUR: Final = 60 * _MINUTE
# Seconds before each attempt, as Standard Webhooks recommends: 10 attempts in three days.
DELAYS: Final = (
    0.0,
    5.0,
    5 * _MINUTE,
    30 * _MINUTE,
    2 * _HOUR,
    5 * _HOUR,
    10 * _HOUR,
    14 * _HOUR,
    20 * _HOUR,
    24 * _HOUR,
)
_GONE: Final = 410


class Attempt(NamedTuple):
    """The state of the delivery of the next event."""

    n_failed: int = 0
    next_at: datetime | None = None  # None: at once
    last_status: int | None = None
    last_error: str | None = None
    failing_since: datetime | None = None  # the first failure after the last success


class DeliveryResult(NamedTuple):
    """What came of one attempt."""

    status: int | None  # of HTTP; None if there was no answer
    milliseconds: int
    error: str | None = None  # without the body of the answer
    retry_after: float | None = None  # seconds that the receiver asks for
    is_final: bool = False  # refused by this server, such as for a private address

    def is_success(self) -> bool:
        """Whether the receiver has the event."""
        return self.status is not None and 200 <= self.status < 300 and not self.is_final


class RetryPolicy(NamedTuple):
    """When deliveries are retried, and when webhooks are disabled."""

    delays: tuple[float, ...] = DELAYS  # seconds before each attempt; not empty
    spread: float = 0.2  # a delay is longer by up to this share, at random
    disable_after: timedelta = timedelta(days=5)  # of failures without a success


DEFAULT_POLICY: Final = RetryPolicy()


class Verdict(StrEnum):
    """What happens next."""

    DELIVERED = "delivered"
    RETRY = "retry"
    DEAD = "dead"  # this event is given up, and the next one is tried
    DISABLE = "disable"  # nothing more is sent; the event stays the next one


class Decision(NamedTuple):
    """What happens next, and the state of the delivery then."""

    verdict: Verdict
    attempt: Attempt
    reason: str | None = None  # of DISABLE


def decide_next(
    attempt: Attempt,
    result: DeliveryResult,
    now: datetime,
    dice: float,  # 0 <= dice < 1: receivers that failed together are not retried together
    policy: RetryPolicy = DEFAULT_POLICY,
) -> Decision:
    """What follows from the result of an attempt."""
    if result.is_success():
        return Decision(Verdict.DELIVERED, Attempt())
    since = attempt.failing_since or now
    failed = Attempt(attempt.n_failed + 1, None, result.status, result.error, since)
    if result.is_final:
        reason = f"not allowed: {result.error or 'the address'}"
        return Decision(Verdict.DISABLE, failed, reason)
    if result.status == _GONE:
        return Decision(Verdict.DISABLE, failed, "the receiver answered 410 Gone")
    if now - since >= policy.disable_after:
        reason = f"no success since {spell_second(since)}"
        return Decision(Verdict.DISABLE, failed, reason)
    if failed.n_failed >= len(policy.delays):
        return Decision(Verdict.DEAD, failed._replace(n_failed=0))
    delay = policy.delays[failed.n_failed] * (1 + policy.spread * dice)
    # A receiver may ask for more patience, but not for more than the schedule ever has.
    delay = max(delay, min(result.retry_after or 0.0, max(policy.delays)))
    return Decision(Verdict.RETRY, failed._replace(next_at=now + timedelta(seconds=delay)))
