"""The details of subscriptions besides their expressions, collected while they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import RowError
from tamis.language.moments import read_at
from tamis.language.weights import WEIGHT, read_weight

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tamis.input.subscription_rows import SubscriptionRow


def has_expired(row: SubscriptionRow, now: datetime) -> bool:
    """Whether the row will never be valid again."""
    until = row.details.valid_until
    return until is not None and until <= now


def find_bad_weight(attributes: Mapping[str, Any]) -> RowError | None:
    """The error of a row whose weight is invalid, as a build rejects it."""
    try:
        read_weight(attributes.get(WEIGHT))
    except ValueError as error:
        return RowError("bad-weight", str(error))
    return None


class Gathered:
    """The details of the first row of each id, in the form that `index.build` takes.

    An expired row is left out: it will never be valid again, and another row may have its id.
    """

    def __init__(self, tags: Mapping[str, Sequence[str]]) -> None:
        """`tags` are added to those of the rows."""
        self.tags = dict(tags)
        self.validity: dict[str, tuple[datetime | None, datetime | None]] = {}
        self.attributes: dict[str, Mapping[str, Any]] = {}
        self.n_expired = 0
        self._seen: set[str] = set()
        self._now = read_at(None)

    def add(self, row: SubscriptionRow) -> bool:
        """Add the details of a row; returns whether the row is used."""
        details = row.details
        if has_expired(row, self._now):
            self.n_expired += 1
            return False
        name = row.subscription_id
        if name is not None and name not in self._seen:
            self._seen.add(name)
            if details.tags:
                self.tags[name] = tuple(dict.fromkeys((*self.tags.get(name, ()), *details.tags)))
            if details.valid_from is not None or details.valid_until is not None:
                self.validity[name] = (details.valid_from, details.valid_until)
            if details.attributes:
                self.attributes[name] = details.attributes
        return True
