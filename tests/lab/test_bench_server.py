"""The benchmark of the match server judges figures at the sizes that targets are for."""

from __future__ import annotations

import pytest

from benchmarks import bench_server


@pytest.mark.parametrize(
    ("size", "what", "value", "met"),
    [
        ("full", "streams held", 10_000, True),
        ("full", "streams held", 9_999, False),
        ("small", "streams held", 2_000, None),
        ("full", "start to ready", 3.5, False),
        ("small", "start to ready", 3.5, None),
        ("small", "publish one event at half load, p99", 26, False),
        ("tiny", "publish one event at half load, p99", 26, None),
    ],
)
def test_a_target_is_judged_at_its_sizes(monkeypatch, size, what, value, met):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", size)
    row = bench_server._row(what, value, "unit")
    assert row["met"] is met


@pytest.mark.parametrize(("each", "met"), [(100.0, True), (99.5, True), (80.0, False)])
def test_the_changes_of_the_load_must_have_happened(monkeypatch, each, met):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "small")
    assert bench_server._row("changes meanwhile", 2 * each, "changes/s", each=each)["met"] is met
