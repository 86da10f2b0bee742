"""Spark reads what a live index publishes, and agrees with it."""

from __future__ import annotations

import random

import tamis.spark as ts
from tamis.live import LiveIndex
from tests.live.places import by_hand
from tests.spark.workloads import (
    DDL,
    event_frame,
    expected_pairs,
    make_event,
    make_expression,
    pairs_of,
)


def test_spark_reads_published_versions(spark, tmp_path, seed):
    draw = random.Random(seed)
    events = [make_event(draw) for _ in range(40)]
    frame = event_frame(spark, events)[0].persist()
    held = {f"s{n}": make_expression(draw) for n in range(60)}
    store = tmp_path / "store"

    def expect_agreement(live: LiveIndex) -> None:
        live.publish(store)
        found = pairs_of(ts.match(frame, store, event_id="id"))
        assert found == expected_pairs(list(held.items()), events)
        lists = live.match_lists(events).to_pylist()
        assert found == sorted((at, name) for at, ids in enumerate(lists) for name in ids)

    with by_hand(), LiveIndex.open(tmp_path / "live", schema=DDL) as live:
        live.add_many(held)
        expect_agreement(live)
        for n in range(0, 30, 3):  # of a part that is stored, and of the newest one
            held[f"s{n}"] = make_expression(draw)
            live.replace(f"s{n}", held[f"s{n}"])
        for name in ("s0", "s1", "s59"):
            live.remove(name)
            del held[name]
        live.add("new", "age >= 18")
        live.remove("new")
        expect_agreement(live)
        live.compact()
        held["last"] = "NOT country = 'NO'"
        live.add("last", held["last"])
        expect_agreement(live)
