"""The records of the store: subscriptions, changes, requests and their results."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tamis.errors import ExpressionError, TamisError


# A subscription expires soon when less than a tenth of its validity is left, and less than a day.
# The validity is counted from its last change: a renewal begins it again.
LEFT_SHARE: Final = 10
MOST_LEFT: Final = timedelta(days=1)


class Subscription(NamedTuple):
    """One subscription as the store holds it; moments are in UTC.

    It is valid at a moment if `valid_from <= moment < valid_until`; None is no limit.
    """

    id: str
    expression: str
    owner: str  # empty if it has none
    tags: tuple[str, ...]
    attributes: Mapping[str, Any]  # of the subscription: a small JSON object
    valid_from: datetime | None
    valid_until: datetime | None
    ticket_hash: bytes | None
    revision: int  # the number of its last change
    created: int  # the number of the change that subscribed it
    changed: datetime | None = None  # the moment of its last change; None before it is stored

    @property
    def expires_soon(self) -> datetime | None:
        """After this moment, it is in the state `EXPIRING`; None if it has no end."""
        if self.valid_until is None or self.changed is None:
            return None
        begin = self.changed if self.valid_from is None else max(self.changed, self.valid_from)
        # Rounded up, so that it agrees with the store, which compares whole microseconds.
        share = -(-(self.valid_until - begin) // LEFT_SHARE)
        return self.valid_until - min(MOST_LEFT, share)


class ChangeKind(StrEnum):
    """What a change does."""

    SUBSCRIBE = "subscribe"
    REPLACE = "replace"
    RENEW = "renew"
    UNSUBSCRIBE = "unsubscribe"
    EXPIRE = "expire"


class Change(NamedTuple):
    """One entry of the log."""

    number: int  # 1, 2, 3 …; never used twice
    kind: ChangeKind
    subscription_id: str
    moment: datetime  # by the store's clock: never before that of an earlier change
    subscription: Subscription | None  # after the change; None if the change ended it


class Keep(Enum):
    """The type of `KEEP`."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP  # a field of `Replace` that stays as it is


class Subscribe(NamedTuple):
    """Add a subscription; refused if the id exists."""

    id: str
    expression: str
    owner: str = ""
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = {}
    valid_from: datetime | str | None = None
    valid_until: datetime | str | None = None
    ticket_hash: bytes | None = None


class Replace(NamedTuple):
    """Change the given fields of a subscription; the others stay as they are."""

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
    """Move the end of a lease to a later moment, or remove it; `Replace` can shorten it."""

    id: str
    valid_until: datetime | str | None
    if_revision: int | None = None


class Unsubscribe(NamedTuple):
    """End a subscription."""

    id: str
    if_revision: int | None = None


Request = Subscribe | Replace | Renew | Unsubscribe


class Accepted(NamedTuple):
    """The request was accepted and is in the log, on disk."""

    number: int  # of its change, which is the new revision of the subscription


class Reason(StrEnum):
    """Why a request was refused."""

    INVALID = "invalid"  # the request itself is wrong
    EXISTS = "exists"  # the id exists already
    UNKNOWN = "unknown"  # the id does not exist, or was unsubscribed
    EXPIRED = "expired"  # its lease has ended
    REVISION = "revision"  # it was changed after `if_revision`
    SHORTER = "shorter"  # a renewal to an earlier moment


class Refused(NamedTuple):
    """The request changed nothing."""

    reason: Reason
    message: str
    revision: int | None = None  # of the existing subscription
    error: ExpressionError | None = None  # of an expression that is wrong

    def to_error(self) -> TamisError:
        """The refusal as an error to raise."""
        return self.error or RefusedError(self.message, self.reason.value, self.revision)


Result = Accepted | Refused


class State(StrEnum):
    """The state of a subscription at the time of a query."""

    WAITING = "waiting"  # its validity has not begun
    VALID = "valid"
    EXPIRING = "expiring"  # valid, and expires soon
    EXPIRED = "expired"  # its lease has ended, and it is still in the log


class Page(NamedTuple):
    """One page of a list of subscriptions, by id."""

    subscriptions: list[Subscription]
    cursor: str | None  # `after` of the next page; None for the last page
