"""Requests for the rows that a caller passes."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tamis.input.subscriptions import list_rows
from tamis.subscriptions import Reason, Refused, Subscribe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.input.subscription_rows import SubscriptionRow

    Asked = Subscribe | Refused

AT_ONCE: Final = 5_000  # rows: those of one transaction


def ask_to_add(given: Any) -> Iterator[list[Asked]]:
    """Requests to add subscriptions, some thousand at a time; a row that cannot be read is refused
    already.
    """
    requests = map(_ask, list_rows(given))
    while some := list(islice(requests, AT_ONCE)):
        yield some


def _ask(row: SubscriptionRow) -> Asked:
    if row.error is not None or row.subscription_id is None:
        message = "it has no id" if row.error is None else row.error.message
        return Refused(Reason.INVALID, f"row {row.number}: {message}")
    details = row.details
    attributes = dict(details.attributes)
    owner = attributes.pop("owner", "")
    return Subscribe(
        row.subscription_id,
        row.text,
        owner,
        details.tags,
        attributes,
        details.valid_from,
        details.valid_until,
    )
