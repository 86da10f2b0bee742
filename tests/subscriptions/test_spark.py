"""Spark builds and updates versions straight from a store."""

from __future__ import annotations

import random
import sys
import threading

import pytest

import tamis.spark as ts
import tamis.versions as tv
from tamis.errors import HistoryError, InputError, MissingDependencyError, StoreError
from tamis.spark import stored_subscriptions
from tamis.spark.stored_subscriptions import StoredState
from tamis.subscriptions import (
    Accepted,
    Renew,
    Replace,
    Subscribe,
    SubscriptionStore,
    Unsubscribe,
)
from tamis.versions.log_position import LogPosition
from tests.spark.workloads import (
    DDL,
    event_frame,
    expected_pairs,
    make_event,
    make_expression,
    pairs_of,
    subscription_frame,
)
from tests.subscriptions.places import START, Clock, after

BROKEN = "age >="
RNG = random.Random(16)
EVENTS = [make_event(RNG) for _ in range(60)]


@pytest.fixture(scope="module")
def events(spark):
    return event_frame(spark, EVENTS)[0].persist()


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch):
    monkeypatch.setattr(stored_subscriptions, "CHANGES_PER_TASK", 25)
    monkeypatch.setattr(stored_subscriptions, "MOST_TASKS", 4)


def apply(store: SubscriptionStore, *requests) -> None:
    assert all(isinstance(result, Accepted) for result in store.apply(requests))


def fill(store: SubscriptionStore) -> dict[str, str]:
    """Subscribe; the expressions by id."""
    model = {f"s{n}": make_expression(RNG) for n in range(60)} | {"broken": BROKEN}
    apply(store, *(Subscribe(*pair, owner=f"o{pair[0][-1]}") for pair in model.items()))
    return model


def change(store: SubscriptionStore, model: dict[str, str]) -> dict[str, str]:
    """Change the set in all ways; the expressions by id afterwards."""
    made = {f"t{n}": make_expression(RNG) for n in range(9)}
    replaced = {f"s{n}": make_expression(RNG) for n in range(0, 30, 3)} | {"s1": BROKEN}
    mended = {"broken": "vip"}
    apply(store, *(Subscribe(*pair) for pair in made.items()))
    apply(store, *(Replace(*pair) for pair in (replaced | mended).items()))
    apply(store, *(Unsubscribe(f"s{n}") for n in range(40, 50)))
    apply(store, Subscribe("brief", "TRUE"), Unsubscribe("brief"), Unsubscribe("s50"))
    apply(store, Subscribe("s50", "age < 40"), Renew("s2", None))
    gone = {f"s{n}" for n in range(40, 50)}
    changed = model | made | replaced | mended | {"s50": "age < 40"}
    return {name: text for name, text in changed.items() if name not in gone}


def expect_answers(events, index, model, at=START) -> None:
    """The version answers as the reference evaluator does for the dictionary."""
    parts = tv.open_version(index, at=at)
    found = ts.match(events, parts, event_id="id")
    assert pairs_of(found) == expected_pairs(list(model.items()), EVENTS)


def position_of(index) -> LogPosition | None:
    return LogPosition.of(tv.IndexStore(index).current())


