"""Counts with examples: events that cannot be read, moments, subsets, operators, streams."""

from __future__ import annotations

import pytest

import tamis
from tamis.operators.registry import Registry, operator

SUBSCRIPTIONS = {"high": "level >= 4", "absent": "level IS NULL", "always": "TRUE"}
EVENTS = [{"level": 1}, {"level": 5}, {}, {"level": 6}]


def by_subscription(index, events, **options):
    counted = index.summarise_by_subscription(events, **options)
    return dict(zip(index, zip(*map(list, counted), strict=True), strict=True))


def by_event(index, events, **options):
    counted = index.summarise_by_event(events, **options)
    names = [*index, None]
    return [(n, names[first]) for n, first in zip(*map(list, counted), strict=True)]


@pytest.mark.parametrize("threads", [1, 2])
def test_summaries(threads):
    index = tamis.build(SUBSCRIPTIONS)
    assert by_subscription(index, EVENTS, threads=threads) == {
        "high": (2, 1),
        "absent": (1, 2),
        "always": (4, 0),
    }
    assert by_event(index, EVENTS, threads=threads) == [(1, "always"), *[(2, "always")] * 3]


def test_what_is_no_event_is_no_example():
    index = tamis.build(SUBSCRIPTIONS)
    events = ["nonsense", '{"level": 1}', "[]", "{}", '{"level": 5}', "nonsense"]
    assert by_subscription(index, events) == {"high": (1, 4), "absent": (1, 3), "always": (3, 1)}
    assert by_event(index, events, subset=["high", "absent"]) == [
        *((0, None), (0, None), (0, None), (1, "absent"), (1, "high"), (0, None)),
    ]
    assert by_subscription(index, ["nonsense"])["always"] == (0, -1)
    assert by_event(index, events)[0] == (0, None)


def test_no_events():
    index = tamis.build(SUBSCRIPTIONS)
    assert by_subscription(index, []) == dict.fromkeys(SUBSCRIPTIONS, (0, -1))
    assert by_event(index, []) == []


def test_rows_are_those_of_all_events_of_a_stream(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"level": 1}\n' * 70_000 + '{"level": 5}\n')
    index = tamis.build(SUBSCRIPTIONS)
    assert by_subscription(index, path)["high"] == (1, 70_000)
    assert len(by_event(index, path)) == 70_001


def test_only_what_is_valid_and_wanted_is_counted():
    rows = [
        {"id": "now", "expression": "level >= 4"},
        {"id": "later", "expression": "level >= 4", "valid_from": "2090-01-01"},
    ]
    index = tamis.build(rows)
    assert by_subscription(index, EVENTS) == {"now": (2, 1), "later": (0, -1)}
    assert by_subscription(index, EVENTS, at="2090-01-01", subset=["later"]) == {
        "now": (0, -1),
        "later": (2, 1),
    }
    assert by_event(index, EVENTS, at="2090-01-01", subset=["later"])[1] == (1, "later")


def test_operators_decide():
    registry = Registry()
    operator("multiple(integer)", reads=["level integer"], timeout=None, registry=registry)(
        lambda event, number: event.get("level", 1) % number == 0
    )
    index = tamis.build({"even": "multiple(2)", "high": "level >= 4"}, operators=registry)
    assert by_subscription(index, EVENTS) == {"even": (1, 3), "high": (2, 1)}
    assert [n for n, _ in by_event(index, EVENTS)] == [0, 1, 0, 2]
