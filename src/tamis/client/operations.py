"""The requests of both clients, and how their answers are read: everything but the network."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import orjson

from tamis.client.records import (
    Ignored,
    Matches,
    Published,
    ServerError,
    Subscription,
    SubscriptionPage,
)
from tamis.errors import InputError, RejectWarning, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    import httpx2

    from tamis.client.answers import Channel, CheckedDraft, Explanation, Forecast, SearchPage

_T = TypeVar("_T")

JSON: Final = {"content-type": "application/json"}
LINES: Final = {"content-type": "application/x-ndjson"}
ARROW: Final = {"content-type": "application/vnd.apache.arrow.stream"}
ATTEMPTS: Final = 4  # of a request that may be repeated
_EVENTS: Final = "events are a dict, a list of dicts, JSON lines, or Arrow data"
_AGAIN: Final = (429, 502, 503, 504)
_LONGEST_PAUSE: Final = 30.0


class Operation(NamedTuple, Generic[_T]):
    """One request, and what its answer means."""

    method: str
    path: str
    read: Callable[[Any], _T]
    content: Any = None  # bytes, or a file
    params: dict[str, Any] | None = None
    headers: dict[str, str] | None = None
    is_repeatable: bool = True  # a second time, it changes nothing more
    patience: float = 0.0  # seconds that the server may wait before it answers

    def request(self, timeout: httpx2.Timeout) -> dict[str, Any]:
        """The arguments of an HTTP client."""
        own: dict[str, Any] = {
            "method": self.method,
            "url": self.path,
            "content": self.content,
            "params": self.params,
            "headers": self.headers,
        }
        if self.patience and timeout.read is not None:
            own["timeout"] = timeout.read + self.patience
        return own

    def finish(self, response: httpx2.Response) -> _T:
        """The answer; raises a `ServerError` if the server refused the request."""
        if response.is_success:
            return self.read_text(response.content)
        raise to_error(response)

    def read_text(self, text: bytes | str) -> _T:
        """What an answer, or a line of it, means; raises a `ServerError` if it has another form."""
        found = read_json(text) if text else None
        try:
            return self.read(found)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise refuse_answer(f"has another form: {error!r:.100}") from None


def read_json(text: bytes | str) -> Any:
    """The value of a JSON text; raises a `ServerError` if it is not JSON.

    Events may have values that are valid JSON and that orjson does not read: lone surrogates, large
    integers, and numbers beyond a double, which are decimals here.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(text, parse_float=_read_number)
    except (ValueError, RecursionError) as error:
        raise refuse_answer(f"is not JSON: {error}") from None


def _read_number(text: str) -> float | Decimal:
    found = float(text)
    return Decimal(text) if math.isinf(found) else found


def refuse_answer(reason: str) -> ServerError:
    """The error of an answer that cannot be read."""
    problem = {
        "code": "bad-answer",
        "detail": f"the answer of the server {reason}",
        "hint": "is this the address of a Tamis server?",
    }
    return ServerError(200, problem)


def to_error(response: httpx2.Response) -> ServerError:
    """The error of an answer."""
    try:
        problem = orjson.loads(response.content)
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    problem.setdefault("detail", f"the server answered with status {response.status_code}")
    return ServerError(response.status_code, problem)


def find_pause(response: httpx2.Response | None, attempt: int) -> float | None:
    """How many seconds to wait before an attempt is repeated; None if that is of no use."""
    if attempt + 1 >= ATTEMPTS or (response is not None and response.status_code not in _AGAIN):
        return None
    asked = "" if response is None else response.headers.get("retry-after", "")
    return min(float(asked) if asked.isdigit() else 0.2 * 3**attempt, _LONGEST_PAUSE)


def subscription_path(subscription_id: str, *rest: str) -> str:
    """The path of a subscription, whatever its id is."""
    if not isinstance(subscription_id, str) or not subscription_id:
        raise InputError(f"the id of a subscription is {subscription_id!r}; text is expected")
    return "/".join(("/v1/subscriptions", quote(subscription_id, safe=""), *rest))


def mailbox_path(subscription_id: str | None, channel: str | None, *rest: str) -> str:
    """The path of a mailbox: that of a subscription, or of a channel."""
    if channel is None:
        return subscription_path(subscription_id or "", *rest)
    if subscription_id is not None:
        raise InputError("a subscription and a channel are given; one mailbox is expected")
    return channel_path(channel, *rest)


def channel_path(name: str, *rest: str) -> str:
    """The path of a channel, whatever its name is."""
    if not isinstance(name, str) or not name:
        raise InputError(f"the name of a channel is {name!r}; text is expected")
    return "/".join(("/v1/channels", quote(name, safe=""), *rest))


# ── subscriptions ───────────────────────────────────────────────────────────────────────────


