"""Named conditions in a live index and in the versions that it publishes."""

from __future__ import annotations

import pytest

import tamis
from tamis.errors import InputError
from tamis.live import LiveIndex

DEFINITIONS = {"big": "x > 10", "ours": "@big AND y = 'a'"}
SCHEMA = {"x": "integer", "y": "string", "@definitions": DEFINITIONS}


def test_definitions_stay_with_a_live_index(tmp_path):
    with LiveIndex.open(tmp_path / "live", schema=SCHEMA) as live:
        live.add("one", "@ours OR x = 1")
        assert live.match({"x": 11, "y": "a"}) == ["one"]
        live.compact()
    with LiveIndex.open(tmp_path / "live") as live:
        live.add("two", "NOT @big")
        assert sorted(live.match({"x": 1, "y": "a"})) == ["one", "two"]
        live.publish(tmp_path / "published")
    newest = tamis.open(tmp_path / "published")
    assert sorted(newest.match({"x": 1})) == ["one", "two"]
    assert "x > 10" in str(newest.explain("one", {"x": 5}))


def test_definitions_alone_are_refused(tmp_path):
    with pytest.raises(InputError, match="no types"):
        LiveIndex.open(tmp_path / "live", schema={"@definitions": {"big": "x > 10"}})
