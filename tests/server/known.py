"""Things that exist, and requests about them that succeed: one for each route of the server."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import tamis
from tamis.broker.digest_times import DigestTime, Period
from tamis.broker.mailbox import Mailbox
from tamis.broker.rights import LOCAL
from tamis.broker.secrets import Purpose
from tamis.broker.sources import NewSource
from tamis.subscriptions import Subscribe

if TYPE_CHECKING:
    from fastapi import FastAPI

OWNER: Final = "ann"
_URL: Final = "http://127.0.0.1:9/"  # nobody listens there
_EVENT: Final = {"age": 20}
_HEAD: Final = {"event": 0, "epoch": "{epoch}"}
_OF_ONE: Final = {"subscription": "{subscription_id}"}
_MEMBERS: Final = {"subscriptions": ["{subscription_id}"]}

# The body of a request that succeeds; `{name}` is filled in. No body where a route is not named.
BODIES: Final[dict[tuple[str, str], Any]] = {
    ("POST", "/v1/subscriptions/import"): [{"expression": "age >= 18"}],
    ("POST", "/v1/subscriptions"): {"expression": "age >= 18"},
    ("PATCH", "/v1/subscriptions/{subscription_id}"): {"tags": ["t"]},
    ("POST", "/v1/subscriptions/{subscription_id}/renew"): {"lease": 1e6},
    ("POST", "/v1/events"): _EVENT,
    ("POST", "/v1/subscriptions/{subscription_id}/acknowledge"): _HEAD,
    ("PUT", "/v1/subscriptions/{subscription_id}/consumers/{consumer}"): _HEAD,
    ("POST", "/v1/channels/{channel}/acknowledge"): _HEAD,
    ("PUT", "/v1/channels/{channel}/consumers/{consumer}"): _HEAD,
    ("POST", "/v1/channels"): {"name": "new {subscription_id}"},
    ("POST", "/v1/channels/{channel}/members"): _MEMBERS,
    ("POST", "/v1/channels/{channel}/members/remove"): _MEMBERS,
    ("POST", "/v1/webhooks"): {**_OF_ONE, "url": _URL},
    ("POST", "/v1/webhooks/{number}/resume"): {},
    ("POST", "/v1/webhooks/{number}/rotate"): {"overlap": 60},
    ("POST", "/v1/webhooks/{number}/dead-letters/send"): {},
    ("POST", "/v1/webhooks/{number}/dead-letters/delete"): {},
    ("POST", "/v1/feeds"): _OF_ONE,
    ("POST", "/v1/digests"): {**_OF_ONE, "address": "ann@example.com"},
    ("POST", "/v1/sources"): {"url": "https://192.0.2.1/{subscription_id}"},
    ("POST", "/v1/sources/import"): {"sources": [{"url": "https://192.0.2.2/{subscription_id}"}]},
    ("POST", "/v1/sources/opml"): b'<opml version="2.0"><body>'
    b'<outline type="rss" xmlUrl="https://example.com/feed"/></body></opml>',
    ("PATCH", "/v1/sources/{number}"): {"title": "News"},
    ("POST", "/v1/match"): {"event": _EVENT},
    ("POST", "/v1/explain"): {"subscription_id": "{subscription_id}", "event": _EVENT},
    ("POST", "/v1/check"): {"expression": "age >= 18"},
    ("POST", "/v1/forecast"): {"expression": "age >= 18"},
    ("POST", "/v1/search"): {"expression": "age >= 18", "limit": 2},
    ("POST", "/v1/activity"): _MEMBERS,
    ("POST", "/v1/keys"): {"owner": "bob", "roles": ["read"]},
    ("POST", "/v1/backup"): {"target": "of-{subscription_id}"},
    ("POST", "/v1/import-version"): {"source": "nightly"},
}

# Whoever is no admin gets 403 here.
FOR_ADMINS: Final = {
    ("GET", "/v1/events"),
    ("GET", "/v1/events/{number}"),
    ("POST", "/v1/forecast"),
    ("POST", "/v1/search"),
    ("POST", "/v1/sources"),
    ("GET", "/v1/sources"),
    ("POST", "/v1/sources/import"),
    ("GET", "/v1/sources/opml"),
    ("POST", "/v1/sources/opml"),
    ("GET", "/v1/sources/{number}"),
    ("PATCH", "/v1/sources/{number}"),
    ("DELETE", "/v1/sources/{number}"),
    ("POST", "/v1/sources/{number}/fetch"),
    ("GET", "/v1/stats"),
    ("GET", "/v1/anatomy"),
    ("GET", "/v1/settings"),
    ("POST", "/v1/keys"),
    ("GET", "/v1/keys"),
    ("DELETE", "/v1/keys/{key_id}"),
    ("GET", "/v1/audit"),
    ("POST", "/v1/backup"),
    ("POST", "/v1/import-version"),
}


class Known:
    """Makes things of ann, and the headers of an admin and of ann, who is none."""

    def __init__(self, app: FastAPI) -> None:
        self._context = app.state.context
        self._server = self._context.match_server
        self._numbers = count(1)
        keys = self._server.broker.keys
        self._keys = {
            "admin": keys.create(LOCAL, "admin", ["admin"]),
            OWNER: keys.create(LOCAL, OWNER, ["publish", "subscribe", "read"]),
        }
        imports = self._context.settings.server.folder / "imports"
        imports.mkdir(exist_ok=True)
        tamis.build({"x": "a = 1"}).save(imports / "nightly")

    def show(self, caller: str) -> dict[str, str]:
        """The headers of a caller: admin or ann."""
        return {"authorization": f"Bearer {self._keys[caller].secret.reveal()}"}

    def make(self, path: str) -> dict[str, Any]:
        """New things that a path names, and what bodies name: a value for each name."""
        name, ticket = f"s{next(self._numbers)}", self._server.broker.tickets.make()
        until = self._server.live.store.moment + timedelta(hours=1)
        wanted = Subscribe(name, "age >= 18", OWNER, valid_until=until, ticket_hash=ticket.hash)
        self._server.live.apply([wanted])
        head = self._server.mailboxes.head
        values = {"subscription_id": name, "ticket": ticket.secret.reveal(), "epoch": head.epoch}
        box = Mailbox.of_subscription(self._server.live.get(name).created)
        return values | self._make_more(path, name, box)

    def _make_more(self, path: str, name: str, box: Mailbox) -> dict[str, Any]:
        broker, head = self._server.broker, self._server.mailboxes.head
        match path.split("/")[1:3]:
            case ["v1", "channels"]:
                broker.channels.create(LOCAL, f"of {name}", owner=OWNER)
                return {"channel": f"of {name}", "consumer": "c"}
            case ["v1", "subscriptions"]:
                return {"consumer": "c"}
            case ["v1", "events"]:
                return {"number": 1}
            case ["v1", "webhooks"]:
                return {"number": broker.webhooks.create(LOCAL, box, _URL, head).webhook.number}
            case ["v1", "feeds"]:
                return {"number": broker.feeds.create(LOCAL, box, "title").feed.number}
            case ["feeds", _]:
                made = broker.feeds.create(LOCAL, box, "title")
                return {"name": f"{made.token.reveal()}.atom"}
            case ["v1", "sources"]:
                made = broker.sources.create(LOCAL, NewSource(f"https://192.0.2.3/{name}"))
                return {"number": made.number}
            case ["v1", "keys"]:
                return {"key_id": broker.keys.create(LOCAL, "someone", ["read"]).key.id}
            case [*_, "digests"] | ["digests", _]:
                at = DigestTime(Period.DAILY)
                made = broker.digests.create(LOCAL, box, "ann@example.com", at, head)
                purpose = Purpose.CONFIRM if "confirm" in path else Purpose.UNSUBSCRIBE
                token = self._context.deliveries.mailer._make_token(purpose, made)
                return {"number": made.number, "token": token}
        return {}


def fill(body: Any, values: dict[str, Any]) -> Any:
    """A body with its names filled in."""
    if isinstance(body, dict):
        return {name: fill(own, values) for name, own in body.items()}
    if isinstance(body, list):
        return [fill(own, values) for own in body]
    return body.format(**values) if isinstance(body, str) else body
