"""Operators in `tamis spark`: named by module, faults reported, statistics stored."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tamis.spark
from tests.cli.shell import run
from tests.cli.tables import write

MODULE = "tests.cli.crowds"
SUBSCRIPTIONS = {"mob": "mobs(?people) AND ?people > 3", "photo": "kind = 'photo'"}
EVENTS = [
    {"id": "e1", "kind": "photo", "sizes": [2, 7, 5]},
    {"id": "e2", "kind": "film", "sizes": [1]},
    {"id": "e3", "kind": "photo"},
]
FOUND = {("e1", "mob", '{"people": 5}'), ("e1", "photo", None), ("e3", "photo", None)}


@pytest.fixture
def place(shell_session, tmp_path) -> Path:
    rows = [{"subscription_id": name, "expression": text} for name, text in SUBSCRIPTIONS.items()]
    (tmp_path / "events").mkdir()
    write(tmp_path / "s.jsonl", rows)
    write(tmp_path / "events" / "e.jsonl", EVENTS)
    return tmp_path


def found_in(path: Path) -> set[tuple]:
    names = ("event_id", "subscription_id", "bindings")
    return {tuple(row[name] for name in names) for row in pq.read_table(path).to_pylist()}


def test_build_match_and_stream(place):
    common = ["--index", place / "index", "--operators", MODULE]
    built = run("spark", "build", "--subscriptions", place / "s.jsonl", *common)
    assert built.exit_code == 0, built.output
    events = ["--events", place / "events", "--events-format", "jsonl", "--event-id", "id"]
    more = ["--bindings", "--learn", "--output", place / "out"]
    matched = run("spark", "match", *common, *events, *more)
    assert matched.exit_code == 0, matched.output
    assert found_in(place / "out") == FOUND
    said = "mobs(?) is undefined for 1 event (raised: KeyError: 'sizes'), of subscriptions mob"
    assert said in matched.stderr
    # The statistics are in a new version, and in each index of it.
    parts = tamis.versions.open_version(place / "index").with_operators(MODULE)
    assert parts.version.number == 2
    assert parts.version.statistics["operators"]["mobs(?)"]["calls"] == pytest.approx(2, abs=0.01)
    index = parts.open()
    assert index.operators.statistics["mobs(?)"]["true"] >= 1
    streaming = ["--checkpoint", place / "checkpoint", "--output", place / "stream", "--once"]
    streamed = run("spark", "stream", *common, *events, *streaming, "--bindings")
    assert streamed.exit_code == 0, streamed.output
    assert found_in(place / "stream") == FOUND
    assert said in streamed.stderr
    counted = run("spark", "match", *common, *events, "--kind", "by-subscription")
    assert said in counted.stderr
    audited = run("spark", "audit", *common, *events, "--share", "1")
    assert audited.exit_code == 0, audited.output


def test_a_module_that_is_not_there(place):
    common = ["--index", place / "index", "--operators", "no_such_module"]
    built = run("spark", "build", "--subscriptions", place / "s.jsonl", *common)
    assert built.exit_code == 1
    assert 'operators "no_such_module" cannot be imported' in built.stderr


def test_workers_that_miss_an_operator(place):
    schema = ["--schema", "kind STRING, elsewhere(STRING) OPERATOR(kind)"]
    (place / "s.jsonl").write_text('{"subscription_id": "far", "expression": "elsewhere(\'x\')"}\n')
    common = ["--index", place / "index"]
    built = run("spark", "build", "--subscriptions", place / "s.jsonl", *common, *schema)
    assert built.exit_code == 0, built.output
    events = ["--events", place / "events", "--events-format", "jsonl", "--event-id", "id"]
    matched = run("spark", "match", *common, *events)
    assert matched.exit_code == 1
    said = "the index needs operators that are not registered: elsewhere(string)"
    assert said in " ".join(matched.stderr.split())
    assert "Traceback" not in matched.stderr
