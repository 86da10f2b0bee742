"""Lists by id, with filters and cursors."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import select

from tamis.errors import InputError
from tamis.subscriptions import Renew, Replace, Subscribe, SubscriptionStore, Unsubscribe
from tamis.subscriptions.reading import Filters, _select, reading
from tamis.subscriptions.tables import TAGS
from tests.subscriptions.places import after


def ids(store, **filters) -> list[str]:
    found, cursor = [], None
    while True:
        page = store.list(after=cursor, limit=3, **filters)
        found += [one.id for one in page.subscriptions]
        cursor = page.cursor
        if cursor is None:
            assert store.count(**filters) == len(found)
            return found


@pytest.fixture
def filled(store):
    store.apply(
        [
            Subscribe("a", "Price > 1", owner="ann", tags=("news",)),
            Subscribe("B", "x = 'ÄÖ'", owner="bob", tags=("news", "urgent")),
            Subscribe("c", "x LIKE '100%_'", owner="ann", tags=("news urgent",)),
            Subscribe("ä", "y = 1", tags=("N", '","')),
            Subscribe("\U0001f600", "y = 2", owner="ann "),
            Subscribe("\uffff", "y = 3", tags=("news%",)),
        ]
    )
    return store


def test_order_is_that_of_bytes(filled):
    assert ids(filled) == ["B", "a", "c", "ä", "\uffff", "\U0001f600"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"owner": "ann"}, ["a", "c"]),
        ({"owner": ""}, ["ä", "\uffff"]),
        ({"owner": "nobody"}, []),
        ({"tag": "news"}, ["B", "a"]),
        ({"tag": "n"}, []),
        ({"tag": ","}, []),
        ({"tag": '","'}, ["ä"]),
        ({"tag": "news", "owner": "bob"}, ["B"]),
        ({"text": "pRICE"}, ["a"]),
        ({"text": "äö"}, []),
        ({"text": "ÄÖ"}, ["B"]),
        ({"text": "%_"}, ["c"]),
        ({"text": "b"}, ["B"]),
        ({"text": "y = ", "owner": ""}, ["ä", "\uffff"]),
    ],
)
def test_filters(filled, filters, found):
    assert ids(filled, **filters) == found


def test_cursors_are_stable_while_the_set_changes(store):
    store.apply([Subscribe(f"s{n:03}", "x = 1") for n in range(0, 100, 2)])
    first = store.list(limit=20)
    store.apply([Replace(one.id, "x = 2") for one in first.subscriptions])
    store.apply([Unsubscribe(first.cursor), Subscribe("s001", "x = 1"), Subscribe("s099", "x = 1")])
    rest, cursor = [], first.cursor
    while cursor is not None:
        page = store.list(after=cursor, limit=7)
        rest += [one.id for one in page.subscriptions]
        cursor = page.cursor
    assert rest == [*(f"s{n:03}" for n in range(40, 100, 2)), "s099"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"state": "asleep"},
        {"limit": 0},
        {"owner": 5},
        {"tag": "\0"},
        {"text": "\ud800"},
        {"after": 7},
    ],
)
def test_invalid_arguments(store, arguments):
    with pytest.raises(InputError):
        store.list(**arguments)


# ── the index of tags ───────────────────────────────────────────────────────────────────────


def entries(store) -> set[tuple[str, str]]:
    with reading(store._database) as connection:
        return {tuple(row) for row in connection.execute(select(TAGS))}


def test_tags_follow_every_change(store, clock):
    rng = random.Random(2)
    for number in range(150):
        some = [f"s{rng.randrange(12)}" for _ in range(rng.randrange(1, 5))]
        tags = tuple(rng.sample(["a", "b", "c"], rng.randrange(4)))
        until = after(number + rng.randrange(1, 40)) if rng.random() < 0.3 else None
        request = rng.choice(
            [
                lambda name: Subscribe(name, "x = 1", tags=tags, valid_until=until),  # noqa: B023
                lambda name: Replace(name, tags=tags),  # noqa: B023
                lambda name: Replace(name, "x = 2"),
                lambda name: Renew(name, None),
                Unsubscribe,
            ]
        )
        store.apply(list(map(request, some)))
        clock.move(1)
        if number % 20 == 0:
            store.expire()
            store.prune(store.last_change // 2)
        state = list(store.state_at(store.last_change))
        assert entries(store) == {(tag, one.id) for one in state for tag in one.tags}
        held = [one for one in state if store.get(one.id) is not None]
        for tag in ("a", "b", "c"):
            assert ids(store, tag=tag) == sorted(one.id for one in held if tag in one.tags)
    assert store.count(state="expired", tag="a") == len(ids(store, state="expired", tag="a"))


def test_long_tags_that_begin_alike(store):
    long = ["é" * 1000 + letter for letter in "xyz"]
    store.apply(
        [Subscribe("a", "x = 1", tags=tuple(long[:2])), Subscribe("b", "x", tags=(long[2],))]
    )
    assert [ids(store, tag=tag) for tag in long] == [["a"], ["a"], ["b"]]
    store.apply([Replace("a", tags=(long[1],))])
    assert [ids(store, tag=tag) for tag in long] == [[], ["a"], ["b"]]


def test_sqlite_reads_the_index_of_tags(folder):
    with SubscriptionStore.open(folder) as store, reading(store._database) as connection:
        query = _select(store._database, Filters(tag="news"), 0, "a").limit(9)
        plan = query.compile(connection, compile_kwargs={"literal_binds": True})
        lines = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {plan}")]
    assert lines[0].startswith("SEARCH tamis_tags USING PRIMARY KEY (tag=? AND subscription_id>?)")
    assert not any("SCAN" in line or "TEMP B-TREE" in line for line in lines)
