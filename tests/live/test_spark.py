"""Spark reads what a live index publishes, and agrees with it."""

from __future__ import annotations

import json
import os
import random
from datetime import datetime, timedelta
from pathlib import Path

import tamis.spark as ts
from tamis.live import LiveIndex
from tests.effort import examples
from tests.live.places import by_hand, step
from tests.spark.workloads import (
    DDL,
    event_frame,
    expected_pairs,
    make_event,
    make_expression,
    pairs_of,
)
from tests.subscriptions.places import Clock


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


def test_random_versions_are_matched_by_spark(spark, tmp_path, seed):
    """Each version that is published answers on Spark as the model, also at a later moment."""
    draw, clock = random.Random(f"{seed}/versions"), Clock()
    events = [make_event(draw) for _ in range(30)]
    frame = event_frame(spark, events)[0].persist()
    held: dict[str, tuple[str, datetime | None]] = {}  # expressions, and ends of leases
    with by_hand(), LiveIndex.open(tmp_path / "live", schema=DDL, clock=clock) as live:
        for version in range(examples(2)):
            for _ in range(40):
                change(live, held, clock, draw)
            live.publish(tmp_path / "store")
            for seconds in (0, 20):
                at = clock.now + timedelta(seconds=seconds)
                valid = [(name, text) for name, (text, end) in held.items() if not is_over(end, at)]
                found = pairs_of(ts.match(frame, tmp_path / "store", event_id="id", at=at))
                assert found == expected_pairs(valid, events), (version, seconds)


def is_over(end: datetime | None, moment: datetime) -> bool:
    return end is not None and end <= moment


def change(live: LiveIndex, held: dict, clock: Clock, draw: random.Random) -> None:
    """One random change of the index and of its model, or work in the background."""
    name, text = f"s{draw.randrange(30)}", make_expression(draw)
    end = clock.now + timedelta(seconds=draw.randint(1, 60)) if draw.random() < 0.4 else None
    kind = draw.random()
    if name not in held:
        live.add(name, text, valid_until=end)
        held[name] = (text, end)
    elif kind < 0.4:
        live.replace(name, text, valid_until=end)
        held[name] = (text, end)
    elif kind < 0.7:
        live.remove(name)
        del held[name]
    elif kind < 0.8:
        clock.move(draw.randint(0, 9))
        for own in [own for own, (_, until) in held.items() if is_over(until, clock.now)]:
            del held[own]
    elif kind < 0.95:
        step(live)
    else:
        live.compact()


def test_a_stream_uses_what_is_published_between_two_batches(spark, tmp_path):
    """The stream runs on; each batch is answered by the newest version of that moment."""
    events, store = tmp_path / "events", tmp_path / "store"
    events.mkdir()
    for batch in range(5):
        write_batch(events / f"{batch}.json", batch)
    reports = []

    def change(report) -> None:
        """Change the set after a batch, before the next one."""
        reports.append((report.batch_id, report.version))
        if report.batch_id == 0:
            live.add("two", "a = 2")
            live.publish(store)
        elif report.batch_id == 1:
            live.remove("one")  # not published yet
        elif report.batch_id == 2:
            live.replace("two", "a = 1")
            live.compact()
            live.publish(store)
            live.add("one", "a = 2")
            live.publish(store)

    with by_hand(), LiveIndex.open(tmp_path / "live", schema="a INT") as live:
        live.add("one", "a = 1")
        live.publish(store)
        frame = spark.readStream.schema("id bigint, a int").option("maxFilesPerTrigger", 1)
        query = ts.stream(
            frame.json(str(events)),
            store,
            str(tmp_path / "matches"),
            checkpoint=str(tmp_path / "checkpoint"),
            trigger={"availableNow": True},
            event_id="id",
            on_batch=change,
        )
        query.awaitTermination()
    versions = ["v00000001", "v00000002", "v00000002", "v00000004", "v00000004"]
    assert reports == list(enumerate(versions))
    found = spark.read.parquet(str(tmp_path / "matches")).select("event_id", "subscription_id")
    before, both, after = {(1, "one")}, {(1, "one"), (2, "two")}, {(1, "two"), (2, "one")}
    assert sorted(map(tuple, found.collect())) == sorted(
        (10 * batch + value, name)
        for batch, pairs in enumerate((before, both, both, after, after))
        for value, name in pairs
    )


def write_batch(path: Path, batch: int) -> None:
    """One file of two events, which is one batch: `a` is 1 and 2, and the last digit of the id."""
    path.write_text("".join(f"{json.dumps({'id': 10 * batch + a, 'a': a})}\n" for a in (1, 2)))
    os.utime(path, (10**9 + batch, 10**9 + batch))  # Spark takes the oldest file first
