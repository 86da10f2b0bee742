"""One row of the log, as the database has it, and the records that callers get.

The log is the only table of subscriptions. A row with a state is valid from its own number until
the number of the row that supersedes it. So the set as of any change is a filter over rows, and the
current set is the rows that are not superseded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from tamis.language.types.moments import from_microseconds
from tamis.subscriptions.model import Change, ChangeKind, Subscription

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tamis.subscriptions.checking import Checked

# Between tags and around them, so that a substring search finds a tag.
TAG_SEPARATOR: Final = "\x1f"
_NO_ATTRIBUTES: Final[Mapping[str, Any]] = {}


class Row(NamedTuple):
    """One change; the fields are the columns of the table, in their order."""

    number: int
    kind: str
    subscription_id: str
    moment: int  # microseconds since 1970
    previous: int | None  # the change before it, of the same id
    superseded_by: int | None  # the change after it, of the same id
    # The state after the change; all None after an end.
    created: int | None
    owner: str | None
    expression: str | None
    tags: str | None
    attributes: str | None  # JSON, or empty for {}
    valid_from: int | None
    valid_until: int | None
    ticket_hash: bytes | None

    def has_state(self) -> bool:
        """Whether the subscription exists after this change."""
        return self.created is not None

    def has_ended(self, moment: int) -> bool:
        """Whether the lease is over at a moment."""
        return self.valid_until is not None and self.valid_until <= moment


def join_tags(tags: tuple[str, ...]) -> str:
    """The tags as one text."""
    return f"{TAG_SEPARATOR}{TAG_SEPARATOR.join(tags)}{TAG_SEPARATOR}" if tags else ""


def to_subscription(row: Row) -> Subscription:
    """The subscription of a row that has a state."""
    assert row.created is not None
    assert row.expression is not None
    return Subscription(
        row.subscription_id,
        row.expression,
        row.owner or "",
        tuple(row.tags[1:-1].split(TAG_SEPARATOR)) if row.tags else (),
        orjson.loads(row.attributes) if row.attributes else _NO_ATTRIBUTES,
        _to_moment(row.valid_from),
        _to_moment(row.valid_until),
        row.ticket_hash,
        row.number,
        row.created,
        from_microseconds(row.moment),
    )


def to_change(row: Row) -> Change:
    """The row as an entry of the log."""
    subscription = to_subscription(row) if row.has_state() else None
    moment = from_microseconds(row.moment)
    return Change(row.number, ChangeKind(row.kind), row.subscription_id, moment, subscription)


def predict(request: Checked, row: Row | None) -> Subscription | None:
    """The subscription after a request that is accepted, given its newest row; None if it ends.

    Its revision is not known before the request is accepted.
    """
    if request.kind is ChangeKind.SUBSCRIBE:
        empty = Row(0, "", request.subscription_id, 0, None, None, 0, *[None] * 7)
        return to_subscription(empty._replace(**request.columns))
    if request.kind in (ChangeKind.UNSUBSCRIBE, ChangeKind.EXPIRE):
        return None
    if row is None or not row.has_state():
        return None
    return to_subscription(row._replace(**request.columns))


def _to_moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_microseconds(micros)
