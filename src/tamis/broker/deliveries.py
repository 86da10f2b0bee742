"""The recent deliveries of each webhook, and how attempts are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import delete, insert, update

from tamis.broker.checking import clean_error, to_moment
from tamis.broker.retries import Attempt
from tamis.broker.tables import DELIVERIES, WEBHOOKS
from tamis.language.types.moments import from_microseconds, to_microseconds

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from tamis.broker.retries import DeliveryResult

LOG_SIZE: Final = 100  # deliveries that are kept of each webhook


class Delivery(NamedTuple):
    """One attempt to deliver an event. The contents of requests and answers are not kept."""

    number: int  # 1, 2, 3 … for each webhook
    moment: datetime
    event: int
    attempt: int  # 1 for the first one
    status: int | None
    milliseconds: int
    error: str | None


class Logged(NamedTuple):
    """What is to be logged."""

    event: int
    attempt: int
    result: DeliveryResult


def log_delivery(connection: Connection, webhook: int, now: int, logged: Logged) -> None:
    """Keep a delivery, in the slot of the oldest one."""
    n_deliveries = WEBHOOKS.c.n_deliveries
    number = connection.execute(
        update(WEBHOOKS)
        .where(WEBHOOKS.c.number == webhook)
        .values(n_deliveries=n_deliveries + 1)
        .returning(n_deliveries)
    ).scalar_one()
    slot = number % LOG_SIZE
    is_oldest = (DELIVERIES.c.webhook == webhook, DELIVERIES.c.slot == slot)
    connection.execute(delete(DELIVERIES).where(*is_oldest))
    row = {
        "webhook": webhook,
        "slot": slot,
        "number": number,
        "moment": now,
        "event": logged.event,
        "attempt": logged.attempt,
        "status": logged.result.status,
        "milliseconds": logged.result.milliseconds,
        "error": clean_error(logged.result.error),
    }
    connection.execute(insert(DELIVERIES), row)


def to_delivery(row: Any) -> Delivery:
    """The delivery of a row."""
    moment = from_microseconds(row.moment)
    kept = (row.event, row.attempt, row.status, row.milliseconds, row.error)
    return Delivery(row.number, moment, *kept)


def to_attempt(row: Any) -> Attempt:
    """The attempt in the columns of a row."""
    next_at, since = to_moment(row.next_attempt), to_moment(row.failing_since)
    return Attempt(row.attempts, next_at, row.last_status, row.last_error, since)


def to_columns(attempt: Attempt) -> dict[str, Any]:
    """The columns of an attempt."""
    return {
        "attempts": attempt.n_failed,
        "next_attempt": None if attempt.next_at is None else to_microseconds(attempt.next_at),
        "last_status": attempt.last_status,
        "last_error": clean_error(attempt.last_error),
        "failing_since": (
            None if attempt.failing_since is None else to_microseconds(attempt.failing_since)
        ),
    }
