"""Both clients against a real server."""

from __future__ import annotations

import asyncio
import inspect
import threading
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any, get_args, get_type_hints

import httpx2
import pyarrow as pa
import pytest

import tamis
from tamis.client import AsyncClient, Client, ConnectionFailedError, Match, ServerError, answers
from tamis.client.connecting import COMEBACK
from tamis.client.operations import ATTEMPTS
from tamis.server.app import make_routes
from tests.server.processes import serving


@pytest.fixture
def client(address):
    with Client(address) as client:
        yield client


def test_a_life(client):
    made = client.subscribe(
        "age >= 18", id="life", tags=["t"], attributes={"title": "Adults"}, lease=60
    )
    assert made.ticket is not None
    assert client.get("life").tags == ("t",)
    published = client.publish([{"age": 20}, {"age": 2}], ids=True)
    assert (published.accepted, published.matched, published.ids) == (2, 1, (("life",), ()))
    (match,) = client.matches("life").matches
    assert (match.event, match.content) == (published.first_event, {"age": 20})
    assert client.matches("life", after=match.cursor).matches == ()
    changed = client.replace("life", expression="age >= 21", if_revision=made.revision)
    with pytest.raises(ServerError) as refused:
        client.replace("life", tags=[], if_revision=made.revision)
    assert (refused.value.status, refused.value.problem["revision"]) == (412, changed.revision)
    assert client.renew("life", lease=600).valid_until > made.valid_until
    assert client.match({"age": 30}) == ["life"]
    assert "age" in client.explain("life", {"age": 3})["sentence"]
    client.unsubscribe("life")
    with pytest.raises(ServerError, match='no subscription "life"'):
        client.get("life")


def test_a_search(client):
    before = client.publish([{"text": "iron and tin"}, {"text": "iron ore"}]).first_event
    asked = {"query": "iron -tin", "attributes": ["text"], "limit": 1}
    page = client.search(**asked)
    assert [hit["event"] for hit in page["hits"]] == [before + 1]
    assert page["hits"][0]["highlights"] == {"text": [[0, 4]]}
    both = client.search("matches(text, 'iron')", limit=1)
    following = client.search("matches(text, 'iron')", limit=1, cursor=both["cursor"])
    assert [hit["event"] for hit in following["hits"]] == [before]
    assert client.search(**asked, since=datetime(2100, 1, 1, tzinfo=UTC))["hits"] == []
    with pytest.raises(ServerError, match="one of expression and query"):
        client.search()


ODD = {
    b'{"odd": 1, "x": 1e400}': {"odd": 1, "x": Decimal("1e400")},
    b'{"odd": 1, "x": %d}' % 10**400: {"odd": 1, "x": 10**400},
    b'{"odd": 1, "x": "\\ud800"}': {"odd": 1, "x": "\ud800"},
    b'\xef\xbb\xbf{"odd": 1}': {"odd": 1},
    b'{\n"odd": 1\r}': {"odd": 1},
}


def test_every_accepted_event_can_be_read(client, address):
    client.subscribe("odd = 1", id="odd")
    for text in ODD:
        answer = httpx2.post(f"{address}/v1/events", content=text)
        assert answer.json()["accepted"] == 1
    read = client.matches("odd").matches
    assert [match.content for match in read] == list(ODD.values())
    streamed = islice(client.stream("odd", after="0"), len(ODD))
    assert [match.content for match in streamed] == list(ODD.values())

    async def stream() -> list:
        found = []
        async with AsyncClient(address) as other:
            async for match in other.stream("odd", after="0"):
                found.append(match.content)
                if len(found) == len(ODD):
                    return found
        return found

    assert asyncio.run(stream()) == list(ODD.values())


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"[]", b'{"id": 1}', b"[" * 100_000])
def test_an_answer_of_another_program_is_an_error(body):
    def answer(request):
        return httpx2.Response(200, content=body)

    with (
        Client("http://127.0.0.1:1", transport=httpx2.MockTransport(answer)) as client,
        pytest.raises(ServerError, match="the answer of the server") as refused,
    ):
        client.get("a")
    assert refused.value.code == "bad-answer"


