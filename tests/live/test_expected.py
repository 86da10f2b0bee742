"""Expected types: an attribute has them from its first use on, whatever that use implies."""

from __future__ import annotations

import pytest

import tamis
from tamis.live import LiveIndex, follow
from tests.live.places import by_hand, crash

TYPES = {"tags": "array<string>", "seen": "timestamp", "title_de": "text(german)", "n": "integer"}
ORIGIN = "the items of feeds"
EVENT = {"tags": ["oil"], "seen": "2030-01-01T10:00:00Z", "title_de": "Die Häuser", "n": 1}
# Without the expected types, `seen` is a string and `title_de` has no stems.
SEARCHES = {
    "tags": "array_contains(tags, 'oil')",
    "seen": "seen > '2029-12-31T23:00:00-05:00'",
    "title": "matches(title_de, 'Haus')",
    "n": "n = 1",
}


@pytest.fixture
def folder(tmp_path):
    with by_hand():
        yield tmp_path / "live"


def test_they_hold_from_the_first_use_on_and_after_a_crash(folder):
    live = LiveIndex.open(folder)
    live.expect_types(TYPES, ORIGIN)
    assert len(live.settings.schema) == 0
    for name, expression in SEARCHES.items():
        live.add(name, expression)
    assert sorted(live.match(EVENT)) == sorted(SEARCHES)
    assert live.settings.schema.to_json() == TYPES
    crash(live)
    with LiveIndex.open(folder) as again:
        assert sorted(again.match(EVENT)) == sorted(SEARCHES)
        again.remove("title")
        again.compact()
    with LiveIndex.open(folder) as again:
        again.add("title", SEARCHES["title"])
        assert sorted(again.match(EVENT)) == sorted(SEARCHES)


def test_a_contradiction_says_where_events_have_the_type(folder):
    with LiveIndex.open(folder) as live:
        live.expect_types(TYPES, ORIGIN)
        for _ in range(2):  # before the first use of it, and after
            with pytest.raises(tamis.ExpressionError) as refused:
                live.add("s", "matches((title, tags), 'oil')")
            assert "tags is array<string> in the items of feeds" in refused.value.hint
            assert refused.value.decider is None
            live.add("first", SEARCHES["tags"]) if live.get("first") is None else None


def test_a_type_that_is_fixed_stays(folder):
    live = LiveIndex.open(folder)
    live.add("before", "matches((title, tags), 'oil')")
    live.add("any", "seen IS NOT NULL")
    live.expect_types(TYPES, ORIGIN)
    for at in range(2):
        with pytest.raises(tamis.ExpressionError) as refused:
            live.add("later", SEARCHES["tags"])
        assert 'tags is string since subscription "before" was added' in refused.value.hint
        live.add(f"seen{at}", SEARCHES["seen"])
        assert (
            sorted(live.match({**EVENT, "tags": "oil"}))
            == ["any", "before", "seen0", "seen1"][: 3 + at]
        )
        crash(live)
        live = LiveIndex.open(folder)
    live.expect_types(TYPES, ORIGIN)  # again, as a server does at each start
    assert live.match({"tags": "oil"}) == ["before"]
    live.close()


def test_a_declared_schema_decides_alone(folder):
    with LiveIndex.open(folder, schema="tags STRING, title STRING") as live:
        live.expect_types(TYPES, ORIGIN)
        live.add("s", "matches((title, tags), 'oil')")
        assert live.match({"tags": "oil"}) == ["s"]
        with pytest.raises(tamis.ExpressionError, match="unknown attribute"):
            live.add("n", "n = 1")


def test_a_follower_reads_with_them_too(folder):
    with LiveIndex.open(folder) as live:
        live.add("other", "x = 1")
        with follow(folder, is_started=False) as follower:
            live.expect_types(TYPES, ORIGIN)
            for name, expression in SEARCHES.items():
                live.add(name, expression)
            follower.refresh()
            assert sorted(follower.match(EVENT)) == sorted(SEARCHES)
            assert follower.settings.find_type(("title_de",)).analyser == "german"


def test_settings_are_the_same_object_while_types_are(folder):
    with LiveIndex.open(folder) as live:
        live.add("a", "x = 1")
        before = live.settings
        live.add("b", "x = 2")
        assert live.settings is before
