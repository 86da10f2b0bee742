"""Arguments of the wrong kind: an error that names them, never a raw one or silence."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

import tamis

SUBSCRIPTIONS = [
    {"id": "a", "expression": "age > 1", "tags": ["news", "sport"], "title": "A", "event_id": 7},
    {"id": "b", "expression": "city = 'Oslo'"},
]
EVENTS = [{"age": 3, "title": "T"}]


@pytest.fixture(scope="module")
def index():
    return tamis.build([{"id": "c", "expression": "age > 2"}, *SUBSCRIPTIONS])


CALLS = ["match_batch", "match_lists", "count_by_event", "count_by_subscription"]
CALLS += ["summarise_by_event", "summarise_by_subscription"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("threads", ["2", -1, 0, 1.5, None, True])
def test_threads(index, call, threads):
    with pytest.raises(tamis.InputError, match=f"threads is {threads!r}; a whole number of at"):
        getattr(index, call)(EVENTS, threads=threads)


@pytest.mark.parametrize("processes", ["2", 0])
def test_processes(processes):
    with pytest.raises(tamis.InputError, match=f"processes is {processes!r}; a whole number"):
        tamis.build({"a": "age > 1"}, processes=processes)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"event_id": ["id"]}, r"event_id is \['id'\]; one name.*\n.*write event_id='id'"),
        ({"event_id": ""}, "event_id is ''; one name is expected"),
        ({"columns": "title"}, r"columns is the string 'title'\n.*write \['title'\]"),
        ({"columns": None}, "columns is None; a list of names is expected"),
        ({"columns": [1]}, "columns has 1; a list of names is expected"),
        ({"event_columns": [1]}, "event_columns has 1; a list of names is expected"),
        ({"columns": ["event_id"]}, 'has a column "event_id" already; columns.*\n.*rename'),
        ({"columns": ["subscription_id"]}, 'has a column "subscription_id" already; columns'),
        ({"columns": ["title", "title"]}, 'a column "title" already.*\n.*name it once'),
        ({"event_columns": ["event_row"]}, 'has a column "event_row" already; event_columns'),
        ({"event_columns": ["event_id"]}, r"event_id.*\n.*rename .* event_columns=\['\*'\]"),
        ({"columns": ["title"], "event_columns": ["title"]}, '"title" already.*\n.*second call'),
        ({"subset": 3}, "subset is 3; a list of subscription ids is expected"),
    ],
)
def test_names(index, given, said):
    for call in (index.match_batch, lambda *a, **k: list(index.match_chunks(*a, **k))):
        with pytest.raises(tamis.InputError, match=said):
            call(EVENTS, **given)


def test_paths(index):
    for call in (tamis.open, index.save):
        with pytest.raises(tamis.InputError, match="the path of an index is None"):
            call(None)


def test_tags_for_nobody():
    with pytest.raises(tamis.InputError, match=r"tags are \['x'\]; a list of tags for each id"):
        tamis.build({"a": "age > 1"}, tags=["x"])


@pytest.mark.parametrize("make", [dict, dict.items, lambda given: list(given.items())])
def test_an_empty_id_is_a_reject(make):
    index = tamis.build(make({"": "age > 1", "b": "age > 2"}))
    (reject,) = index.rejects
    assert (reject.code, reject.message) == (
        "bad-id",
        "a subscription's id must be a non-empty string",
    )
    assert index.match({"age": 5}) == ["b"]
    with pytest.raises(tamis.BuildError) as raised:
        tamis.build(make({"": "age > 1"}))
    assert [one.code for one in raised.value.rejects] == ["bad-id"]


@pytest.mark.parametrize(
    ("asked", "found", "said"),
    [
        (["new"], [], r'no subscription has the tag "new"; did you mean "news"\?'),
        (["zzz", "sport"], ["a"], 'no subscription has the tag "zzz"; there are: news, sport'),
        (["x", "y"], [], 'no subscription has 2 of the tags, such as "x"; there are'),
    ],
)
def test_tags_that_no_subscription_has(index, asked, found, said):
    with pytest.warns(tamis.TamisWarning, match=said):
        assert index.tagged(*asked) == found


def test_tags_of_an_index_without_tags():
    with pytest.warns(tamis.TamisWarning, match="the index has no tags"):
        assert tamis.build({"a": "age > 1"}).tagged("x") == []


CITIES = ["Oslo", "Rome", None, "Oslo"]


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"city": CITIES}, schema={"city": pl.Categorical}),
        pl.DataFrame({"city": CITIES}, schema={"city": pl.Enum(["Rome", "Oslo"])}),
        pl.DataFrame({"city": CITIES}),
        pd.DataFrame({"city": pd.Categorical(CITIES)}),
    ],
    ids=["Categorical", "Enum", "String", "pandas"],
)
def test_columns_of_categories(index, frame):
    found = index.match_batch(frame, event_columns=["city"], event_id="city", subset=["b"])
    assert [list(row.values()) for row in found.to_pylist()] == [["Oslo", "b", "Oslo"]] * 2
