"""Mailboxes by cursor: pages, acknowledgements, consumers, gaps, ended subscriptions."""

from __future__ import annotations

import pytest

from tamis.broker import mail, mail_highlights
from tests.server.asking import make_key, needs_keys, publish, subscribe

BOX = "/v1/subscriptions/a"


def read(client, path: str = BOX, *, headers=None, **asked) -> dict:
    answer = client.get(f"{path}/matches", params=asked, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events_of(page: dict) -> list[int]:
    return [match["event"] for match in page["matches"]]


def acknowledge(client, page: dict, event: int, consumer: str = "default", path: str = BOX) -> dict:
    asked = {"event": event, "epoch": page["epoch"], "consumer": consumer}
    answer = client.post(f"{path}/acknowledge", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def filled(client):
    """A subscription "a" with the events 1, 3 and 5 in its mailbox."""
    subscribe(client, id="a", expression="x = 1")
    publish(client, *({"x": n % 2, "n": n} for n in range(1, 6)))
    return client


def test_pages_follow_each_other(filled):
    first = read(filled, limit=2)
    assert events_of(first) == [1, 3]
    second = read(filled, after=first["cursor"])
    assert events_of(second) == [5]
    assert events_of(read(filled, after=second["cursor"])) == []
    assert second["matches"][0]["content"] == {"x": 1, "n": 5}


def test_a_read_begins_after_what_the_consumer_acknowledged(filled):
    page = read(filled)
    assert acknowledge(filled, page, 3) == {
        "consumer": "default",
        "epoch": page["epoch"],
        "event": 3,
    }
    assert events_of(read(filled)) == [5]
    assert events_of(read(filled, consumer="other")) == [1, 3, 5]
    acknowledge(filled, page, 5, consumer="other")
    assert events_of(read(filled, consumer="other")) == []
    assert events_of(read(filled, after="0")) == [1, 3, 5]


def test_a_cursor_is_acknowledged_as_it_was_handed_out(filled):
    page = filled.get(f"{BOX}/matches?limit=2").json()
    done = filled.post(f"{BOX}/acknowledge", json={"cursor": page["cursor"]})
    assert done.status_code == 200
    assert f"{done.json()['epoch']}:{done.json()['event']}" == page["cursor"]
    moved = filled.put(f"{BOX}/consumers/c", json={"cursor": page["cursor"]})
    assert moved.json()["event"] == done.json()["event"]
    epoch, number = page["cursor"].split(":")
    for wrong, status in (
        ({}, 422),
        ({"event": 1}, 422),
        ({"epoch": epoch}, 422),
        ({"cursor": page["cursor"], "event": 1, "epoch": epoch}, 422),
        ({"cursor": "x"}, 422),
        ({"cursor": f"{epoch}:999999"}, 422),
        ({"cursor": f"other:{number}"}, 410),
    ):
        assert filled.post(f"{BOX}/acknowledge", json=wrong).status_code == status, wrong


def test_a_late_acknowledgement_moves_nothing_back(filled):
    page = read(filled)
    acknowledge(filled, page, 5)
    assert acknowledge(filled, page, 1)["event"] == 5
    assert events_of(read(filled)) == []


def test_consumers_are_listed_moved_and_forgotten(filled):
    page = read(filled)
    acknowledge(filled, page, 5)
    acknowledge(filled, page, 1, consumer="b/c")
    known = filled.get(f"{BOX}/consumers").json()
    assert [(own["consumer"], own["event"]) for own in known["consumers"]] == [
        ("b/c", 1),
        ("default", 5),
    ]
    moved = filled.put(f"{BOX}/consumers/b%2Fc", json={"event": 0, "epoch": page["epoch"]})
    assert moved.json()["event"] == 0
    assert events_of(read(filled, consumer="b/c")) == [1, 3, 5]
    assert filled.delete(f"{BOX}/consumers/b%2Fc").status_code == 204
    assert len(filled.get(f"{BOX}/consumers").json()["consumers"]) == 1


def test_cursors_of_another_epoch_are_gone(filled, match_server):
    acknowledge(filled, read(filled), 3)
    match_server.archive.renew_epoch()
    for answer in (
        filled.get(f"{BOX}/matches", params={"after": "other:1"}),
        filled.get(f"{BOX}/matches"),
        filled.post(f"{BOX}/acknowledge", json={"event": 1, "epoch": "other"}),
        filled.get(f"{BOX}/stream", headers={"last-event-id": "other:1"}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (410, "history-lost"), answer.text
    epoch = match_server.archive.epoch
    filled.put(f"{BOX}/consumers/default", json={"event": 0, "epoch": epoch})
    assert events_of(read(filled)) == [1, 3, 5]


@pytest.mark.parametrize("cursor", ["x", "1:", "EPOCH:-1", "99999999999999999999", "6", "²"])
def test_wrong_cursors_are_refused(filled, cursor):
    shown = cursor.replace("EPOCH", filled.app.state.context.match_server.archive.epoch)
    answer = filled.get(f"{BOX}/matches", params={"after": shown})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad-cursor")


def test_a_gap_by_retention_is_reported(filled, match_server, monkeypatch):
    whole = match_server.archive.read_matches

    def read_later(numbers, *, after, limit, up_to=None):
        page = whole(numbers, after=max(after, 3), limit=limit, up_to=up_to)
        return page._replace(missed=range(after + 1, 4) or None)

    monkeypatch.setattr(match_server.archive, "read_matches", read_later)
    page = read(filled)
    assert page["missed"] == {"first": 1, "last": 3}
    assert events_of(page) == [5]
    assert read(filled, after=page["cursor"])["missed"] is None


def test_large_events_make_short_pages(filled, monkeypatch):
    monkeypatch.setattr(mail, "MOST_BYTES", 1)
    first = read(filled)
    assert events_of(first) == [1]
    assert events_of(read(filled, after=first["cursor"])) == [3]


def test_found_words_are_told_if_asked_for(client, monkeypatch):
    made = subscribe(client, id="a", expression="matches(title, 'flood storm') AND NOT x = 2")
    publish(client, {"title": "Storm: a \U0001f30a flood", "x": 1}, {"title": "flood storm"})
    assert "highlights" not in read(client)["matches"][0]
    found = [own["highlights"] for own in read(client, highlights=True)["matches"]]
    assert found == [{"title": [[0, 5], [11, 16]]}]  # the second has no x
    ticket = {"tamis-ticket": made["ticket"]}
    # The words are those that the expression has now; what has ended has none.
    client.patch(BOX, json={"expression": "matches(title, 'flood')"}, headers=ticket)
    (match,) = read(client, highlights=True)["matches"]
    assert match["highlights"] == {"title": [[11, 16]]}
    monkeypatch.setattr(mail_highlights, "MOST_READ", 0)
    assert read(client, highlights=True)["matches"][0]["highlights"] == {}
    monkeypatch.undo()
    client.delete(BOX, headers=ticket)
    assert read(client, highlights=True)["matches"][0]["highlights"] == {}
    subscribe(client, id="a", expression="matches(title, 'storm')")  # another with the same id
    (match,) = read(client, highlights=True, number=made["number"])["matches"]
    assert match["highlights"] == {}


def test_found_words_of_a_channel_are_those_of_its_members(client):
    for name, word in (("a", "flood"), ("b", "storm"), ("c", "fire")):
        subscribe(client, id=name, expression=f"matches(title, '{word}')")
    made = client.post("/v1/channels", json={"name": "all", "subscriptions": ["a", "b"]})
    assert made.status_code == 201, made.text
    publish(client, {"title": "flood fire"}, {"title": "storm flood fire"})
    found = [own["highlights"] for own in read(client, "/v1/channels/all", highlights=1)["matches"]]
    assert found == [{"title": [[0, 5]]}, {"title": [[0, 5], [6, 11]]}]


def test_a_waiting_read_ends_without_matches(filled):
    assert events_of(read(filled, after="5", wait=0.01)) == []


def test_an_ended_subscription_keeps_its_mailbox(client, match_server):
    ann = make_key(match_server, "ann", "subscribe", "read", "publish")
    bob = make_key(match_server, "bob", "subscribe", "read")
    needs_keys(client)
    made = subscribe(client, headers=ann, id="a", expression="x = 1")
    ticket = {"tamis-ticket": made["ticket"]}
    publish(client, {"x": 1}, headers=ann)
    assert client.delete(BOX, headers=ticket).status_code == 204
    publish(client, {"x": 1}, headers=ann)
    assert events_of(read(client, headers=ann)) == [1]
    assert events_of(read(client, headers=ticket)) == [1]
    for stranger in (bob, {}, {"tamis-ticket": "tkt_wrong"}):
        assert client.get(f"{BOX}/matches", headers=stranger).status_code == 404


def test_a_new_subscription_with_the_id_of_an_ended_one(client):
    old = subscribe(client, id="a", expression="x = 1")
    publish(client, {"x": 1})
    client.delete(BOX)
    subscribe(client, id="a", expression="x = 2")
    publish(client, {"x": 2})
    assert events_of(read(client)) == [2]
    assert events_of(read(client, number=old["number"])) == [1]
    assert client.get(f"{BOX}/matches", params={"number": 999}).status_code == 404
    other = subscribe(client, id="b", expression="x = 3")
    assert client.get(f"{BOX}/matches", params={"number": other["number"]}).status_code == 404
