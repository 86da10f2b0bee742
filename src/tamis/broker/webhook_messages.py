"""What is sent to a webhook: an id, a body and the secrets to sign it with."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from tamis.language.moments import spell_moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tamis.broker.mail import MailedMatch
    from tamis.broker.mailbox import Position
    from tamis.broker.secrets import Secret


class WebhookMessage(NamedTuple):
    """A message to a webhook. Whoever gets an id twice has got the same message twice."""

    url: str
    id: str  # the same at each attempt
    body: bytes  # JSON
    secrets: Sequence[Secret]  # to sign it with, the newest first


def name_message(webhook: int, position: Position) -> str:
    """The id of the message about an event."""
    return f"msg_{position.epoch}_{webhook}_{position.event}"


def spell_match(epoch: str, match: MailedMatch) -> bytes:
    """The body for a match."""
    return _spell("match", match.moment, match.to_json() | {"epoch": epoch})


def spell_missed(epoch: str, missed: range, moment: datetime) -> bytes:
    """The body for events that retention removed before they were sent."""
    data = {"epoch": epoch, "first": missed.start, "last": missed.stop - 1}
    return _spell("missed", moment, data)


def spell_test(webhook: int, moment: datetime) -> bytes:
    """The body of a test."""
    return _spell("test", moment, {"webhook": webhook})


def name_test() -> str:
    """The id of a test."""
    return f"msg_test_{secrets.token_hex(12)}"


def _spell(kind: str, moment: datetime, data: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "timestamp": spell_moment(moment), "data": data})
