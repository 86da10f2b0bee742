"""Killed readers: every item that a feed has shown is published once."""

from __future__ import annotations

import pytest

from tests.effort import examples
from tests.scripts import run_script


def test_killed_readers_lose_and_double_nothing(tmp_path, seed):
    out = run_script("-m", "tests.feeds.victim", str(tmp_path), "12", str(seed))
    _, _, n_killed, _, n_items, _ = out.split()
    assert int(n_killed) > 3
    assert int(n_items) > 3


@pytest.mark.slow
def test_many_killed_readers_lose_and_double_nothing(tmp_path, seed):
    n_runs = str(examples(20))
    assert run_script("-m", "tests.feeds.victim", str(tmp_path), n_runs, str(seed + 1000))
