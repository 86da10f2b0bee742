"""The requests about webhooks, feeds, digests, channels, keys and archived events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from tamis.client.operations import (
    JSON,
    Operation,
    channel_path,
    drop_none,
    read_changed,
    read_dict,
    read_nothing,
    show_ticket,
    spell,
)
from tamis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tamis.client.answers import (
        ArchivedEvent,
        ArchivePage,
        Channel,
        Digest,
        Key,
        NewFeed,
        NewKey,
        NewWebhook,
        Webhook,
        WebhookTest,
    )


class ListPath(NamedTuple):
    """What a list is about: its path, and the name of the items in an answer."""

    path: str
    items: str
    filters: dict[str, Any]


def list_page(place: ListPath, cursor: Any) -> Operation[dict[str, Any]]:
    """A page of a list."""
    params = drop_none(place.filters | {"cursor": cursor})
    return Operation("GET", place.path, read_dict, params=params)


def _path(kind: str, number: int, *rest: str) -> str:
    if not isinstance(number, int) or isinstance(number, bool):
        raise InputError(f"the number of one of the {kind} is {number!r}; an integer is expected")
    return "/".join((f"/v1/{kind}", str(number), *rest))


def _create(path: str, given: dict[str, Any], ticket: str | None) -> Operation[Any]:
    body = spell(drop_none(given))
    # A second one would be made if the first attempt had succeeded.
    headers, is_repeatable = JSON | show_ticket(ticket), False
    return Operation("POST", path, read_dict, body, None, headers, is_repeatable)


def _delete(path: str, ticket: str | None) -> Operation[None]:
    return Operation("DELETE", path, read_nothing, headers=show_ticket(ticket), is_repeatable=False)


# ── webhooks ────────────────────────────────────────────────────────────────────────────────


def create_webhook(given: dict[str, Any], ticket: str | None) -> Operation[NewWebhook]:
    """Send the matches of a mailbox to an address."""
    return _create("/v1/webhooks", given, ticket)


def get_webhook(number: int, ticket: str | None) -> Operation[Webhook]:
    """One webhook."""
    return Operation("GET", _path("webhooks", number), read_dict, headers=show_ticket(ticket))


def delete_webhook(number: int, ticket: str | None) -> Operation[None]:
    """Send nothing more."""
    return _delete(_path("webhooks", number), ticket)


def pause_webhook(number: int, ticket: str | None) -> Operation[Webhook]:
    """Send nothing until it is resumed."""
    path = _path("webhooks", number, "pause")
    return Operation("POST", path, read_dict, headers=show_ticket(ticket))


def resume_webhook(number: int, after: str | None, ticket: str | None) -> Operation[Webhook]:
    """Go on."""
    body, path = spell({"after": after}), _path("webhooks", number, "resume")
    return Operation("POST", path, read_dict, body, headers=JSON | show_ticket(ticket))


def rotate_webhook(number: int, given: dict[str, Any], ticket: str | None) -> Operation[str]:
    """Replace the signing secret."""
    made = _create(_path("webhooks", number, "rotate"), given, ticket)
    return made._replace(read=_read_secret)


def _read_secret(answer: dict[str, Any]) -> str:
    return str(answer["secret"])


def test_webhook(number: int, ticket: str | None) -> Operation[WebhookTest]:
    """Send a test."""
    return _create(_path("webhooks", number, "test"), {}, ticket)


def list_of_webhook(number: int, what: str, items: str) -> ListPath:
    """The deliveries or the dead letters of a webhook."""
    return ListPath(_path("webhooks", number, what), items, {})


def change_letters(
    number: int, what: str, numbers: Sequence[int] | None, ticket: str | None
) -> Operation[int]:
    """Send dead letters again, or delete them."""
    body = spell({"numbers": None if numbers is None else list(numbers)})
    path = _path("webhooks", number, "dead-letters", what)
    return Operation("POST", path, read_changed, body, headers=JSON | show_ticket(ticket))


# ── feeds, digests, channels ────────────────────────────────────────────────────────────────


def create_feed(given: dict[str, Any], ticket: str | None) -> Operation[NewFeed]:
    """Make a feed."""
    return _create("/v1/feeds", given, ticket)


def revoke_feed(number: int, ticket: str | None) -> Operation[None]:
    """Make the address of a feed invalid."""
    return _delete(_path("feeds", number), ticket)


def create_digest(given: dict[str, Any], ticket: str | None) -> Operation[Digest]:
    """Send digests."""
    return _create("/v1/digests", given, ticket)


def get_digest(number: int, ticket: str | None) -> Operation[Digest]:
    """One digest."""
    return Operation("GET", _path("digests", number), read_dict, headers=show_ticket(ticket))


def delete_digest(number: int, ticket: str | None) -> Operation[None]:
    """Send no more digests."""
    return _delete(_path("digests", number), ticket)


def get_channel(name: str) -> Operation[Channel]:
    """One channel."""
    return Operation("GET", channel_path(name), read_dict)


# ── keys, archived events ───────────────────────────────────────────────────────────────────


def create_key(given: dict[str, Any]) -> Operation[NewKey]:
    """Make a key."""
    return _create("/v1/keys", given, None)


def revoke_key(key_id: str) -> Operation[Key]:
    """Make a key invalid."""
    if not isinstance(key_id, str) or not key_id:
        raise InputError(f"the id of a key is {key_id!r}; text is expected")
    return Operation("DELETE", f"/v1/keys/{quote(key_id, safe='')}", read_dict)


def read_events(
    after: str | None, since: datetime | str | None, *, limit: int, who: bool
) -> Operation[ArchivePage]:
    """A page of published events."""
    moment = since if since is None or isinstance(since, str) else since.isoformat()
    given = {"after": after, "since": moment, "limit": limit, "who": who or None}
    return Operation("GET", "/v1/events", read_dict, params=drop_none(given))


def read_event(number: int, *, who: bool) -> Operation[ArchivedEvent]:
    """One published event."""
    params = drop_none({"who": who or None})
    return Operation("GET", _path("events", number), read_dict, params=params)
