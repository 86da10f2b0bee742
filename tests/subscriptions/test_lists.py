"""Lists by id, with filters and cursors."""

from __future__ import annotations

import pytest

from tamis.errors import InputError
from tamis.subscriptions import Replace, Subscribe, Unsubscribe


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