def test_versions_answer_as_the_set_of_their_change(spark, events, place, store, tmp_path):
    first, index = fill(store), tmp_path / "index"
    begin = store.last_change
    built = ts.build(place, index, schema=DDL, parts=2)
    assert (built.n_subscriptions, built.n_rejects) == (60, 1)
    assert position_of(index) == (store.epoch, begin)
    expect_answers(events, index, first)
    assert not ts.build(place, index, schema=DDL, parts=2).is_published

    second = change(store, first)
    updated = ts.update(spark, index, place)
    assert (updated.n_built, updated.unknown) == (1, ())
    assert position_of(index) == (store.epoch, store.last_change)
    expect_answers(events, index, second)
    assert not ts.update(spark, index, place).is_published

    again = ts.build(place, tmp_path / "again", schema=DDL, as_of=begin)
    assert again.version.provenance["subscription_store"]["change"] == begin
    expect_answers(events, tmp_path / "again", first)
    half = begin + 9
    ts.update(spark, tmp_path / "again", place, as_of=half)
    expect_answers(events, tmp_path / "again", first | {f"t{n}": second[f"t{n}"] for n in range(9)})
    assert position_of(tmp_path / "again").change == half

    ts.compact(spark, index)
    assert position_of(index) == (store.epoch, store.last_change)
    expect_answers(events, index, second)
    store.prune(store.last_change)
    with pytest.raises(
        HistoryError, match=f"begins at change {store.horizon}; {half} is"
    ) as raised:
        ts.update(spark, tmp_path / "again", place)
    assert "build a version from the store" in raised.value.hint
    with pytest.raises(HistoryError, match=rf"as_of is 3; .* changes {store.horizon} to"):
        ts.build(place, index, as_of=3)
    ts.build(place, tmp_path / "again", schema=DDL)
    expect_answers(events, tmp_path / "again", second)


def test_a_change_without_effect_moves_the_position(spark, place, store, tmp_path):
    apply(store, Subscribe("a", "vip"))
    ts.build(place, tmp_path / "i")
    apply(store, Subscribe("b", "vip"), Unsubscribe("b"))
    moved = ts.update(spark, tmp_path / "i", place)
    assert (moved.is_published, moved.n_built, moved.n_parts) == (True, 0, 1)
    apply(store, Subscribe("b", "vip"), Unsubscribe("b"))
    moved = ts.build(place, tmp_path / "i")
    assert (moved.is_published, moved.n_built) == (True, 0)
    assert position_of(tmp_path / "i").change == store.last_change == 5


def test_details_are_those_of_the_store(spark, place, clock, tmp_path):
    details = {"title": "Grün", "levels": [1, 2.5], "owner": "replaced"}
    index = tmp_path / "index"
    with SubscriptionStore.open(place, clock=clock) as store:
        apply(
            store,
            Subscribe("a", "vip", "ann", ("x", "y z"), details, after(-5), after(60)),
            Subscribe("b", "vip", tags=("x",), attributes={"title": "B"}),
            Subscribe("c", "vip", valid_from=after(60)),
        )
        ts.build(place, index)
    rows = {row["subscription_id"]: row for row in ts.subscriptions(spark, index).collect()}
    assert (rows["a"]["owner"], rows["a"]["tags"]) == ("ann", ["x", "y z"])
    assert (rows["b"]["owner"], rows["b"]["tags"], rows["b"]["valid_until"]) == (None, ["x"], None)
    opened = tv.open_version(index).open()
    assert opened.match({"vip": True}, at=after(0)) == ["a", "b"]
    assert opened.match({"vip": True}, at=after(60)) == ["b", "c"]
    frame = spark.createDataFrame([(1, True)], "id bigint, vip boolean")
    parts = tv.open_version(index, at=after(0))
    found = ts.match(frame, parts, event_id="id", columns=["title", "owner", "levels"])
    got = {
        row["subscription_id"]: (row["title"], row["owner"], row["levels"])
        for row in found.collect()
    }
    assert got["b"] == ("B", None, None)
    assert got["a"][:2] == ("Grün", "ann")
    assert "2.5" in str(got["a"][2])


def test_a_state_is_read_as_of_one_change_while_a_writer_goes_on(spark, place, store):
    apply(store, *(Subscribe(f"s{n}", "vip") for n in range(100)))
    is_over = threading.Event()

    def churn() -> None:
        rng = random.Random(5)
        while not is_over.is_set():
            store.apply([Replace(f"s{rng.randrange(100)}", f"age > {rng.randrange(99)}")])
            store.apply([Unsubscribe(f"s{n}") for n in (7, 8)])
            store.apply([Subscribe(f"s{n}", "vip") for n in (8, 7)])

    writer = threading.Thread(target=churn)
    writer.start()
    try:
        for _ in range(5):
            state = StoredState.find(place, None)
            rows = [(row[0], row[1]) for row in state.read(spark).collect()]
            held = {one.id: one.expression for one in store.state_at(state.position.change)}
            assert len(rows) == len(held)
            assert dict(rows) == held
    finally:
        is_over.set()
        writer.join()


