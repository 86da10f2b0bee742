"""Channels: several subscriptions share one mailbox."""

from __future__ import annotations

from tests.server.asking import make_key, needs_keys, publish, subscribe

BOX = "/v1/channels/team%2Fone"


def read(client, **headers) -> list[tuple[int, list[str]]]:
    answer = client.get(f"{BOX}/matches", params={"after": "0"}, headers=headers)
    assert answer.status_code == 200, answer.text
    return [(match["event"], match["subscriptions"]) for match in answer.json()["matches"]]


def test_members_share_a_mailbox(client):
    subscribe(client, id="a", expression="x >= 1")
    subscribe(client, id="b", expression="x >= 2")
    subscribe(client, id="c", expression="x >= 3")
    made = client.post("/v1/channels", json={"name": "team/one", "subscriptions": ["a", "b"]})
    assert made.status_code == 201, made.text
    assert made.headers["location"] == BOX
    publish(client, {"x": 0}, {"x": 1}, {"x": 2}, {"x": 3})
    assert read(client) == [(2, ["a"]), (3, ["a", "b"]), (4, ["a", "b"])]
    members = client.get(f"{BOX}/members").json()["members"]
    assert [own["id"] for own in members] == ["a", "b"]
    added = client.post(f"{BOX}/members", json={"subscriptions": ["b", "c"]})
    assert added.json() == {"changed": 1}
    assert read(client) == [(2, ["a"]), (3, ["a", "b"]), (4, ["a", "b", "c"])]
    removed = client.post(f"{BOX}/members/remove", json={"subscriptions": ["a", "nobody"]})
    assert removed.json() == {"changed": 1}
    assert read(client) == [(3, ["b"]), (4, ["b", "c"])]


def test_a_channel_has_consumers(client):
    subscribe(client, id="a", expression="x = 1")
    client.post("/v1/channels", json={"name": "team/one", "subscriptions": ["a"]})
    epoch = publish(client, {"x": 1}, {"x": 1})["epoch"]
    done = client.post(f"{BOX}/acknowledge", json={"event": 1, "epoch": epoch})
    assert done.status_code == 200
    rest = client.get(f"{BOX}/matches").json()
    assert [match["event"] for match in rest["matches"]] == [2]
    own = client.get("/v1/subscriptions/a/matches").json()
    assert [match["event"] for match in own["matches"]] == [1, 2]


def test_a_channel_ends_and_its_subscriptions_stay(client):
    subscribe(client, id="a", expression="x = 1")
    client.post("/v1/channels", json={"name": "team/one", "subscriptions": ["a"]})
    assert [own["name"] for own in client.get("/v1/channels").json()["channels"]] == ["team/one"]
    assert client.delete(BOX).status_code == 204
    assert client.get(BOX).status_code == 404
    assert client.get(f"{BOX}/matches").status_code == 404
    assert client.get("/v1/subscriptions/a").status_code == 200
    again = client.post("/v1/channels", json={"name": "team/one"})
    assert again.status_code == 201
    assert read(client) == []


def test_a_channel_with_a_wrong_member_is_not_made(client):
    made = client.post("/v1/channels", json={"name": "team/one", "subscriptions": ["nobody"]})
    assert (made.status_code, made.json()["code"]) == (404, "unknown-subscription")
    assert client.get(BOX).status_code == 404


def test_without_keys_things_have_no_owner(client):
    made = client.post("/v1/subscriptions", json={"id": "unowned", "expression": "x = 1"}).json()
    channel = client.post("/v1/channels", json={"name": "unowned"}).json()
    assert made["owner"] == channel["owner"] == ""
    assert "unowned" in [own["name"] for own in client.get("/v1/channels").json()["channels"]]


def test_only_its_owner_sees_a_channel(client, match_server):
    ann = make_key(match_server, "ann", "subscribe", "read", "publish")
    bob = make_key(match_server, "bob", "subscribe", "read")
    reader = make_key(match_server, "ann", "read")
    needs_keys(client)
    subscribe(client, headers=ann, id="a", expression="x = 1")
    theirs = subscribe(client, headers=bob, id="b", expression="x = 1")
    asked = {"name": "team/one", "subscriptions": ["a"]}
    assert client.post("/v1/channels", json=asked, headers=reader).status_code == 403
    assert client.post("/v1/channels", json=asked, headers=ann).status_code == 201
    taken = client.post("/v1/channels", json=asked, headers=bob)
    assert (taken.status_code, taken.json()["code"]) == (409, "name-taken")
    for path in ("", "/members", "/matches", "/consumers"):
        assert client.get(BOX + path, headers=bob).status_code == 404
        assert client.get(BOX + path).status_code == 401
        assert client.get(BOX + path, headers=reader).status_code == 200
    assert client.delete(BOX, headers=bob).status_code == 404
    more = {"subscriptions": ["b"]}
    assert client.post(f"{BOX}/members", json=more, headers=bob).status_code == 404
    assert client.post(f"{BOX}/members", json=more, headers=ann).status_code == 404
    shown = ann | {"tamis-ticket": theirs["ticket"]}
    assert client.post(f"{BOX}/members", json=more, headers=shown).json() == {"changed": 1}
    publish(client, {"x": 1}, headers=ann)
    assert read(client, **ann) == [(1, ["a", "b"])]
