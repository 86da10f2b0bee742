"""What becomes of parts: they learn from events, are freed, and removed while others read them."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from tamis.index.contents import Contents
from tamis.live import LiveIndex, checkpoints, follow, sampling
from tamis.match.index import Index
from tamis.match.learn import count_leaves
from tests.live.places import by_hand
from tests.live.victim import RETENTION


@pytest.fixture
def live(tmp_path):
    with by_hand(), LiveIndex.open(tmp_path / "live") as index:
        yield index


# ── learning ────────────────────────────────────────────────────────────────────────────────


def contents_of(live: LiveIndex) -> Contents:
    """The arrays of the only part."""
    (engine,) = live.view.engines
    return engine.contents


def access_attributes(contents: Contents) -> set[str]:
    """The attributes among `a` and `b` whose test triggers the AND."""
    (node,) = np.flatnonzero(contents.nodes.operators == 0)
    starts, parents = contents.triggers.starts, contents.triggers.parents
    found = set()
    for name in "ab":
        sample = Index(contents, registry=None).encode([{name: 9}])
        (leaf,) = np.flatnonzero(count_leaves(contents, sample))
        if node in parents[starts[leaf] : starts[leaf + 1]]:
            found.add(name)
    return found


def test_a_merge_chooses_access_children_by_recent_events(live):
    """Those of the attribute whose test is seldom true, and others when the events change."""
    texts = {"both": "a > 5 AND b > 5", "a": "a > 5", "b": "b > 5"}
    with patch.object(sampling, "EVERY", 1):  # each event replaces an older one
        live.add_many(texts)
        for rare, often in ("ab", "ba", "ab"):
            for n in range(sampling.SIZE):
                live.match({often: 9, rare: 9 if n % 100 == 0 else 1})
            live.replace("a", tags=[rare])  # so that there is something to merge
            live.compact()
            assert access_attributes(contents_of(live)) == {rare}
            assert sorted(live.match({"a": 9, "b": 9})) == ["a", "b", "both"]
            assert live.match({rare: 9, often: 1}) == [rare]


# ── memory and files ────────────────────────────────────────────────────────────────────────


def test_old_parts_are_freed_with_their_last_snapshot(live):
    live.add_many({f"s{n}": f"x = {n % 5}" for n in range(50)})
    live.compact()
    stored, first = weakref.ref(contents_of(live)), live.snapshot()
    live.replace("s1", "x = 2")
    second = live.snapshot()
    newest = weakref.ref(second.view.engines[-1].contents)
    live.compact()
    gc.collect()
    assert len(first.match({"x": 1})) == 10
    assert len(second.match({"x": 1})) == 9
    del first
    gc.collect()
    assert stored() is not None
    assert newest() is not None
    assert len(second.match({"x": 2})) == 11
    del second
    gc.collect()
    assert stored() is None
    assert newest() is None
    assert len(live.match({"x": 2})) == 11


def make_old(folder: Path) -> None:
    for path in (folder / "parts").rglob("*"):
        os.utime(path, (0, 0))


def test_readers_answer_after_the_files_of_their_parts_are_removed(tmp_path):
    folder = tmp_path / "live"
    with by_hand(), patch.object(checkpoints, "RETENTION", RETENTION):
        with LiveIndex.open(folder) as live:
            live.add_many({f"s{n}": f"x = {n % 5}" for n in range(50)})
        live = LiveIndex.open(folder)  # its part is read from files
        follower = follow(folder, is_started=False)
        snapshot = live.snapshot()
        own = {path.name for path in (folder / "parts").iterdir()}
        for n in range(4):
            live.replace(f"s{n}", "x = 7")
            live.compact()
            make_old(folder)
        assert own.isdisjoint(path.name for path in (folder / "parts").iterdir())
        for reader in (snapshot, follower):
            assert len(reader.match({"x": 1})) == 10
            assert reader.match_lists([{"x": 1}, {"x": 7}]).to_pylist()[1] == []
            assert reader.explain("s1", {"x": 1}).matches
        assert follower.refresh() == live.change
        assert sorted(follower.match({"x": 7})) == ["s0", "s1", "s2", "s3"]
        assert len(follower.match({"x": 1})) == 9
        follower.close()
        live.close()
