"""kill -9 of publishers and builders: versions stay whole, and leftovers go."""

from __future__ import annotations

import random
import time

import pytest

import tamis
from tamis.versions import IndexStore, open_version
from tests.versions.faults import kill, start
from tests.versions.test_store import version_of, write
from tests.waiting import wait_until

MODULE = "tests.versions.faults"


@pytest.mark.parametrize(
    "n_kills", [4, pytest.param(30, marks=pytest.mark.soak)], ids=["few", "many"]
)
def test_a_killed_publisher_leaves_whole_versions(tmp_path, seed, n_kills):
    rng = random.Random(seed)
    store = IndexStore(tmp_path / "index")
    store.publish(lambda newest: version_of(write(store, {"x": "a = 1"})))
    reached = 1
    for _ in range(n_kills):
        process = start(MODULE, "publish", tmp_path)
        aim = reached + 3
        wait_until(lambda aim=aim: store.current().number >= aim, "three versions are published")
        time.sleep(rng.random() * 0.05)  # anywhere in the next
        kill(process)
        current = store.current()
        assert open_version(store).open().match({"a": 1}) == ["x"]
        for number in store.numbers():
            store.version(number)  # whole, or this raises
        reached = current.number
    store.publish(lambda newest: newest)
    store.prune()
    assert [path for path in (tmp_path / "index").rglob(".*") if path.is_file()] == []


@pytest.mark.parametrize(
    "n_kills", [4, pytest.param(40, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_killed_builder_leaves_nothing_for_long(tmp_path, seed, n_kills):
    """Half-written parts go when the next part is written."""
    rng = random.Random(seed)
    store = IndexStore(tmp_path / "index")
    parts = tmp_path / "index" / "parts"
    n_left = 0
    for number in range(n_kills):
        process = start(MODULE, "write_parts", tmp_path)
        n_before = len(list(parts.glob("*")))
        while len(list(parts.glob("*"))) < n_before + 2 and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.random() * 0.02)
        kill(process)
        n_left += any(parts.glob(".*"))
        write(store, {"x": f"a = {number}"})
        assert list(parts.glob(".*")) == []
        for part in parts.iterdir():
            assert len(tamis.open(part)) == 1
    assert n_left > 0