def test_events_in_every_form(client):
    client.subscribe("price = 10.1", id="forms")
    for events in (
        {"price": Decimal("10.1")},
        '{"price": 10.1}\n{"price": 3}',
        b'{"price": 10.1}',
        pa.table({"price": [10.1, None]}),
        iter([{"price": 10.1}]),
    ):
        assert client.publish(events).matches == 1
    assert len(client.matches("forms").matches) == 5
    for wrong in ([1], {"x": object()}):
        with pytest.raises(tamis.errors.InputError):
            client.publish(wrong)
    for nothing in (3, None):
        with pytest.raises(tamis.errors.InputError, match="events are a dict, a list of dicts"):
            client.publish(nothing)


def test_matching_warns_of_values_that_were_not_read(address):
    with Client(address) as client:
        client.subscribe("unread_n > 3", id="unread")
        with pytest.warns(tamis.RejectWarning, match="1 value of unread_n was not read") as caught:
            assert client.match({"unread_n": "x"}) == []
        assert caught[0].filename == __file__
        assert client.match({"unread_n": 4}) == ["unread"]

    async def ask():
        async with AsyncClient(address) as client:
            return await client.match({"unread_n": "x"})

    with pytest.warns(tamis.RejectWarning, match="unread_n"):
        assert asyncio.run(ask()) == []


def test_rejected_rows_and_ignored_values_are_reported(client):
    client.subscribe("n > 3", id="rejects")
    published = client.publish('{"n": 4}\nno json\n{"n": "text"}')
    assert [row.row for row in published.rejected] == [1]
    (ignored,) = published.ignored
    assert (ignored.attribute, ignored.n_values) == ("n", 1)


def test_lists_are_read_in_pages(client):
    for at in range(7):
        client.subscribe(f"page = {at}", id=f"page-{at}", tags=["pages"])
    found = [one.id for one in client.list(tag="pages", limit=3)]
    assert found == [f"page-{at}" for at in range(7)]


def test_errors_have_their_place(client):
    with pytest.raises(ServerError) as refused:
        client.subscribe("age >= = 3")
    assert refused.value.problem["span"] == [7, 8]


def stream_of(lines: bytes, request: httpx2.Request) -> httpx2.Response:
    headers = {"content-type": "text/event-stream"}
    return httpx2.Response(200, headers=headers, content=lines, request=request)


def match_at(number: int) -> bytes:
    data = f'{{"event": {number}, "moment": "2030-01-01T10:00:00Z", "change": 1, "content": {{}}'
    return f'id: e:{number}\nevent: match\ndata: {data}, "subscriptions": []}}\n\n'.encode()