def subscribe(expression: str, given: dict[str, Any]) -> Operation[Subscription]:
    """Make a subscription."""
    body = {"expression": expression} | drop_none(given)
    # The ticket would be lost if the first attempt had succeeded.
    path, is_repeatable = "/v1/subscriptions", False
    return Operation("POST", path, Subscription.of, spell(body), None, JSON, is_repeatable)


def get(subscription_id: str, ticket: str | None) -> Operation[Subscription]:
    """One subscription."""
    path = subscription_path(subscription_id)
    return Operation("GET", path, Subscription.of, headers=show_ticket(ticket))


def list_page(filters: dict[str, Any]) -> Operation[SubscriptionPage]:
    """A page of subscriptions."""
    return Operation("GET", "/v1/subscriptions", SubscriptionPage.of, params=drop_none(filters))


def replace(
    subscription_id: str, ticket: str | None, if_revision: int | None, given: dict[str, Any]
) -> Operation[Subscription]:
    """Change the given fields."""
    headers = JSON | show_ticket(ticket) | _match(if_revision)
    path, is_repeatable = subscription_path(subscription_id), if_revision is None
    return Operation("PATCH", path, Subscription.of, spell(given), None, headers, is_repeatable)


def renew(
    subscription_id: str, ticket: str | None, until: datetime | str | None, lease: float | None
) -> Operation[Subscription]:
    """Extend a lease."""
    body = drop_none({"valid_until": until, "lease": lease})
    path = subscription_path(subscription_id, "renew")
    return Operation("POST", path, Subscription.of, spell(body), headers=JSON | show_ticket(ticket))


def unsubscribe(
    subscription_id: str, ticket: str | None, if_revision: int | None
) -> Operation[None]:
    """End a subscription."""
    headers = show_ticket(ticket) | _match(if_revision)
    path = subscription_path(subscription_id)
    return Operation("DELETE", path, read_nothing, headers=headers, is_repeatable=False)


def import_rows(
    rows: Any, media_type: str | None, *, replaces: bool, is_dry: bool
) -> Operation[dict[str, Any]]:
    """Import subscriptions; each line of the answer is a result."""
    params = {"existing": "replace" if replaces else "refuse", "dry_run": is_dry}
    headers = LINES if media_type is None else {"content-type": media_type}
    if not isinstance(rows, bytes | str) and not hasattr(rows, "read"):
        rows = b"\n".join(spell(dict(row)) for row in rows)
    path, content = "/v1/subscriptions/import", rows.encode() if isinstance(rows, str) else rows
    return Operation("POST", path, dict, content, params, headers, is_repeatable=False)


def export(filters: dict[str, Any]) -> Operation[dict[str, Any]]:
    """Export subscriptions; each line of the answer is one."""
    return Operation("GET", "/v1/subscriptions/export", dict, params=drop_none(filters))


# ── channels ────────────────────────────────────────────────────────────────────────────────


def create_channel(name: str, subscriptions: Sequence[str]) -> Operation[Channel]:
    """Make a channel."""
    body = spell({"name": name, "subscriptions": list(subscriptions)})
    return Operation("POST", "/v1/channels", read_dict, body, headers=JSON, is_repeatable=False)


def delete_channel(name: str) -> Operation[None]:
    """Delete a channel."""
    return Operation("DELETE", channel_path(name), read_nothing, is_repeatable=False)


def change_members(
    name: str, subscriptions: Sequence[str], ticket: str | None, *, is_added: bool
) -> Operation[int]:
    """Add subscriptions to a channel, or remove them."""
    path = channel_path(name, "members", *([] if is_added else ["remove"]))
    body = spell({"subscriptions": list(subscriptions)})
    return Operation("POST", path, read_changed, body, headers=JSON | show_ticket(ticket))


def read_changed(answer: dict[str, Any]) -> int:
    """How many were changed."""
    return int(answer["changed"])


# ── events ──────────────────────────────────────────────────────────────────────────────────


def publish(events: Any, *, ids: bool, idempotency_key: str | None) -> Operation[Published]:
    """Publish events. A key makes it safe to repeat the request."""
    content, headers = spell_events(events)
    key = secrets.token_hex(16) if idempotency_key is None else idempotency_key
    return Operation(
        "POST",
        "/v1/events",
        Published.of,
        content,
        {"matches": "ids" if ids else "count"},
        headers | {"idempotency-key": key},
    )


def spell_events(events: Any) -> tuple[bytes, dict[str, str]]:
    """The body of a request to publish, and its media type."""
    if isinstance(events, bytes | str):
        return events.encode() if isinstance(events, str) else events, LINES
    if isinstance(events, Mapping):
        return spell(dict(events)), JSON
    if hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
        return _spell_arrow(events), ARROW
    if not isinstance(events, Iterable):
        raise InputError(_EVENTS, hint=f"{type(events).__name__} is none of them")
    rows = list(events)
    if not all(isinstance(row, Mapping) for row in rows):
        raise InputError(_EVENTS, hint="an element of the list is not a dict")
    return b"\n".join(spell(dict(row)) for row in rows), LINES


