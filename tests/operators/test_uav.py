"""The paper's scenario on events that were checked by hand."""

from __future__ import annotations

import pytest

import tamis
from tests.operators.uav import EVENTS, SUBSCRIPTIONS
from tests.schedules import SCHEDULES, use_schedule


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_five_subscriptions(schedule, monkeypatch):
    index = tamis.build(SUBSCRIPTIONS, operators="tests.operators.uav")
    assert not index.rejects
    use_schedule(monkeypatch, schedule)
    assert [index.match_bindings(event) for event, _ in EVENTS] == [found for _, found in EVENTS]
    assert {fault.message for fault in index.operators.faults} == {"KeyError: 'x'"}


def test_text_is_answered_by_what_is_registered():
    event, _ = EVENTS[0]
    assert tamis.evaluate(SUBSCRIPTIONS["S2"], event) is True
    assert tamis.evaluate(SUBSCRIPTIONS["S2"] + " AND ?people > 100", event) is False
    assert tamis.evaluate(SUBSCRIPTIONS["S5"], {}) is None
    assert tamis.check(SUBSCRIPTIONS["S5"]) == []