def test_a_stream_that_is_cut_off_before_the_first_match_misses_nothing(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    asked: list[str | None] = []

    def answer(request):
        asked.append(request.url.params.get("after"))
        if len(asked) == 1:
            return stream_of(b"id: e:7\nretry: 2000\n\n", request)
        if len(asked) < 20:
            raise httpx2.ConnectError("refused")  # it starts again
        if len(asked) == 20:
            return httpx2.Response(503, request=request)
        return stream_of(b"id: e:7\nretry: 2000\n\n" + match_at(8), request)

    with Client("http://127.0.0.1:1", transport=httpx2.MockTransport(answer)) as client:
        assert next(client.stream("a")).event == 8
    assert asked == [None] + ["e:7"] * 20


def test_what_a_stream_cannot_deliver_is_a_warning():
    missed = b'id: e:7\nevent: missed\ndata: {"first": 2, "last": 1007}\n\n'
    lost = b'event: lost-history\ndata: {"subscription": "a", "reason": "it is damaged"}\n\n'
    lines = b"id: e:1\nretry: 2000\n\n" + missed + lost + match_at(1008)
    transport = httpx2.MockTransport(lambda request: stream_of(lines, request))
    told = "events 2 to 1,007 were removed by retention"

    async def stream() -> Match:
        async with AsyncClient("http://127.0.0.1:1", transport=transport) as other:
            return await anext(other.stream("a"))

    with Client("http://127.0.0.1:1", transport=transport) as client:
        for read in (lambda: next(client.stream("a")), lambda: asyncio.run(stream())):
            with (
                pytest.warns(tamis.TamisWarning, match=told),
                pytest.warns(tamis.TamisWarning, match="of a cannot be read: it is damaged"),
            ):
                assert read().event == 1008


def test_a_stream_gives_up_in_the_end(monkeypatch):
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    n_asked = 0

    def answer(request):
        nonlocal n_asked
        n_asked += 1
        if n_asked == 1:
            return stream_of(b"id: e:7\nretry: 2000\n\n", request)
        raise httpx2.ConnectError("refused")

    transport = httpx2.MockTransport(answer)
    with Client("http://127.0.0.1:1", transport=transport) as client:
        with pytest.raises(ConnectionFailedError):
            next(client.stream("a"))
        assert now[0] >= COMEBACK
        now[0] = 0.0
        with pytest.raises(ConnectionFailedError):  # it was never reached
            next(client.stream("a"))
        assert now[0] < 10


def test_a_stream_continues_after_a_lost_connection(client, address):
    client.subscribe("s = 1", id="streamed")
    first = client.publish({"s": 1}).first_event
    stream = client.stream("streamed", after="0")
    assert next(stream).event == first
    second = client.publish({"s": 1}).first_event
    found = next(stream)
    assert found.event == second
    stream.close()
    assert next(client.stream("streamed", after="0")).event == first


def test_waiting_ends_with_the_first_match(client, address):
    client.subscribe("w = 1", id="waited")
    publisher = threading.Timer(0.2, lambda: client.publish({"w": 1}))
    publisher.start()
    page = client.matches("waited", wait=60)
    publisher.join()
    assert len(page.matches) == 1


def test_the_asynchronous_client(address):
    async def live() -> None:
        async with AsyncClient(address) as client:
            await client.subscribe("a = 1", id="async")
            stream = client.stream("async", after="0")
            published = await client.publish({"a": 1})
            assert (await anext(stream)).event == published.first_event
            await stream.aclose()
            assert [one.id async for one in client.list(text="a = 1")] == ["async"]
            await client.unsubscribe("async")
            with pytest.raises(ServerError):
                await client.get("async")

    asyncio.run(live())


def test_both_clients_have_the_same_methods():
    own = [{name for name in dir(each) if name[0] != "_"} for each in (Client, AsyncClient)]
    assert own[0] == own[1]
    for name in own[0]:
        ours, theirs = (inspect.signature(getattr(each, name)) for each in (Client, AsyncClient))
        assert ours.parameters == theirs.parameters, name


def test_the_types_of_answers_are_those_of_the_server():
    """Each dict has the names that the OpenAPI document says, and its types are those."""
    schemas = make_routes().openapi()["components"]["schemas"]
    for own, theirs in ANSWERS.items():
        described = schemas[theirs]["properties"]
        assert get_type_hints(own).keys() == described.keys(), theirs
        for name, kind in get_type_hints(own).items():
            assert allows_null(kind) == allows_null_in(described[name]), f"{theirs}.{name}"


ANSWERS = {
    answers.ExplainedPart: "ExplainedStep",
    answers.Explanation: "ExplainAnswer",
    answers.FoundProblem: "FoundProblem",
    answers.CheckedAttribute: "CheckedAttribute",
    answers.SimilarSubscriptions: "SimilarAnswer",
    answers.CheckedDraft: "CheckAnswer",
    answers.ForecastDay: "ForecastDay",
    answers.ForecastEvent: "ForecastEvent",
    answers.ForecastMatches: "ForecastMatches",
    answers.ForecastPart: "ForecastPart",
    answers.LookedAt: "LookedAt",
    answers.Forecast: "ForecastAnswer",
    answers.SearchHit: "SearchHit",
    answers.SearchPage: "SearchAnswer",
    answers.ArchivedEvent: "ArchivedAnswer",
    answers.MissedEvents: "MissedEvents",
    answers.ArchivePage: "ArchivePage",
    answers.Channel: "ChannelAnswer",
    answers.Member: "MemberAnswer",
    answers.Webhook: "WebhookAnswer",
    answers.NewWebhook: "NewWebhookAnswer",
    answers.WebhookTest: "TestAnswer",
    answers.Delivery: "DeliveryAnswer",
    answers.DeadLetter: "LetterAnswer",
    answers.Feed: "FeedAnswer",
    answers.NewFeed: "NewFeedAnswer",
    answers.Digest: "DigestAnswer",
    answers.Key: "KeyAnswer",
    answers.NewKey: "NewKeyAnswer",
}


def allows_null(kind: Any) -> bool:
    return kind is not Any and type(None) in get_args(kind)


def allows_null_in(schema: dict[str, Any]) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())