def _spell_arrow(events: Any) -> bytes:
    import pyarrow as pa

    table = pa.table(events)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


# ── questions ───────────────────────────────────────────────────────────────────────────────


def read_matches(
    path: str, ticket: str | None, *, wait: float, **params: Any
) -> Operation[Matches]:
    """A page of a mailbox."""
    params = drop_none(params | {"wait": wait or None})
    return Operation(
        "GET", path, Matches.of, params=params, headers=show_ticket(ticket), patience=wait
    )


def stream(path: str, ticket: str | None, consumer: str | None) -> Operation[None]:
    """Follow a mailbox."""
    params = drop_none({"consumer": consumer})
    return Operation("GET", path, read_nothing, params=params, headers=show_ticket(ticket))


def acknowledge(path: str, ticket: str | None, cursor: str, consumer: str) -> Operation[str]:
    """Store that all up to a cursor is handled."""
    epoch, _, event = cursor.rpartition(":")
    if not epoch or not event.isdigit():
        raise InputError(f"the cursor is {cursor!r:.100}; EPOCH:NUMBER is expected")
    body = spell({"epoch": epoch, "event": int(event), "consumer": consumer})
    return Operation("POST", path, _read_cursor, body, headers=JSON | show_ticket(ticket))


def _read_cursor(answer: dict[str, Any]) -> str:
    return f"{answer['epoch']}:{answer['event']}"


def match(event: Mapping[str, Any], options: dict[str, Any]) -> Operation[list[str]]:
    """Which subscriptions an event would match."""
    body = {"event": dict(event)} | drop_none(options)
    return Operation("POST", "/v1/match", _read_matching, spell(body), headers=JSON)


def _read_matching(answer: dict[str, Any]) -> list[str]:
    """The ids; values that were not read are a warning."""
    ignored = [Ignored.of(own) for own in answer["ignored_values"]]
    for own in ignored:
        warn(own.describe(), RejectWarning)
    ids: list[str] = answer["ids"]
    return ids


def explain(
    subscription_id: str, event: Mapping[str, Any], ticket: str | None
) -> Operation[Explanation]:
    """Why a subscription matches an event, or why not."""
    body = {"subscription_id": subscription_id, "event": dict(event)}
    return Operation(
        "POST", "/v1/explain", read_dict, spell(body), headers=JSON | show_ticket(ticket)
    )


def explain_draft(expression: str, event: Mapping[str, Any]) -> Operation[Explanation]:
    """Why an expression that is not a subscription matches an event, or why not."""
    body = {"expression": expression, "event": dict(event)}
    return Operation("POST", "/v1/explain", read_dict, spell(body), headers=JSON)


def check(expression: str, *, similar: bool) -> Operation[CheckedDraft]:
    """What is wrong with a draft."""
    body = spell({"expression": expression, "similar": similar})
    return Operation("POST", "/v1/check", read_dict, body, headers=JSON)


def forecast(expression: str, options: dict[str, Any]) -> Operation[Forecast]:
    """What a draft would have matched."""
    body = spell({"expression": expression} | drop_none(options))
    return Operation("POST", "/v1/forecast", read_dict, body, headers=JSON, patience=60.0)


def search(expression: str | None, options: dict[str, Any]) -> Operation[SearchPage]:
    """The archived events that an expression would have matched."""
    body = spell(drop_none({"expression": expression} | options))
    return Operation("POST", "/v1/search", read_dict, body, headers=JSON, patience=60.0)


def read_dict(answer: Any) -> Any:
    """An answer that is passed on as it came."""
    return dict(answer)


def read_nothing(_: Any) -> None:
    """An answer without content."""
    return


def show_ticket(ticket: str | None) -> dict[str, str]:
    """The header with a ticket."""
    return {} if ticket is None else {"tamis-ticket": ticket}


def _match(revision: int | None) -> dict[str, str]:
    return {} if revision is None else {"if-match": f'"{revision}"'}


def drop_none(given: dict[str, Any]) -> dict[str, Any]:
    """What is given."""
    return {name: value for name, value in given.items() if value is not None}


def spell(value: Any) -> bytes:
    """A value as JSON; raises an `InputError` if it cannot be."""
    try:
        return orjson.dumps(value, default=_spell_other)
    except TypeError as error:
        raise InputError(f"this cannot be sent as JSON: {error}") from None


def _spell_other(value: Any) -> Any:
    if isinstance(value, Decimal):
        return orjson.Fragment(str(value).encode())
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
