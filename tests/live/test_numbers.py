"""Subscriptions of a live index keep the number that the store gave them."""

from __future__ import annotations

import numpy as np
import pytest

import tamis
from tamis.live import LiveIndex
from tamis.match.readouts.numbers import Numbers
from tests.live.places import by_hand, step


def numbers_of(live: LiveIndex, events: list) -> list[list[int]]:
    view = live.view
    found = view.ask(None, None, None).put([live.encode(events)], Numbers())
    lists = np.split(found.numbers, found.starts[1:-1])
    for event, own in zip(events, lists, strict=True):
        single = view.ask(None, None, None).match_numbers(event)
        assert sorted(single.tolist()) == sorted(own.tolist())
    return [sorted(own.tolist()) for own in lists]


def test_a_number_is_the_change_that_created_the_subscription(tmp_path):
    with LiveIndex.open(tmp_path) as live:
        live.add_many({"a": "x = 1", "b": "x > 0", "c": "y = 1"})
        assert numbers_of(live, [{"x": 1}, {"y": 1}, {"z": 1}]) == [[1, 2], [3], []]


def test_replacing_and_renewing_keep_it(tmp_path):
    with LiveIndex.open(tmp_path) as live:
        live.add("a", "x = 1", valid_until="2090-01-01")
        live.replace("a", "x = 2")
        live.renew("a", "2091-01-01")
        assert numbers_of(live, [{"x": 2}]) == [[1]]


def test_an_id_that_is_used_again_has_another_one(tmp_path):
    with LiveIndex.open(tmp_path) as live:
        live.add("a", "x = 1")
        live.remove("a")
        live.add("a", "x = 1")
        assert numbers_of(live, [{"x": 1}]) == [[3]]


def test_merging_and_opening_keep_them(tmp_path):
    events = [{"x": at} for at in range(5)]
    with by_hand(), LiveIndex.open(tmp_path) as live:
        for at in range(5):
            live.add_many({f"s{at}-{one}": f"x = {at}" for one in range(700)})
            step(live)
        live.remove("s3-7")
        before = numbers_of(live, events)
        live.compact()
        assert numbers_of(live, events) == before
    with LiveIndex.open(tmp_path) as live:
        assert numbers_of(live, events) == before
        created = {one.id: one.created for one in live.store.state_at(live.change)}
    names = [[f"s{at}-{one}" for one in range(700)] for at in range(5)]
    names[3].remove("s3-7")
    assert before == [sorted(created[name] for name in own) for own in names]


def test_other_indexes_have_none():
    index = tamis.build({"a": "x = 1"})
    with pytest.raises(tamis.errors.InputError, match="have no numbers"):
        index.view.ask(None, None, None).match_numbers({"x": 1})