def test_webhooks_feeds_and_channels(client):
    client.subscribe("m = 1", id="managed")
    client.create_channel("managing", ["managed"])
    assert client.get_channel("managing")["name"] == "managing"
    assert [own["id"] for own in client.channel_members("managing")] == ["managed"]
    assert "managing" in [own["name"] for own in client.channels()]
    made = client.create_webhook("http://127.0.0.1:9/hook", subscription="managed")
    assert made["secret"].startswith("whsec_")
    number = made["number"]
    (listed,) = client.webhooks(subscription="managed")
    assert listed["url"] == made["url"]
    assert client.pause_webhook(number)["state"] == "paused"
    assert client.resume_webhook(number)["state"] == "active"
    assert client.rotate_webhook(number, overlap=60) != made["secret"]
    client.pause_webhook(number)
    assert not client.test_webhook(number)["delivered"]  # nobody listens there
    assert client.get_webhook(number)["number"] == number
    assert list(client.deliveries(number)) == list(client.dead_letters(number)) == []
    assert client.send_dead_letters(number) == client.delete_dead_letters(number, []) == 0
    client.delete_webhook(number)
    assert list(client.webhooks(channel="managing")) == []
    feed = client.create_feed(channel="managing", title="News")
    assert "/feeds/" in feed["atom"]
    assert [own["title"] for own in client.feeds(channel="managing")] == ["News"]
    client.revoke_feed(feed["number"])
    with pytest.raises(ServerError):  # it has no mail server
        client.create_digest("ann@example.com", subscription="managed")
    assert list(client.digests()) == []
    for missing in (client.get_digest, client.delete_digest, client.get_webhook):
        with pytest.raises(ServerError):
            missing(987)
    with pytest.raises(tamis.errors.InputError, match="an integer is expected"):
        client.get_webhook("../keys")


def test_archived_events(client):
    client.subscribe("archived = 1", id="of-archive")
    number = client.publish({"archived": 1}).first_event
    found = client.event(number, who=True)
    assert (found["content"], found["subscriptions"]) == ({"archived": 1}, ["of-archive"])
    page = client.events(limit=1)
    assert [own["event"] for own in page["events"]] == [1]
    following = client.events(after=page["cursor"], limit=1)
    assert [own["event"] for own in following["events"]] == [2]
    assert client.events(since=datetime(2100, 1, 1, tzinfo=UTC))["events"] == []


def test_keys(tmp_path):
    with serving(tmp_path / "keyed") as server:
        with Client(server.url) as client:
            root = client.create_key("root", ["admin"])
        with Client(server.url, root["key"]) as client:
            made = client.create_key(
                "ann", ["read"], expires=datetime(2100, 1, 1, tzinfo=UTC), limits={"streams": 2}
            )
            assert made["limits"] == {"streams": 2}
            assert [own["id"] for own in client.keys(owner="ann")] == [made["id"]]
            assert client.revoke_key(made["id"])["revoked"] is not None
        with (
            Client(server.url, made["key"]) as client,
            pytest.raises(ServerError, match="unknown, expired or revoked"),
        ):
            list(client.channels())


