"""What the store holds, what can be asked of it, and what it answers."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class Subscription(NamedTuple):
    """One subscription as the store holds it; moments are in UTC.

    It is valid at a moment when `valid_from <= moment < valid_until`; None does not limit.
    """

    id: str
    expression: str
    owner: str  # empty if it has none
    tags: tuple[str, ...]
    attributes: Mapping[str, Any]  # the owner's own: a small JSON object
    valid_from: datetime | None
    valid_until: datetime | None
    ticket_hash: bytes | None
    revision: int  # the number of the change that made it what it is
    created: int  # the number of the change that subscribed it


class Kind(StrEnum):
    """What a change does."""

    SUBSCRIBE = "subscribe"
    REPLACE = "replace"
    RENEW = "renew"
    UNSUBSCRIBE = "unsubscribe"
    EXPIRE = "expire"


class Change(NamedTuple):
    """One entry of the log."""

    number: int  # dense, from 1, never used twice
    kind: Kind
    subscription_id: str
    moment: datetime  # of the store's clock: never before that of an earlier change
    subscription: Subscription | None  # as it is after the change; None after its end


class Keep(Enum):
    """The type of `KEEP`."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP  # a field of `Replace` that stays as it is


class Subscribe(NamedTuple):
    """Ask for a new subscription; refused if one of this id is there."""

    id: str
    expression: str
    owner: str = ""
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = {}
    valid_from: datetime | str | None = None
    valid_until: datetime | str | None = None
    ticket_hash: bytes | None = None


class Replace(NamedTuple):
    """Give a subscription other contents; fields that are not named stay as they are."""

    id: str
    expression: str | Keep = KEEP
    owner: str | Keep = KEEP
    tags: tuple[str, ...] | Keep = KEEP
    attributes: Mapping[str, Any] | Keep = KEEP
    valid_from: datetime | str | Keep | None = KEEP
    valid_until: datetime | str | Keep | None = KEEP
    ticket_hash: bytes | Keep | None = KEEP
    if_revision: int | None = None  # refuse unless the subscription has this revision


class Renew(NamedTuple):
    """Move the end of a lease to a later moment, or to never; `Replace` can shorten it."""

    id: str
    valid_until: datetime | str | None
    if_revision: int | None = None


class Unsubscribe(NamedTuple):
    """End a subscription."""

    id: str
    if_revision: int | None = None


Request = Subscribe | Replace | Renew | Unsubscribe


class Accepted(NamedTuple):
    """The request is in the log, on disk."""

    number: int  # of its change: the revision of the subscription from now on


class Reason(StrEnum):
    """Why a request was refused."""

    INVALID = "invalid"  # it could never be accepted as it is
    EXISTS = "exists"  # there is a subscription of this id
    UNKNOWN = "unknown"  # there is none, or it was unsubscribed
    EXPIRED = "expired"  # its lease has ended
    REVISION = "revision"  # it was changed since
    SHORTER = "shorter"  # a renewal to an earlier moment


class Refused(NamedTuple):
    """The request changed nothing."""

    reason: Reason
    message: str
    revision: int | None = None  # of the subscription that is there


Result = Accepted | Refused


class State(StrEnum):
    """What a subscription is at the moment of the question."""

    WAITING = "waiting"  # its validity has not begun
    VALID = "valid"
    EXPIRED = "expired"  # its lease has ended, and the log still has it


class Page(NamedTuple):
    """Some subscriptions of a list, by id."""

    subscriptions: list[Subscription]
    cursor: str | None  # where the next page begins; None after the last
