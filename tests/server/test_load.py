"""Publishing with churn and consumers of all kinds: every delivery is as an oracle says."""

from __future__ import annotations

from random import Random

import pytest

from tests.server.load import traffic
from tests.server.load.memory import Sample, expect_flat
from tests.server.load.scene import Scene


def grow(draw: Random, bytes_per_event: float, n_events: int = 100_000) -> list[Sample]:
    """The memory of a server that fills its caches, and then grows; with noise and peaks."""
    found = []
    for number in range(0, n_events, n_events // 1_000):
        caches = 300e6 * min(1.0, 0.8 + number / n_events)
        noise = draw.gauss(0, 3e6) + (80e6 if draw.random() < 0.02 else 0)
        found.append(Sample(number, int(caches + noise + bytes_per_event * number)))
    return found


@pytest.mark.parametrize("bytes_per_event", [0, 100, -100])
def test_memory_that_does_not_leak_is_flat(bytes_per_event, seed):
    expect_flat(grow(Random(seed), bytes_per_event))


@pytest.mark.parametrize("bytes_per_event", [900, 1_200])
def test_a_slow_leak_is_found(bytes_per_event, seed):
    # In the whole run, it grows by less than the bound on that.
    assert 300e6 + 100_000 * bytes_per_event < 1.5 * 240e6 + 64e6
    with pytest.raises(AssertionError):
        expect_flat(grow(Random(seed), bytes_per_event))


def test_a_short_run_has_no_slope():
    expect_flat([Sample(0, 100_000_000), Sample(0, 110_000_000)])
    expect_flat([Sample(0, 100_000_000)])


@pytest.mark.slow
def test_some_seconds_of_traffic(tmp_path, seed):
    with Scene(tmp_path / "server", seed) as scene:
        oracle = traffic.run(scene, 150)
    assert len(oracle.events) > 150


@pytest.mark.soak
def test_minutes_of_traffic(tmp_path, seed):
    with Scene(tmp_path / "server", seed + 1_000, TAMIS_ARCHIVE_SEGMENT_SIZE="1000000") as scene:
        traffic.run(scene, 10_000)


@pytest.mark.soak
def test_traffic_on_postgres(tmp_path, seed, postgres):
    with Scene(tmp_path / "server", seed + 2_000, postgres.new_place()) as scene:
        traffic.run(scene, 3_000)
