"""What users of a live index rely on, case by case."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from datetime import timedelta

import pytest

import tamis
from tamis.errors import HistoryError, RefusedError, StoreError, StoreInUseError
from tamis.live import LiveIndex, checkpoints, follow, live_set, requests
from tamis.live.merging import choose_slow, measure_parts
from tamis.subscriptions import Accepted, Reason, Refused, Replace, Subscribe, Unsubscribe
from tamis.versions.opening import open_version
from tests.live.places import by_hand, crash, step
from tests.subscriptions.places import START, Clock
from tests.waiting import HANG_SECONDS


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "people.live"


@pytest.fixture
def live(folder):
    with by_hand(), LiveIndex.open(folder) as index:
        yield index


# ── changes ─────────────────────────────────────────────────────────────────────────────────


def test_revisions(live):
    first = live.add("s", "a = 1", owner="ann", tags=["news"], attributes={"level": 3})
    second = live.replace("s", "a = 2", if_revision=first)
    assert second > first
    with pytest.raises(RefusedError, match="has revision") as refused:
        live.replace("s", "a = 3", if_revision=first)
    assert refused.value.reason == Reason.REVISION
    assert refused.value.revision == second
    assert live.match({"a": 2}) == ["s"]
    assert live.get("s").owner == "ann"
    assert live.attributes("s") == {"level": 3, "owner": "ann", "tags": ["news"]}
    rows = live.match_batch([{"a": 2}], columns=["owner", "level"])
    assert rows.to_pylist()[0]["owner"] == "ann"


def test_others_write_to_the_store_meanwhile(live, monkeypatch):
    live.add("newest", "a = 1")
    submit = live.store.submit_checked

    def submit_after_others(requests):
        monkeypatch.setattr(live.store, "submit_checked", submit)
        live.store.apply([Subscribe("foreign", "a = 1"), Unsubscribe("newest")])
        return submit(requests)

    monkeypatch.setattr(live.store, "submit_checked", submit_after_others)
    live.add("own", "a = 1")
    assert sorted(live.match({"a": 1})) == ["foreign", "own"]
    assert live.change == live.store.last_change


def test_others_change_what_a_replacement_keeps(live, monkeypatch):
    live.add("s", "a = 1")
    submit = live.store.submit_checked

    def submit_after_others(requests):
        monkeypatch.setattr(live.store, "submit_checked", submit)
        live.store.apply([Replace("s", "a = 2")])
        return submit(requests)

    monkeypatch.setattr(live.store, "submit_checked", submit_after_others)
    live.replace("s", tags=["t"])
    assert live.match({"a": 1}) == []
    assert live.match({"a": 2}, tagged="t") == ["s"]


def test_what_others_write_is_seen_without_a_change(live):
    live.add("s", "a = 1")
    live.store.apply([Subscribe("foreign", "a = 1")])
    step(live)
    assert sorted(live.match({"a": 1})) == ["foreign", "s"]


def test_one_caller_who_names_an_id_twice_is_all_or_nothing(live, monkeypatch):
    calls = []
    submit = live.store.submit_checked

    def fail_second(requests):
        calls.append(requests)
        if len(calls) == 2:
            raise StoreError("the disk is full")
        return submit(requests)

    monkeypatch.setattr(live.store, "submit_checked", fail_second)
    requests = [
        Subscribe("s", "a = 1"),
        Replace("s", "a = = 2"),
        Replace("s", "a = 'text'"),
        Replace("s", "a = 3"),
        Subscribe("t", "a = 3"),
        Unsubscribe("t"),
        Subscribe("t", "b = 'text'"),
    ]
    results = live.apply(requests)
    assert len(calls) == 1
    assert [type(own) for own in results] == [Accepted, Refused, Refused, *[Accepted] * 4]
    assert 'a is number since subscription "s" was added' in results[2].error.hint
    assert sorted(live.match({"a": 3, "b": "text"})) == ["s", "t"]
    assert live.match({"a": 1}) == []
    with pytest.raises(StoreError, match="the disk is full"):
        live.apply([Unsubscribe("s"), Subscribe("s", "a = 1")])
    assert live.match({"a": 3}) == ["s"]
    live.add("u", "a = 3")
    assert sorted(live.match({"a": 3})) == ["s", "u"]


def test_a_refused_request_of_a_caller_who_names_an_id_twice_fixes_no_type(live):
    live.add("s", "a = 1")
    results = live.apply([Subscribe("s", "b = 1"), Subscribe("t", "a = 2"), Replace("t", "a = 3")])
    assert [type(own) for own in results] == [Refused, Accepted, Accepted]
    live.add("u", "b = 'text'")
    assert live.match({"b": "text"}) == ["u"]


def test_a_refused_replacement_leaves_what_was(live):
    live.add("s", "a = 1")
    with pytest.raises(tamis.ExpressionError):
        live.replace("s", "a = = 2")
    with pytest.raises(RefusedError):
        live.replace("s", "a = 2", if_revision=99)
    with pytest.raises(RefusedError):
        live.add("s", "a = 3")
    assert [live.match({"a": n}) for n in (1, 2, 3)] == [["s"], [], []]
    assert live.expression("s") == "a = 1"


def test_one_bad_subscription_does_not_affect_the_others(live):
    results = live.add_many([("a", "x = 1"), ("b", "x = = 1"), ("a", "x = 2"), ("c", "x = 3")])
    assert [isinstance(one, Accepted) for one in results] == [True, False, False, True]
    assert isinstance(results[1], Refused)
    assert results[1].error.code == "syntax-error" or results[1].error is not None
    assert results[2].reason == Reason.EXISTS
    assert [sorted(live.match({"x": n})) for n in (1, 2, 3)] == [["a"], [], ["c"]]


def test_rows_that_fail_in_the_middle(live, monkeypatch):
    """What was added before stays, and the error says how much that is."""
    monkeypatch.setattr(requests, "AT_ONCE", 2)
    read = []

    def rows(n: int):
        for at in range(n):
            read.append(at)
            assert at <= len(live) + 4  # no more are read than are being written
            yield (f"s{at}", "x = 1") if at != 3 else ("s3", "x = = 1")
        raise OSError("the rows cannot be read")

    with pytest.raises(OSError, match="the rows cannot be read") as raised:
        live.add_many(rows(7))
    assert raised.value.__notes__ == ["5 subscriptions of this call were added"]
    assert sorted(live) == ["s0", "s1", "s2", "s4", "s5"]
    assert read == [*range(7)]
    with pytest.raises(tamis.InputError, match="subscription 2 is not a pair") as refused:
        live.add_many([("t", "x = 1"), "no pair"])
    assert not hasattr(refused.value, "__notes__")
    assert "t" not in live


def test_the_same_id_several_times_in_one_call(live):
    live.add("s", "x = 1")
    removed = live.remove_many(["s", "s", "t"])
    assert [isinstance(one, Accepted) for one in removed] == [True, False, False]
    assert len(live) == 0


def test_what_is_removed_from_the_newest_part_stays_removed(folder, tmp_path):
    with by_hand(), LiveIndex.open(folder) as live:
        live.add_many({"a": "x = 1", "b": "x = 1"})
        live.remove("a")
        live.publish(tmp_path / "store")
        with tamis.open(tmp_path / "store") as index:
            assert index.match({"x": 1}) == ["b"]
    with by_hand(), LiveIndex.open(folder) as live:
        assert live.match({"x": 1}) == ["b"]


# ── types ───────────────────────────────────────────────────────────────────────────────────


def test_who_fixed_a_type_is_named(folder):
    with by_hand(), LiveIndex.open(folder) as live:
        live.add("first", "age >= 18")
        with pytest.raises(tamis.ExpressionError, match='since subscription "first" was added'):
            live.add("other", "age = 'x'")
    with by_hand(), LiveIndex.open(folder) as live:  # and after it was saved
        with pytest.raises(tamis.ExpressionError, match='since subscription "first" was added'):
            live.add("other", "age LIKE 'x%'")
        assert live.match({"age": 18}) == ["first"]


def test_a_test_of_presence_fixes_no_type(live):
    live.add("absent", "x IS NULL")
    assert live.match({"x": "text"}) == []
    live.add("number", "x = 1")
    # A text is no number: it is treated as missing, as if both had been built together.
    events = [{"x": 1}, {"x": "text"}, {}]
    with pytest.warns(tamis.TamisWarning, match="not read"):
        found = [sorted(live.match(event)) for event in events]
    together = tamis.build({"absent": "x IS NULL", "number": "x = 1"})
    with pytest.warns(tamis.TamisWarning, match="not read"):
        assert found == [sorted(together.match(event)) for event in events]
    with pytest.warns(tamis.TamisWarning, match="not read"):
        lists = live.match_lists(events).to_pylist()
    assert [sorted(own) for own in lists] == found
    assert live.explain("absent", {}).matches


def test_a_schema_may_be_declared_later(folder):
    with by_hand(), LiveIndex.open(folder) as live:
        live.add("s", "age >= 18")
    with pytest.raises(tamis.InputError, match='age is used as number by subscription "s"'):
        LiveIndex.open(folder, schema="age STRING")
    with by_hand(), LiveIndex.open(folder, schema="age NUMBER, name STRING") as live:
        with pytest.raises(tamis.UnknownAttributeError):
            live.add("t", "nmae = 'x'")
        live.add("t", "name = 'x'")
    with by_hand(), LiveIndex.open(folder) as live:  # it stays declared
        with pytest.raises(tamis.UnknownAttributeError):
            live.add("u", "nmae = 'x'")
        assert sorted(live.match({"age": 20, "name": "x"})) == ["s", "t"]


def test_the_missing_mode_stays(folder):
    with by_hand(), LiveIndex.open(folder, missing="satisfies_negation") as live:
        live.add("s", "NOT a = 1")
        assert live.match({}) == ["s"]
    with by_hand(), LiveIndex.open(folder) as live:
        assert live.match({}) == ["s"]
    with pytest.raises(tamis.InputError, match="was created with"):
        LiveIndex.open(folder, missing="undefined")


# ── leases ──────────────────────────────────────────────────────────────────────────────────


def test_leases_end_without_a_rebuild_and_stay_ended(folder):
    clock = Clock()
    with by_hand(), LiveIndex.open(folder, clock=clock) as live:
        live.add("s", "a = 1", valid_until=START + timedelta(seconds=10))
        live.add("t", "a = 1")
        view = live.view
        assert live.match({"a": 1}) == ["s", "t"]
        clock.move(11)
        assert live.match({"a": 1}) == ["t"]
        assert live.match_lists([{"a": 1}]).to_pylist() == [["t"]]
        assert live.view is view
        clock.move(-11)
        assert live.match({"a": 1}) == ["t"]
        with pytest.raises(RefusedError, match="has ended"):
            live.renew("s", START + timedelta(days=1))
        live._maintenance._next_expiry = 0.0
        step(live)
        assert list(live) == ["t"]
        live.add("s", "a = 1", valid_until=START + timedelta(seconds=30))
        live.renew("s", START + timedelta(seconds=60))
        clock.move(50)
        assert sorted(live.match({"a": 1})) == ["s", "t"]


def test_an_ended_lease_stays_ended_if_the_clock_is_set_back_before_the_next_start(folder):
    clock = Clock()
    with by_hand():
        with LiveIndex.open(folder, clock=clock) as live:
            live.add("s", "a = 1", valid_until=START + timedelta(seconds=10))
            clock.move(11)
        clock.move(-11)
        with LiveIndex.open(folder, clock=clock) as live:
            assert live.match({"a": 1}) == []
            assert live.store.last_change == 2


def test_an_ended_lease_stays_ended_after_a_crash(folder):
    """At once after the first answer without it, before its end is written to the log."""
    clock = Clock()
    with by_hand():
        live = LiveIndex.open(folder, clock=clock)
        live.add("s", "a = 1", valid_until=START + timedelta(seconds=10))
        clock.move(10)
        assert live.match({"a": 1}) == []
        assert live.change == 1
        crash(live)
        clock.move(-10)
        with LiveIndex.open(folder, clock=clock) as live:
            assert live.match({"a": 1}) == []
            assert live.change == 1


def test_a_snapshot_stays_as_it_was(folder):
    clock = Clock()
    with by_hand(), LiveIndex.open(folder, clock=clock) as live:
        live.add("s", "a = 1", valid_until=START + timedelta(seconds=10))
        before = live.snapshot()
        live.add("t", "a = 1")
        live.remove("s")
        live.compact()
        clock.move(60)
        assert before.match({"a": 1}) == ["s"]
        assert live.match({"a": 1}) == ["t"]


@pytest.mark.parametrize("is_saved", [False, True])
def test_as_of_an_earlier_change(folder, is_saved):
    clock = Clock()
    with by_hand(), LiveIndex.open(folder, clock=clock) as live:
        first = live.add("s", "a = 1", valid_until=START + timedelta(seconds=10))
        second = live.add("t", "a = 1")
        if is_saved:
            live.compact()
        clock.move(60)
        third = live.replace("t", "a = 2")
        live.add("u", "a = 1")
        answers = {at: sorted(live.as_of(at).match({"a": 1})) for at in (0, first, second, third)}
        assert answers == {0: [], first: ["s"], second: ["s", "t"], third: []}
        assert live.as_of(third).match({"a": 2}) == ["t"]
        live.store.prune(third)
        with pytest.raises(HistoryError):
            live.as_of(second)
        assert live.as_of(third).match({"a": 2}) == ["t"]


# ── other processes ─────────────────────────────────────────────────────────────────────────


def test_a_second_writer_is_refused(live, folder):
    with pytest.raises(StoreInUseError):
        LiveIndex.open(folder)
    program = f"from tamis.live import LiveIndex; LiveIndex.open({str(folder)!r})"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert "StoreInUseError" in done.stderr
    live.add("s", "a = 1")


def test_a_follower_sees_changes_and_catches_up(live, folder):
    live.add("s", "a = 1")
    with follow(folder, is_started=False) as follower:
        assert follower.match({"a": 1}) == ["s"]
        live.add("t", "a = 1")
        live.remove("s")
        assert follower.refresh() == live.change
        assert follower.match({"a": 1}) == ["t"]
        live.add_many({f"u{n}": f"b = {n}" for n in range(3)})
        live.store.prune(live.change)
        with pytest.raises(HistoryError):
            live.store.changes(after=follower.change)
        assert follower.refresh() == live.change
        assert sorted(follower.match({"a": 1, "b": 2})) == ["t", "u2"]
        with pytest.raises(AttributeError):
            follower.add("v", "a = 1")


def test_a_follower_seldom_looks_for_a_version_with_fewer_parts(live, folder, monkeypatch):
    """Not each time that it looks at the log: that would be all that it does."""
    monkeypatch.setattr(live_set, "MOST_NEWEST", 1)  # each subscription is a part
    load, loaded = checkpoints.load, []

    def count_loads(*args):
        loaded.append(args)
        return load(*args)

    with follow(folder, is_started=False) as follower:
        monkeypatch.setattr(checkpoints, "load", count_loads)

        def grow(up_to: int) -> int:
            for at in range(len(live), up_to):
                live.add(f"s{at}", "a = 1")
                follower.refresh()
                follower.refresh()
            return len(follower.stats().parts)

        assert grow(20) == 20
        assert len(loaded) == 1
        live.compact()
        assert grow(30) < 10
        assert len(loaded) == 2
        assert len(follower.match({"a": 1})) == 30


def test_a_follower_never_adds_changes_of_another_history(live, folder, monkeypatch):
    """Also if the set of the new history cannot be read at first."""

    def fail(*_arguments):
        raise StoreError("the set cannot be read")

    live.add("s", "a = 1")
    with follow(folder, is_started=False) as follower:
        live.store.renew_epoch()
        live.add("t", "a = 1")
        with monkeypatch.context() as patch:
            patch.setattr("tamis.live.follower.open_set", fail)
            for _ in range(2):
                with pytest.raises(StoreError, match="cannot be read"):
                    follower.refresh()
        assert follower.match({"a": 1}) == ["s"]
        assert follower.refresh() == live.change
        assert sorted(follower.match({"a": 1})) == ["s", "t"]


def test_there_is_nothing_to_follow(tmp_path):
    with pytest.raises(tamis.TamisError):
        follow(tmp_path / "nothing")


def test_published_versions_are_opened_by_others(live, tmp_path):
    live.add_many({f"s{n}": f"a = {n % 5}" for n in range(50)})
    live.compact()
    live.add("new", "a = 2")
    live.remove("s2")
    first = live.publish(tmp_path / "store")
    with tamis.open(tmp_path / "store") as index:
        assert sorted(index.match({"a": 2})) == sorted(live.match({"a": 2}))
        assert "s2" not in index
    assert live.publish(tmp_path / "store").number == first.number
    live.remove("new")
    assert live.publish(tmp_path / "store").number == first.number + 1
    with tamis.open(tmp_path / "store") as index:
        assert sorted(index.match({"a": 2})) == sorted(live.match({"a": 2}))


def test_a_version_of_a_live_folder_is_opened_only_by_its_name(live, folder):
    live.add("s", "a = 1")
    live.compact()
    with pytest.raises(tamis.InputError, match="may be older than its last change"):
        open_version(folder)
    assert open_version(folder, 1).version.number == 1


def test_a_live_index_is_not_saved_or_pickled(live, tmp_path):
    import pickle

    with pytest.raises(tamis.InputError, match="publish"):
        live.save(tmp_path / "x")
    with pytest.raises(tamis.InputError, match="pickled"):
        pickle.dumps(live)


# ── merges ──────────────────────────────────────────────────────────────────────────────────


def test_parts_that_make_matching_slow_are_merged(live):
    texts = {f"s{n}": f"a = {n % 7} AND b > {n}" for n in range(1_200)}
    live.add_many({name: texts[name] for name in list(texts)[:600]})
    live.compact()
    for at in range(600, 1_200, 200):
        live.add_many({name: texts[name] for name in list(texts)[at : at + 200]})
        live._committer.run(lambda live_set: replace(live_set, newest=None))
    live_set = live._committer.current
    assert len(live_set.parts) == 4
    assert choose_slow(live_set, [1.0, 0.05, 0.05, 0.05]) == ()
    assert choose_slow(live_set, [1.0, 0.2, 0.2, 0.2]) == live_set.parts
    smaller = replace(
        live_set, parts=(live_set.parts[0], *(p.hide(range(150)) for p in live_set.parts[1:]))
    )
    assert choose_slow(smaller, [1.0, 0.2, 0.2, 0.2]) == smaller.parts[1:]
    assert choose_slow(smaller, [1.0, 0.1, 0.1, 0.15]) == smaller.parts[2:]  # that is enough
    assert choose_slow(smaller, [1.0, 0.4, 0.01, 0.01]) == ()  # that would help little
    for n in range(60):
        live.match({"a": n % 7, "b": n})
    assert len(measure_parts(live.view, live._sample.some(50))) == 4
    before = live.match({"a": 1, "b": 100})
    live._committer.run(
        lambda now: now.swap(
            live_set.parts[1:], live._maintenance._merger.merge(now, live_set.parts[1:], None)
        )
    )
    assert len(live.view.engines) == 2
    assert sorted(live.match({"a": 1, "b": 100})) == sorted(before)


@pytest.mark.parametrize("wrong", [5, None, "{", b"\xff", [], "[1]"])
def test_what_is_no_event_does_not_disturb_maintenance(live, wrong):
    live.add("s", "a = 1")
    for n in range(60):
        live.match({"a": n})
    with pytest.raises(tamis.TamisError):
        live.match(wrong)
    live.add("t", "a = 1")
    live._maintenance._next_measure = 0.0
    step(live)
    assert len(live._sample.some(100)) == 60


# ── threads and processes ───────────────────────────────────────────────────────────────────


def test_merges_in_another_process(folder):
    with LiveIndex.open(folder) as live:
        live.add_many({f"s{n}": f"a = {n % 7} AND b > {n}" for n in range(3_000)})
        for n in range(200):  # before there is anything to merge
            live.match({"a": n % 7, "b": n})
        live.remove_many([f"s{n}" for n in range(0, 3_000, 3)])
        live.compact()
        assert len(live.view.engines) == 1
        assert sorted(live.match({"a": 1, "b": 40})) == ["s1", "s22", "s29", "s8"]
        assert live.view.engines[0].contents.statistics["sample"]["n_events"] > 0
    with LiveIndex.open(folder) as live:
        assert len(live) == 2_000
        assert sorted(live.match({"a": 1, "b": 40})) == ["s1", "s22", "s29", "s8"]


def test_threads_see_what_was_acknowledged(live):
    live.add("base", "n >= 0")
    failures = []

    def work(own: int) -> None:
        for n in range(12):
            name = f"t{own}-{n}"
            live.add(name, f"n = {own * 100 + n}")
            if name not in live.match({"n": own * 100 + n}):
                failures.append(name)
            if n % 3 == 0:
                live.remove(name)
                if name in live.match({"n": own * 100 + n}):
                    failures.append(f"-{name}")

    threads = [threading.Thread(target=work, args=(own,)) for own in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    assert not failures
    assert len(live) == 1 + 6 * 8


def test_a_closed_index_says_so(folder):
    live = LiveIndex.open(folder)
    live.close()
    live.close()
    with pytest.raises(tamis.InputError, match="closed"):
        live.match({"a": 1})
    with pytest.raises(tamis.InputError, match="closed"):
        live.add("s", "a = 1")


# ── opening ─────────────────────────────────────────────────────────────────────────────────


def test_the_working_directory_changes(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with by_hand(), LiveIndex.open("people.live") as live:
        follower = follow("people.live", is_started=False)
        monkeypatch.chdir(tmp_path / "other")
        live.add("a", "x = 1")
        live.store._writer._drop()  # as after a failure: it opens the file again
        live.add("b", "x = 1")
        live.compact()
        assert follower.refresh() == 2
        assert sorted(follower.match({"x": 1})) == ["a", "b"]
        follower.close()
    assert not list((tmp_path / "other").iterdir())
    with LiveIndex.open(tmp_path / "people.live") as live:
        assert sorted(live) == ["a", "b"]


def test_a_forked_process_cannot_change_it(live):
    """It would wait for ever for a thread that only the other process has."""
    live.add("a", "x = 1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if not child:
        try:
            live.add("b", "x = 1")
        except StoreError as error:
            os._exit(3 if "opened in another process" in error.message else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 3
    live.add("b", "x = 1")
    assert sorted(live.match({"x": 1})) == ["a", "b"]


def test_few_changes_are_read_again_without_a_version(folder):
    with by_hand():
        live = LiveIndex.open(folder)
        live.add("s", "a = 1")
        live.close(saves_few=False)
        assert not (folder / "CURRENT").exists()
        live = LiveIndex.open(folder)
        assert live.match({"a": 1}) == ["s"]
        live.add_many({f"s{n}": "a = 1" for n in range(1_000)})
        live.close(saves_few=False)
        assert (folder / "CURRENT").exists()
    with by_hand(), LiveIndex.open(folder) as live:
        assert len(live.match({"a": 1})) == 1_001
    assert len(list(folder.glob("v*"))) == 1  # nothing changed, so nothing was saved


def test_smaller_limits_apply_to_new_subscriptions_only(folder):
    long = "a IN (1, 2, 3)"
    with by_hand(), LiveIndex.open(folder) as live:
        live.add("long", long)
    limits = tamis.Limits(in_list=2)
    with by_hand(), LiveIndex.open(folder, limits=limits) as live:
        with pytest.raises(tamis.LimitError):
            live.add("other", long)
        live.add("short", "a = 2")
        assert sorted(live.match({"a": 2})) == ["long", "short"]


def test_a_saved_index_does_not_become_live(tmp_path):
    tamis.build({"s": "a = 1"}).save(tmp_path / "saved")
    with pytest.raises(tamis.InputError, match="holds a saved index"):
        LiveIndex.open(tmp_path / "saved")
    assert not (tmp_path / "saved" / "subscriptions.sqlite").exists()


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "rules.jsonl").write_text("")
    with pytest.raises(tamis.InputError, match="is a file; a folder for a live index is expected"):
        LiveIndex.open(tmp_path / "rules.jsonl")


def test_what_is_kept_of_the_log_is_a_time(live):
    with pytest.raises(tamis.InputError, match="keep is 30; a timedelta is expected"):
        live.prune(30)


def test_requests_are_applied_in_order(live):
    found = live.apply([Subscribe("s", "a = 1"), Replace("s", "a = 2"), Unsubscribe("t")])
    assert [isinstance(own, Accepted) for own in found] == [True, True, False]
    assert live.match({"a": 2}) == ["s"]
    assert [own.number for own in live.store.history("s")] == [2, 1]