# ── errors ──────────────────────────────────────────────────────────────────────────────────


def test_an_empty_store_is_not_built(place, store, tmp_path):
    with pytest.raises(InputError, match="as of change 0, holds no subscriptions"):
        ts.build(place, tmp_path / "index")
    apply(store, Subscribe("a", "vip"), Unsubscribe("a"))
    with pytest.raises(InputError, match="as of change 2, holds no subscriptions") as refused:
        ts.build(place, tmp_path / "index")
    assert "tamis.spark.update" in refused.value.hint


def test_a_version_of_another_history_is_not_updated(spark, place, store, tmp_path):
    apply(store, Subscribe("a", "vip"), Subscribe("b", "age > 3"))
    index = tmp_path / "index"
    ts.build(subscription_frame(spark, [("a", "vip")]), index)
    with pytest.raises(HistoryError, match="v00000001 was not built from a store"):
        ts.update(spark, index, place)
    ts.build(place, index)
    with pytest.raises(HistoryError, match="v00000002 includes change 2, after change 1"):
        ts.update(spark, index, place, as_of=1)
    with pytest.raises(InputError, match="removed cannot be combined with a store"):
        ts.update(spark, index, place, removed=["a"])
    store.renew_epoch()
    with pytest.raises(HistoryError, match="another history") as refused:
        ts.update(spark, index, place)
    assert "build a version from the store" in refused.value.hint


def test_an_older_publisher_is_noticed(spark, folder, tmp_path, monkeypatch):
    """Between the start of an update and its publication, the index may be rolled back."""
    index = tv.IndexStore(tmp_path / "index")
    with SubscriptionStore.open(folder) as store:
        for name in "abc":
            apply(store, Subscribe(name, "vip"))
            ts.build(str(folder), index) if name != "c" else None
    read_state = StoredState.read

    def roll_back(*args, **options):
        index.roll_back(1)
        return read_state(*args, **options)

    monkeypatch.setattr(StoredState, "read", roll_back)
    with pytest.raises(InputError, match="v00000003, which another job published meanwhile"):
        ts.update(spark, index, str(folder))
    monkeypatch.undo()
    assert ts.update(spark, index, str(folder)).n_subscriptions == 3


def test_places_without_a_store(spark, folder, postgres, tmp_path, monkeypatch):
    folder.mkdir()
    for wrong in (folder, str(folder / "nowhere"), "s3://bucket/store"):
        with pytest.raises(InputError, match="there is none at"):
            ts.build(wrong, tmp_path / "index")
    with pytest.raises(StoreError, match="there is no store of subscriptions at postgresql://"):
        ts.build(postgres.new_place(), tmp_path / "index")
    (folder / "subscriptions.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreError, match="damaged, or not a database"):
        ts.build(folder, tmp_path / "index")
    with pytest.raises(StoreError, match="is the server running"):
        ts.build("postgresql://ann:secret@127.0.0.1:9/people", tmp_path / "index")
    frame = subscription_frame(spark, [("a", "vip")])
    with pytest.raises(InputError, match="as_of is 3, but the subscriptions are not those"):
        ts.build(frame, tmp_path / "index", as_of=3)
    monkeypatch.setitem(sys.modules, "tamis.subscriptions", None)
    for name in [name for name in sys.modules if name.startswith("tamis.subscriptions")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingDependencyError, match="needs the package sqlalchemy"):
        ts.build(folder, tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_workers_expect_the_history_of_the_driver(folder, tmp_path):
    with SubscriptionStore.open(folder, clock=Clock()) as store:
        apply(store, Subscribe("a", "vip"))
        state = StoredState.find(str(folder), None)
        store.renew_epoch()
    with pytest.raises(StoreError, match="another history than the one that the driver read"):
        state.open()