def test_management_asynchronously(address):
    async def live() -> None:
        async with AsyncClient(address) as client:
            await client.subscribe("am = 1", id="am")
            made = await client.create_webhook("http://127.0.0.1:9/hook", subscription="am")
            assert [own["number"] async for own in client.webhooks(subscription="am")] == [
                made["number"]
            ]
            await client.delete_webhook(made["number"])
            feed = await client.create_feed(subscription="am")
            assert [own["number"] async for own in client.feeds(subscription="am")] == [
                feed["number"]
            ]
            await client.revoke_feed(feed["number"])
            assert [own async for own in client.digests()] == []
            published = await client.publish({"am": 1})
            assert (await client.event(published.first_event))["content"] == {"am": 1}
            assert (await client.events(limit=1))["events"][0]["event"] == 1

    asyncio.run(live())


def test_channels_imports_and_drafts_asynchronously(address):
    async def live() -> None:
        async with AsyncClient(address) as client:
            rows = [{"id": "ai", "expression": "ai = 1"}, {"id": "bad", "expression": "ai ="}]
            done = [own async for own in client.import_subscriptions(rows)]
            assert [own.get("status") for own in done] == ["made", "refused", None]
            assert done[-1]["summary"]["made"] == 1
            exported = [own async for own in client.export(text="ai = 1")]
            assert [own["expression"] for own in exported] == ["ai = 1"]
            await client.create_channel("ac", ["ai"])
            published = await client.publish({"ai": 1})
            page = await client.matches(channel="ac")
            assert [own.event for own in page.matches] == [published.first_event]
            reached = await client.acknowledge(None, page.cursor, channel="ac", consumer="c")
            assert reached == page.cursor
            assert (await client.matches(channel="ac", consumer="c")).matches == ()
            stream = client.stream(channel="ac", after="0")
            assert (await anext(stream)).event == published.first_event
            await stream.aclose()
            assert (await client.check("ai = 1"))["similar"]["equal"] == ["ai"]
            assert (await client.forecast("ai = 1"))["matches"]["events"] == 1
            found = await client.search("ai = 1", order="newest", limit=5)
            assert [hit["content"]["ai"] for hit in found["hits"]] == [1]
            assert (await client.explain_draft("ai = 1", {"ai": 1}))["matches"]
            assert await client.add_to_channel("ac", ["ai"]) == 0
            assert await client.remove_from_channel("ac", ["ai"]) == 1
            assert "ac" in [own["name"] async for own in client.channels()]
            await client.delete_channel("ac")
            with pytest.raises(ServerError):
                await client.matches(channel="ac")
            for wrong in ({}, {"subscription_id": "ai", "channel": "ac"}):
                with pytest.raises(tamis.errors.InputError):
                    await client.matches(**wrong)

    asyncio.run(live())


def test_failures_on_the_way_are_repeated_with_the_same_key(monkeypatch):
    seen = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers["idempotency-key"])
        if len(seen) == 1:
            raise httpx2.ReadError("broken", request=request)
        return httpx2.Response(503, headers={"retry-after": "0"})

    with Client("http://example.test", transport=httpx2.MockTransport(answer)) as client:
        monkeypatch.setattr("tamis.client.synchronous.time.sleep", lambda _: None)
        with pytest.raises(ServerError) as refused:
            client.publish({"a": 1})
    assert refused.value.status == 503
    assert len(seen) == ATTEMPTS
    assert len(set(seen)) == 1


def test_a_server_that_does_not_answer():
    refused = pytest.raises(ConnectionFailedError, match="tamis serve")
    with Client("http://127.0.0.1:9", timeout=5) as client, refused:
        client.subscribe("a = 1")
    with pytest.raises(tamis.errors.InputError, match="address"):
        Client("127.0.0.1")
