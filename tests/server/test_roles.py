"""Every role is tried on every route. A route that is not in the table fails the test."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any, NamedTuple

import pytest

import tamis
from tamis.broker.digest_times import DigestTime, Period
from tamis.broker.mailbox import Mailbox
from tamis.broker.rights import LOCAL
from tamis.broker.sources import NewSource
from tamis.server.app import ROUTERS, create_app
from tamis.server.settings import DeliverySettings, ServerSettings, Settings
from tamis.subscriptions import Subscribe
from tests.server.asgi import ask
from tests.server.conftest import STORES, choose_store

# Callers: without a key; with a key of another owner that has one role; with a key of the owner of
# the subscription (subscribe and read); with the ticket of the subscription and no key.
CALLERS = ("nobody", "publish", "subscribe", "read", "owner", "ticket", "admin")
ALL = set(CALLERS)
THEIRS = {"owner", "ticket", "admin"}  # who may see a subscription


class Rule(NamedTuple):
    """Who may use a route, and a body that it accepts."""

    allowed: set[str]
    body: Any = None


RULES = {
    ("GET", "/v1/openapi.json"): Rule(ALL),
    ("GET", "/healthz"): Rule(ALL),
    ("GET", "/readyz"): Rule(ALL),
    ("GET", "/"): Rule(ALL),  # the console: nothing but programs
    ("GET", "/console/{name}"): Rule(ALL),
    ("GET", "/v1/session"): Rule(ALL),
    ("POST", "/v1/session"): Rule(ALL - {"nobody", "ticket"}),
    ("DELETE", "/v1/session"): Rule(ALL),
    ("GET", "/v1/activity"): Rule({"read", "owner", "admin"}),
    ("POST", "/v1/activity"): Rule({"read", "owner", "admin"}, {"subscriptions": []}),
    ("GET", "/metrics"): Rule(ALL),
    ("GET", "/v1/stats"): Rule({"admin"}),
    ("GET", "/v1/anatomy"): Rule({"admin"}),
    ("GET", "/v1/settings"): Rule({"admin"}),
    ("GET", "/v1/vocabulary"): Rule({"read", "owner", "admin"}),
    ("GET", "/v1/events/tap"): Rule({"admin"}),
    ("POST", "/v1/subscriptions"): Rule(
        {"subscribe", "owner", "admin"}, {"expression": "age >= 18"}
    ),
    ("GET", "/v1/subscriptions"): Rule({"read", "owner", "admin"}),
    ("GET", "/v1/subscriptions/{subscription_id}"): Rule(THEIRS),
    ("PATCH", "/v1/subscriptions/{subscription_id}"): Rule({"ticket", "admin"}, {"tags": ["t"]}),
    ("POST", "/v1/subscriptions/{subscription_id}/renew"): Rule(
        {"ticket", "admin"}, {"lease": 1e6}
    ),
    ("DELETE", "/v1/subscriptions/{subscription_id}"): Rule({"ticket", "admin"}),
    ("GET", "/v1/subscriptions/{subscription_id}/matches"): Rule(THEIRS),
    ("GET", "/v1/subscriptions/{subscription_id}/stream"): Rule(THEIRS),
    ("POST", "/v1/events"): Rule({"publish", "admin"}, {"age": 20}),
    ("POST", "/v1/match"): Rule({"read", "owner", "admin"}, {"event": {"age": 20}}),
    ("POST", "/v1/explain"): Rule(THEIRS, {"subscription_id": "{subscription_id}", "event": {}}),
    ("POST", "/v1/keys"): Rule({"admin"}, {"owner": "eve", "roles": ["admin"]}),
    ("GET", "/v1/keys"): Rule({"admin"}),
    ("DELETE", "/v1/keys/{key_id}"): Rule({"admin"}),
    ("GET", "/v1/audit"): Rule({"admin"}),
    ("GET", "/v1/sources"): Rule({"admin"}),
    ("POST", "/v1/sources/import"): Rule({"admin"}, {"sources": []}),
    ("GET", "/v1/sources/opml"): Rule({"admin"}),
    ("POST", "/v1/backup"): Rule({"admin"}, {"target": "of-{subscription_id}"}),
    ("POST", "/v1/import-version"): Rule({"admin"}, {"source": "nightly"}),
}


# Routes of things that belong to somebody: the tests of each kind try owners and tickets. Here,
# those who have no right to anything are refused.
OTHERS = [
    ("POST", "/v1/subscriptions/import"),
    ("GET", "/v1/subscriptions/export"),
    ("POST", "/v1/subscriptions/{subscription_id}/acknowledge"),
    ("GET", "/v1/subscriptions/{subscription_id}/consumers"),
    ("PUT", "/v1/subscriptions/{subscription_id}/consumers/{consumer}"),
    ("DELETE", "/v1/subscriptions/{subscription_id}/consumers/{consumer}"),
    ("GET", "/v1/events"),
    ("GET", "/v1/events/{number}"),
    ("POST", "/v1/check"),
    ("POST", "/v1/forecast"),
    ("POST", "/v1/search"),
    ("POST", "/v1/channels"),
    ("GET", "/v1/channels"),
    ("GET", "/v1/channels/{channel}"),
    ("DELETE", "/v1/channels/{channel}"),
    ("GET", "/v1/channels/{channel}/members"),
    ("POST", "/v1/channels/{channel}/members"),
    ("POST", "/v1/channels/{channel}/members/remove"),
    ("GET", "/v1/channels/{channel}/matches"),
    ("GET", "/v1/channels/{channel}/stream"),
    ("POST", "/v1/channels/{channel}/acknowledge"),
    ("GET", "/v1/channels/{channel}/consumers"),
    ("PUT", "/v1/channels/{channel}/consumers/{consumer}"),
    ("DELETE", "/v1/channels/{channel}/consumers/{consumer}"),
    ("POST", "/v1/webhooks"),
    ("GET", "/v1/webhooks"),
    ("GET", "/v1/webhooks/{number}"),
    ("DELETE", "/v1/webhooks/{number}"),
    ("POST", "/v1/webhooks/{number}/pause"),
    ("POST", "/v1/webhooks/{number}/resume"),
    ("POST", "/v1/webhooks/{number}/rotate"),
    ("POST", "/v1/webhooks/{number}/test"),
    ("GET", "/v1/webhooks/{number}/deliveries"),
    ("GET", "/v1/webhooks/{number}/dead-letters"),
    ("POST", "/v1/webhooks/{number}/dead-letters/send"),
    ("POST", "/v1/webhooks/{number}/dead-letters/delete"),
    ("POST", "/v1/feeds"),
    ("GET", "/v1/feeds"),
    ("DELETE", "/v1/feeds/{number}"),
    ("POST", "/v1/digests"),
    ("GET", "/v1/digests"),
    ("GET", "/v1/digests/{number}"),
    ("DELETE", "/v1/digests/{number}"),
    ("POST", "/v1/sources"),
    ("POST", "/v1/sources/opml"),
    ("GET", "/v1/sources/{number}"),
    ("PATCH", "/v1/sources/{number}"),
    ("DELETE", "/v1/sources/{number}"),
    ("POST", "/v1/sources/{number}/fetch"),
    # The token in the address is the right; an unknown one is refused.
    ("GET", "/feeds/{name}"),
    ("GET", "/digests/confirm/{token}"),
    ("POST", "/digests/confirm/{token}"),
    ("GET", "/digests/{token}"),
    ("POST", "/digests/{token}"),
]
# The same routes for everybody: things of ann. Besides the callers above, keys of ann that have one
# role: reader and maker. Whoever is not named gets the answer of a thing that does not exist.
EVERYBODY = (*CALLERS, "reader", "maker")
READERS = {"read", "owner", "reader", "admin"}  # who may list what is theirs
MAKERS = {"subscribe", "owner", "maker", "admin"}
OWNERS = {"owner", "reader", "maker", "ticket", "admin"}  # who may handle what hangs on a mailbox
HEAD = {"event": 0, "epoch": "{epoch}"}
THINGS = {
    ("POST", "/v1/subscriptions/import"): Rule(MAKERS),
    ("GET", "/v1/subscriptions/export"): Rule(READERS),
    ("POST", "/v1/subscriptions/{subscription_id}/acknowledge"): Rule(OWNERS, HEAD),
    ("GET", "/v1/subscriptions/{subscription_id}/consumers"): Rule(OWNERS),
    ("PUT", "/v1/subscriptions/{subscription_id}/consumers/{consumer}"): Rule(OWNERS, HEAD),
    ("DELETE", "/v1/subscriptions/{subscription_id}/consumers/{consumer}"): Rule(OWNERS),
    ("GET", "/v1/events"): Rule({"admin"}),
    ("GET", "/v1/events/{number}"): Rule({"admin"}),
    ("POST", "/v1/check"): Rule(READERS, {"expression": "age >= 18"}),
    ("POST", "/v1/forecast"): Rule({"admin"}, {"expression": "age >= 18"}),
    ("POST", "/v1/search"): Rule({"admin"}, {"expression": "age >= 18"}),
    ("POST", "/v1/channels"): Rule(MAKERS, {"name": "new {subscription_id}"}),
    ("GET", "/v1/channels"): Rule(READERS),
    ("GET", "/v1/channels/{channel}"): Rule({"owner", "reader", "admin"}),
    ("DELETE", "/v1/channels/{channel}"): Rule({"owner", "maker", "admin"}),
    ("GET", "/v1/channels/{channel}/members"): Rule({"owner", "reader", "admin"}),
    ("POST", "/v1/channels/{channel}/members"): Rule(
        {"owner", "maker", "admin"}, {"subscriptions": ["{subscription_id}"]}
    ),
    ("POST", "/v1/channels/{channel}/members/remove"): Rule(
        {"owner", "maker", "admin"}, {"subscriptions": ["{subscription_id}"]}
    ),
    ("GET", "/v1/channels/{channel}/matches"): Rule({"owner", "reader", "admin"}),
    ("GET", "/v1/channels/{channel}/stream"): Rule({"owner", "reader", "admin"}),
    ("POST", "/v1/channels/{channel}/acknowledge"): Rule({"owner", "reader", "admin"}, HEAD),
    ("GET", "/v1/channels/{channel}/consumers"): Rule({"owner", "reader", "admin"}),
    ("PUT", "/v1/channels/{channel}/consumers/{consumer}"): Rule(
        {"owner", "reader", "admin"}, HEAD
    ),
    ("DELETE", "/v1/channels/{channel}/consumers/{consumer}"): Rule({"owner", "reader", "admin"}),
    **{
        ("POST", f"/v1/{kind}"): Rule(
            {"owner", "maker", "ticket", "admin"}, {"subscription": "{subscription_id}", **more}
        )
        for kind, more in (
            ("webhooks", {"url": "https://192.0.2.1/"}),
            ("feeds", {}),
            ("digests", {"address": "ann@example.com"}),
        )
    },
    **{("GET", f"/v1/{kind}"): Rule(READERS) for kind in ("webhooks", "feeds", "digests")},
    **{
        (method, path): Rule(OWNERS, None if method in ("GET", "DELETE") else {})
        for method, path in OTHERS
        if "{number}" in path and not path.startswith(("/v1/events", "/v1/sources"))
    },
    # The body is refused: nothing is fetched from elsewhere.
    ("POST", "/v1/sources"): Rule({"admin"}, {"url": "nonsense"}),
    ("POST", "/v1/sources/opml"): Rule({"admin"}, {}),  # the body is not OPML
    ("GET", "/v1/sources/{number}"): Rule({"admin"}),
    ("PATCH", "/v1/sources/{number}"): Rule({"admin"}, {}),
    ("DELETE", "/v1/sources/{number}"): Rule({"admin"}),
    ("POST", "/v1/sources/{number}/fetch"): Rule({"admin"}),
}
# What else a request has that makes something for a mailbox.
MADE = {
    "/v1/webhooks": {"url": "https://example.com/"},
    "/v1/feeds": {},
    "/v1/digests": {"address": "ann@example.com"},
}
SOCKETS = [
    ("WEBSOCKET", "/v1/subscriptions/{subscription_id}/socket"),
    ("WEBSOCKET", "/v1/channels/{channel}/socket"),
]


def list_routes(app) -> set[tuple[str, str]]:
    """The methods and paths of all routes."""
    own = [route for route in app.routes if hasattr(route, "path")]
    assert len(app.routes) - len(own) == len(ROUTERS), "a router is not in ROUTERS"
    routes = [*own, *(route for router in ROUTERS for route in router.routes)]
    return {
        (method, route.path)
        for route in routes
        for method in getattr(route, "methods", None) or {"WEBSOCKET"}
        if method != "HEAD"
    }


@pytest.fixture(scope="module", params=STORES)
def app(request, tmp_path_factory) -> Iterator[Any]:
    from tamis.broker.match_server import MatchServer, MatchServerSettings

    folder = tmp_path_factory.mktemp("roles") / "server"
    own = MatchServerSettings(store=choose_store(request))
    with MatchServer.open(folder, own) as match_server:
        (folder / "imports").mkdir()
        tamis.build({"x": "a = 1"}).save(folder / "imports" / "nightly")
        delivery = DeliverySettings(smtp_host="127.0.0.1", smtp_sender="tamis@example.com")
        settings = Settings(server=ServerSettings(folder=folder), delivery=delivery)
        yield create_app(match_server, settings)


class Callers:
    """Makes a subscription with a ticket, and shows what a caller shows."""

    def __init__(self, app) -> None:
        self._server = app.state.context.match_server
        self._numbers = count()
        keys = self._server.broker.keys
        self._keys = {
            role: keys.create(LOCAL, f"{role} of eve", [role])
            for role in ("publish", "subscribe", "read", "admin")
        }
        self._keys["owner"] = keys.create(LOCAL, "ann", ["subscribe", "read"])
        self._keys["reader"] = keys.create(LOCAL, "ann", ["read"])
        self._keys["maker"] = keys.create(LOCAL, "ann", ["subscribe"])

    def make_subscription(self) -> tuple[str, str]:
        """A new subscription of ann: its id and its ticket."""
        name, ticket = f"s{next(self._numbers)}", self._server.broker.tickets.make()
        until = self._server.live.store.moment + timedelta(hours=1)
        wanted = Subscribe(name, "age >= 18", "ann", valid_until=until, ticket_hash=ticket.hash)
        self._server.live.apply([wanted])
        return name, ticket.secret.reveal()

    def make_thing(self, path: str) -> tuple[dict[str, Any], str]:
        """A subscription of ann, a channel, and what a path names; and the ticket."""
        name, ticket = self.make_subscription()
        broker, head = self._server.broker, self._server.mailboxes.head
        box = Mailbox.of_subscription(self._server.live.get(name).created)
        values = {"subscription_id": name, "channel": f"channel {name}", "consumer": "c"}
        broker.channels.create(LOCAL, values["channel"], owner="ann")
        number = 1
        match path.split("/")[2]:
            case "webhooks":
                url = "http://127.0.0.1:9/"  # never reached: it is private
                number = broker.webhooks.create(LOCAL, box, url, head).webhook.number
            case "feeds":
                number = broker.feeds.create(LOCAL, box, "title").feed.number
            case "sources":
                url = f"https://192.0.2.1/{name}"
                number = broker.sources.create(LOCAL, NewSource(url)).number
            case "digests":
                at = DigestTime(Period.DAILY)
                number = broker.digests.create(LOCAL, box, "ann@example.com", at, head).number
        return values | {"number": number, "epoch": head.epoch}, ticket

    def make_key(self) -> str:
        return self._server.broker.keys.create(LOCAL, "someone", ["read"]).key.id

    def show(self, caller: str, ticket: str) -> dict[str, str]:
        if caller == "ticket":
            return {"tamis-ticket": ticket}
        if caller == "nobody":
            return {}
        return {"authorization": f"Bearer {self._keys[caller].secret.reveal()}"}


@pytest.fixture(scope="module")
def callers(app) -> Callers:
    return Callers(app)


def test_every_route_has_a_rule(app):
    assert list_routes(app) == {*RULES, *OTHERS, *SOCKETS}


@pytest.mark.parametrize("caller", ["nobody", "publish"])
@pytest.mark.parametrize(("method", "path"), OTHERS)
def test_strangers_are_refused(app, callers, method, path, caller):
    name, ticket = callers.make_subscription()
    values = {"subscription_id": name, "channel": "c", "consumer": "c", "number": 1}
    place = path.format(**values, name="feed_x.atom", token="x")
    shown = callers.show(caller, ticket)
    body = {"subscription": name, **MADE[path]} if path in MADE else {}
    head = ask(app, method, place, shown, None if method in ("GET", "DELETE") else body)
    assert head.status in {401, 403, 404}, head


def test_every_thing_has_a_rule():
    by_token = {("GET", "/feeds/{name}")}
    by_token |= {(method, path) for method, path in OTHERS if path.startswith("/digests/")}
    assert set(OTHERS) - by_token == set(THINGS)


def fill(body: Any, values: dict[str, Any]) -> Any:
    if isinstance(body, dict):
        return {name: fill(own, values) for name, own in body.items()}
    if isinstance(body, list):
        return [fill(own, values) for own in body]
    return body.format(**values) if isinstance(body, str) else body


@pytest.mark.parametrize("caller", EVERYBODY)
@pytest.mark.parametrize(("method", "path"), THINGS)
def test_every_role_on_every_thing(app, callers, method, path, caller):
    rule = THINGS[method, path]
    values, ticket = callers.make_thing(path)
    place = path.format(**values).replace(" ", "%20")
    head = ask(app, method, place, callers.show(caller, ticket), fill(rule.body, values))
    # What is asked for need not succeed: there is no such event, or no such address.
    is_refused = head.status in {401, 403} or (head.status == 404 and path != "/v1/events/{number}")
    assert is_refused is (caller not in rule.allowed), head
    assert head.status < 500


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(("method", "path"), RULES)
def test_every_role_on_every_route(app, callers, method, path, caller):
    rule = RULES[method, path]
    name, ticket = callers.make_subscription()
    values = {"subscription_id": name, "key_id": callers.make_key(), "name": "console.js"}
    body = rule.body
    if isinstance(body, dict):
        body = {
            key: own.format(**values) if isinstance(own, str) else own for key, own in body.items()
        }
    head = ask(app, method, path.format(**values), callers.show(caller, ticket), body)
    if caller in rule.allowed:
        assert head.status in (200, 201, 204), head
    else:
        # 404: whoever may not see a subscription does not learn that it exists.
        hidden = {404} if "{subscription_id}" in f"{path}{rule.body}" else set()
        assert head.status in {401, 403} | hidden, head
    if head.status == 401:
        assert head.headers["www-authenticate"].startswith("Bearer")


def test_what_others_own_is_not_listed(app, callers):
    import json

    from starlette.testclient import TestClient

    name, _ = callers.make_subscription()
    client = TestClient(app, base_url="http://127.0.0.1")
    for caller, sees in (("read", False), ("owner", True), ("admin", True)):
        headers = callers.show(caller, "")
        listed = client.get("/v1/subscriptions?limit=1000", headers=headers)
        matched = client.post("/v1/match", json={"event": {"age": 20}}, headers=headers)
        assert (name in json.dumps(listed.json())) is sees
        assert (name in matched.json()["ids"]) is sees
    other = client.get("/v1/subscriptions?owner=ann", headers=callers.show("read", ""))
    assert other.status_code == 403


def test_an_owner_can_be_named_by_an_admin_only(app, callers):
    body = {"expression": "a = 1", "owner": "ann"}
    for caller, status in (("subscribe", 403), ("owner", 201), ("admin", 201)):
        head = ask(app, "POST", "/v1/subscriptions", callers.show(caller, ""), body)
        assert head.status == status
