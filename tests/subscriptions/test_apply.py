"""Requests, one result for each; a refused one changes nothing."""

from __future__ import annotations

import pytest

from tamis.subscriptions import (
    Accepted,
    ChangeKind,
    Reason,
    Refused,
    Renew,
    Replace,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from tamis.subscriptions.checking import ATTRIBUTES_BYTES, ID_BYTES, TAGS_BYTES
from tests.subscriptions.places import START, after


def reason_of(result) -> Reason:
    assert isinstance(result, Refused), result
    return result.reason


def test_subscription_comes_back_as_it_was(store):
    attributes = {"mail": "ü@example.org", "n": [1, 2.5, None, True, {"\0": "\\"}]}
    asked = Subscribe(
        "s/1 ü \U0001f600",
        "name = 'O''Neil\t\\' OR x > 1",
        owner="näme",
        tags=("b", "a", 'ü\n,"'),
        attributes=attributes,
        valid_from=after(-10),
        valid_until="2031-02-03T04:05:06.789012+02:00",
        ticket_hash=bytes(range(64)),
    )
    assert store.apply([asked]) == [Accepted(1)]
    found = store.get(asked.id)
    assert found == Subscription(*asked[:6], found.valid_until, asked.ticket_hash, 1, 1, START)
    assert found.valid_until.isoformat() == "2031-02-03T02:05:06.789012+00:00"
    assert store.apply([Subscribe("plain", "a = 1")]) == [Accepted(2)]
    assert store.get("plain") == Subscription(
        "plain", "a = 1", "", (), {}, None, None, None, 2, 2, START
    )


def test_one_bad_request_leaves_the_others(store):
    results = store.apply(
        [
            Subscribe("a", "x = 1"),
            Subscribe("", "x = 1"),
            Subscribe("a", "x = 2"),
            Unsubscribe("nobody"),
            "nonsense",
            Subscribe("b", "x = 3"),
        ]
    )
    assert [results[0], results[5]] == [Accepted(1), Accepted(2)]
    assert [reason_of(result) for result in results[1:5]] == [
        Reason.INVALID,
        Reason.EXISTS,
        Reason.UNKNOWN,
        Reason.INVALID,
    ]
    assert results[2].revision == 1
    assert store.last_change == 2
    assert store.get("a").expression == "x = 1"


def test_nothing_is_nothing(store):
    assert store.apply([]) == []
    assert store.last_change == 0


def test_replace_keeps_what_it_does_not_name(store):
    first = Subscribe("a", "x = 1", owner="o", tags=("t",), attributes={"k": 1})
    store.apply([first, Replace("a", "x = 2", tags=())])
    assert store.get("a") == Subscription(
        "a", "x = 2", "o", (), {"k": 1}, None, None, None, 2, 1, START
    )
    store.apply([Replace("a", valid_until=after(9), ticket_hash=b"h")])
    store.apply([Replace("a", valid_until=None, attributes={})])
    assert store.get("a") == Subscription("a", "x = 2", "o", (), {}, None, None, b"h", 4, 1, START)


def test_a_revision_guards_against_another_editor(store):
    store.apply([Subscribe("a", "x = 1")])
    assert store.apply([Replace("a", "x = 2", if_revision=1)]) == [Accepted(2)]
    for late in (
        Replace("a", "x = 3", if_revision=1),
        Renew("a", None, if_revision=1),
        Unsubscribe("a", if_revision=1),
    ):
        (refused,) = store.apply([late])
        assert (reason_of(refused), refused.revision) == (Reason.REVISION, 2)
    assert store.apply([Unsubscribe("a", if_revision=2)]) == [Accepted(3)]


def test_a_life_in_one_call(store):
    requests = [
        Subscribe("a", "x = 1", valid_until=after(10)),
        Renew("a", after(20)),
        Replace("a", "x = 2"),
        Unsubscribe("a"),
        Renew("a", after(30)),
        Subscribe("a", "x = 3"),
    ]
    results = store.apply(requests)
    assert [result.number for result in results if isinstance(result, Accepted)] == [1, 2, 3, 4, 5]
    assert reason_of(results[4]) is Reason.UNKNOWN
    assert "change 4" in results[4].message
    changes = store.changes(after=0)
    assert [change.kind for change in changes] == [
        ChangeKind.SUBSCRIBE,
        ChangeKind.RENEW,
        ChangeKind.REPLACE,
        ChangeKind.UNSUBSCRIBE,
        ChangeKind.SUBSCRIBE,
    ]
    assert [change.subscription and change.subscription.created for change in changes] == [
        1,
        1,
        1,
        None,
        5,
    ]
    assert store.get("a").expression == "x = 3"


def test_latest_change_is_known_after_the_end(store):
    store.apply([Subscribe("a", "x = 1"), Unsubscribe("a")])
    assert store.get("a") is None
    assert store.latest("a")[:3] == (2, ChangeKind.UNSUBSCRIBE, "a")
    assert store.latest("b") is None


def test_get_many(store):
    store.apply([Subscribe(f"s{n}", "x = 1") for n in range(2_000)])
    wanted = [f"s{n}" for n in range(1_500, 2_500)]
    assert set(store.get_many(wanted)) == set(wanted[:500])
    assert store.get_many([]) == {}
    assert store.get("\0") is None
    assert store.get("\ud800") is None


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"id": ""}, "id is empty"),
        ({"id": 5}, "id is 5; text"),
        ({"id": "a\0"}, "id holds the character NUL"),
        ({"id": "\ud800"}, "id holds a lone surrogate"),
        ({"id": "ü" * (ID_BYTES // 2 + 1)}, "id has 514 bytes; at most 512"),
        ({"expression": ""}, "expression is empty"),
        ({"expression": None}, "expression is None"),
        ({"expression": "x = '\0'"}, "NUL"),
        ({"owner": None}, "owner is None"),
        ({"tags": "news"}, "tags is 'news'; a list"),
        ({"tags": ("a", "")}, "a tag is empty"),
        ({"tags": ("a", 1)}, "a list of texts"),
        ({"tags": ("a\x1fb",)}, "control character"),
        ({"tags": ("a" * TAGS_BYTES,)}, "tags has 4,098 bytes"),
        ({"attributes": None}, "attributes is None; a JSON object"),
        ({"attributes": [1]}, "a JSON object"),
        ({"attributes": {"a": float("nan")}}, "a JSON object"),
        ({"attributes": {"a": after(0)}}, "a JSON object"),
        ({"attributes": {1: 2}}, "a JSON object"),
        ({"attributes": {"a": 2**80}}, "a JSON object"),
        ({"attributes": {"a": "x" * ATTRIBUTES_BYTES}}, "bytes of JSON; at most 8,192"),
        ({"valid_until": "soon"}, "valid_until is 'soon'"),
        ({"valid_from": 5.5}, "valid_from is 5.5"),
        ({"valid_until": after(0)}, "clock is at 2030-01-01T00:00:00+00:00"),
        ({"valid_from": after(9), "valid_until": after(9)}, "are the two swapped"),
        ({"ticket_hash": "text"}, "ticket_hash is not bytes"),
    ],
)
def test_invalid_requests(store, fields, what):
    (result,) = store.apply([Subscribe(**{"id": "a", "expression": "x = 1"} | fields)])
    assert reason_of(result) is Reason.INVALID
    assert what in result.message
    assert store.last_change == 0
    if "id" not in fields:
        store.apply([Subscribe("a", "x = 1", valid_until=after(100))])
        (result,) = store.apply([Replace("a", **fields)])
        assert reason_of(result) is Reason.INVALID


def test_largest_that_is_allowed(store):
    texts = {"id": "i" * ID_BYTES, "owner": "o" * 512, "expression": "x" * 1_048_576}
    assert store.apply([Subscribe(**texts)]) == [Accepted(1)]
    assert store.list(owner="o" * 512).subscriptions[0].expression == texts["expression"]


@pytest.mark.parametrize("revision", ["1", True, 1.0])
def test_invalid_revision(store, revision):
    store.apply([Subscribe("a", "x = 1")])
    (result,) = store.apply([Unsubscribe("a", if_revision=revision)])
    assert reason_of(result) is Reason.INVALID
