"""Mailboxes: who is in them, and their newest matches."""

from __future__ import annotations

import orjson
import pytest

from tamis.broker.mail import FRESH_SECONDS, Mailboxes
from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import MatchServer
from tamis.broker.publishing import Publication
from tamis.broker.rights import LOCAL
from tamis.events.json_source import JsonObjects


@pytest.fixture
def server(tmp_path):
    with MatchServer.open(tmp_path / "server") as opened:
        yield opened


def add(server, name: str, expression: str) -> int:
    server.live.add(name, expression)
    return server.live.get(name).created


def publish(server, *events: dict) -> None:
    texts = [orjson.dumps(event) for event in events]
    server.publisher.publish(Publication(JsonObjects(texts), sum(map(len, texts)))).result()


def test_members_are_remembered_until_they_change(server, monkeypatch):
    now = [100.0]
    mailboxes = Mailboxes(server.broker, server.archive, server.histories, lambda: now[0])
    numbers = [add(server, name, "x = 1") for name in "ab"]
    box = server.broker.channels.create(LOCAL, "c", owner="ann").mailbox
    assert mailboxes.names(box) == {}
    server.broker.channels.add(LOCAL, "c", numbers[:1])
    assert mailboxes.names(box) == {}
    mailboxes.forget(box)
    assert mailboxes.names(box) == {numbers[0]: "a"}
    server.broker.channels.add(LOCAL, "c", numbers)  # by another process
    now[0] += FRESH_SECONDS + 1
    assert mailboxes.names(box) == {numbers[0]: "a", numbers[1]: "b"}


def test_members_read_before_a_change_are_not_remembered(server, monkeypatch):
    number = add(server, "a", "x = 1")
    box = server.broker.channels.create(LOCAL, "c", owner="ann").mailbox
    whole = server.broker.channels.members

    def read_slowly(*args, **options):
        page = whole(*args, **options)
        monkeypatch.setattr(server.broker.channels, "members", whole)
        server.broker.channels.add(LOCAL, "c", [number])
        server.mailboxes.forget(box)
        return page

    monkeypatch.setattr(server.broker.channels, "members", read_slowly)
    assert server.mailboxes.names(box) == {}
    assert server.mailboxes.names(box) == {number: "a"}


def test_an_unknown_mailbox_is_empty(server):
    publish(server, {"x": 1})
    for box in (Mailbox.of_subscription(99), Mailbox.of_channel(99)):
        assert server.mailboxes.names(box) == {}
        page = server.mailboxes.read(box, after=0, limit=10)
        assert (page.matches, page.after, page.is_last) == ([], 1, True)
        assert server.mailboxes.newest(box, 10) == []


@pytest.mark.parametrize("every", [1, 7, 900, 5_000])
def test_the_newest_matches_are_found(server, every):
    box = Mailbox.of_subscription(add(server, "a", "x = 1"))
    n_events = 6_000
    publish(server, *({"x": int(n % every == 0)} for n in range(1, n_events + 1)))
    expected = [n for n in range(n_events, 0, -1) if n % every == 0][:20]
    assert [own.event for own in server.mailboxes.newest(box, 20)] == expected


def test_texts_that_are_not_utf8_stay_json(server):
    box = Mailbox.of_subscription(add(server, "a", "x = 1"))
    publish(server, {"x": 1})
    (match,) = server.mailboxes.read(box, after=0, limit=10).matches
    assert orjson.loads(match.spell())["content"] == {"x": 1}
    server.archive.get_events = lambda events: dict.fromkeys(events, b'{"y": "\xff"}')
    (match,) = server.mailboxes.read(box, after=0, limit=10).matches
    assert orjson.loads(match.spell())["content"] == {"y": "\ufffd"}
