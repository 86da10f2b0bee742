"""The names of mailboxes, and positions in the archive."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from tamis.arguments import expect_count
from tamis.errors import EpochError, InputError


class MailboxKind(StrEnum):
    """Whose mailbox it is."""

    SUBSCRIPTION = "subscription"
    CHANNEL = "channel"


class Mailbox(NamedTuple):
    """A cursor over the matches of one subscription, or of those of a channel."""

    kind: MailboxKind
    number: int  # `Subscription.created`, or the number of the channel: neither is used twice

    @classmethod
    def of_subscription(cls, number: int) -> Mailbox:
        """The mailbox of a subscription."""
        return cls(MailboxKind.SUBSCRIPTION, number)

    @classmethod
    def of_channel(cls, number: int) -> Mailbox:
        """The mailbox of a channel."""
        return cls(MailboxKind.CHANNEL, number)

    @classmethod
    def parse(cls, text: str) -> Mailbox:
        """The mailbox that `str` wrote."""
        kind, _, number = text.partition("/") if isinstance(text, str) else ("", "", "")
        is_number = number.isascii() and number.isdigit() and len(number) < 19
        if kind not in list(MailboxKind) or not is_number:
            raise InputError(
                f"{text!r:.100} is not a mailbox", hint='write "subscription/17" or "channel/3"'
            )
        return cls(MailboxKind(kind), int(number))

    def __str__(self) -> str:
        return f"{self.kind.value}/{self.number}"


class Position(NamedTuple):
    """An event of the archive; 0 is before the first. Numbers are valid within one epoch."""

    epoch: str
    event: int


def expect_position(position: Any, archive: Position, what: str) -> Position:
    """The position, if the archive, whose last event is given, has reached it in its epoch."""
    if not isinstance(position, Position) or not isinstance(position.epoch, str):
        raise InputError(f"{what} is {position!r:.100}; a Position is expected")
    event = expect_count(position.event, what, least=0)
    if position.epoch != archive.epoch:
        raise EpochError(
            f"{what} {event} belongs to the epoch {position.epoch!r:.100}; "
            f"that of the archive is {archive.epoch!r}",
            hint="history was lost or restored: read from the start, or reset the cursor",
        )
    if event > archive.event:
        raise InputError(f"{what} is {event}; the last event is {archive.event}")
    return Position(position.epoch, event)
