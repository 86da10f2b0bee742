"""Killed servers: nothing acknowledged is lost."""

from __future__ import annotations

import pytest

from tests.effort import examples
from tests.scripts import run_script


def test_killed_servers_lose_nothing(place, seed):
    out = run_script("-m", "tests.broker.victim", place, "10", str(seed))
    assert out.startswith("10 runs")
    assert int(out.split()[2]) > 0


@pytest.mark.slow
def test_many_killed_servers_lose_nothing(place, seed):
    n_runs = str(examples(30))
    assert run_script("-m", "tests.broker.victim", place, n_runs, str(seed + 1000))
