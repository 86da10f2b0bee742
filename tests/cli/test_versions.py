"""Commands on a folder of versions: they open the newest, or the one that --version names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis.versions import IndexStore
from tamis.versions.manifest import BASE, DELTA
from tests.cli.shell import json_lines, run
from tests.versions.test_open import add_part

EVENTS = [{"a": 1, "b": "x"}, {"a": 5, "b": "y"}, {"a": "none"}]


@pytest.fixture
def place(tmp_path) -> Path:
    """A store of two versions, and events."""
    store = IndexStore(tmp_path / "index")
    add_part(store, BASE, {"one": "a = 1", "two": "a >= 1", "gone": "a = 5"})
    add_part(store, DELTA, {"two": "b = 'y'"}, ["gone"])
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(own) + "\n" for own in EVENTS))
    return tmp_path


def matches(place: Path, *options: str) -> list[list[str]]:
    found = run("match", place / "index", place / "events.jsonl", *options)
    assert found.exit_code == 0
    return [line["matches"] for line in json_lines(found.stdout)]


def test_match(place):
    assert matches(place) == [["one"], ["two"], []]
    assert matches(place, "--version", "v00000001") == [["one", "two"], ["two", "gone"], []]
    assert matches(place, "--untrusted", "--subset", "two") == [[], ["two"], []]


def test_match_reports_as_on_a_saved_index(place):
    found = run("match", place / "index", place / "events.jsonl", "--counts", "subscription")
    assert [line["matches"] for line in json_lines(found.stdout)] == [1, 1]
    assert "1 value" in found.stderr


def test_events_of_csv_have_the_types_of_all_parts(place):
    (place / "events.csv").write_text("a,b\n1,x\n5,y\n")
    found = run("match", place / "index", place / "events.csv")
    assert [line["matches"] for line in json_lines(found.stdout)] == [["one"], ["two"]]


def test_explain(place):
    event = json.dumps(EVENTS[1])
    shown = run("explain", place / "index", "two", "--event", event)
    assert shown.stdout.startswith("two: matches")
    older = run("explain", place / "index", "gone", "--event", event, "--version", "v00000001")
    assert older.stdout.startswith("gone: matches")
    missing = run("explain", place / "index", "gone", "--event", event)
    assert (missing.exit_code, 'no subscription "gone"' in missing.stderr) == (1, True)


def test_stats(place):
    found = json.loads(run("stats", place / "index", "--output", "json").stdout)
    assert (found["version"], found["subscriptions"]) == ("v00000002", 2)
    assert [part["hidden"] for part in found["parts"]] == [2, 0]
    assert [part["counts"]["subscriptions"] for part in found["parts"]] == [3, 1]
    shown = run("stats", place / "index").stdout
    assert "v00000002" in shown
    assert "part 1: 2 subscriptions hidden by later parts" in shown


def test_dot_and_verify(place):
    assert "b = 'y'" in run("dot", place / "index", "two").stdout
    verified = run("verify", place / "index")
    assert (verified.exit_code, "is valid: 2 subscriptions" in verified.stdout) == (0, True)
    (part, _) = IndexStore(place / "index").current().parts
    file = place / "index" / part.folder / "manifest.json"
    file.write_bytes(file.read_bytes() + b" ")
    assert run("verify", place / "index").exit_code == 1


def test_mistakes(place):
    for command, message in (
        (["match", place / "events.jsonl", place / "index"], "the arguments are swapped"),
        (["match", place / "index", place / "index"], "is an index; a file of events is expected"),
        (["stats", place / "index", "--version", "v9"], 'has no version "v9"'),
    ):
        refused = run(*command)
        assert (refused.exit_code, message in refused.stderr) == (1, True)
