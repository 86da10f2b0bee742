"""Requests for the rows that a caller passes."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tamis.index.attributes import parse_attributes, spell_attributes
from tamis.input.subscriptions import list_rows
from tamis.language.moments import spell_moment
from tamis.subscriptions import Reason, Refused, Subscribe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.input.subscription_rows import SubscriptionRow
    from tamis.subscriptions import Subscription

    Asked = Subscribe | Refused

AT_ONCE: Final = 5_000  # rows: those of one transaction


def ask_to_add(given: Any) -> Iterator[list[Asked]]:
    """Requests to add subscriptions, some thousand at a time; a row that cannot be read is refused
    already.
    """
    requests = map(ask, list_rows(given))
    while some := list(islice(requests, AT_ONCE)):
        yield some


def ask(row: SubscriptionRow) -> Asked:
    """The request of one row, or its refusal."""
    if row.error is not None or row.subscription_id is None:
        message = "it has no id" if row.error is None else row.error.message
        return Refused(Reason.INVALID, f"row {row.number}: {message}")
    details = row.details
    attributes = dict(details.attributes)
    if attributes:  # as JSON has them: Parquet has decimals and moments
        attributes = parse_attributes(spell_attributes(attributes))
    owner = attributes.pop("owner", "")
    ticket_hash = attributes.pop("ticket_hash", None)
    # Attributes whose names or values a column cannot have: see `describe`.
    more = attributes.get("attributes")
    if isinstance(more, dict):
        del attributes["attributes"]
        attributes |= more
    return Subscribe(
        row.subscription_id,
        row.text,
        owner,
        details.tags,
        attributes,
        details.valid_from,
        details.valid_until,
        _read_hash(ticket_hash),
    )


def describe(subscription: Subscription) -> dict[str, Any]:
    """A subscription as a row that `ask_to_add` reads back."""
    own: dict[str, Any] = {
        "subscription_id": subscription.id,
        "expression": subscription.expression,
        "owner": subscription.owner or None,
        "tags": list(subscription.tags) or None,
        "valid_from": subscription.valid_from and spell_moment(subscription.valid_from),
        "valid_until": subscription.valid_until and spell_moment(subscription.valid_until),
        "ticket_hash": subscription.ticket_hash and subscription.ticket_hash.hex(),
    }
    apart: dict[str, Any] = {}
    flat: dict[str, Any] = {}
    for name, value in subscription.attributes.items():
        is_apart = name in own or name in ("id", "attributes") or value is None or value == ""
        (apart if is_apart else flat)[name] = value
    row = {name: value for name, value in own.items() if value is not None} | flat
    return row | {"attributes": apart} if apart else row


def _read_hash(given: Any) -> Any:
    """The bytes of a hash in hexadecimal digits; anything else is refused later."""
    try:
        return bytes.fromhex(given) if isinstance(given, str) else given
    except ValueError:
        return given
