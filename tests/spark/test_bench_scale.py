"""The benchmark of large indexes runs, and checks its answers."""

from __future__ import annotations

import pytest

from benchmarks import bench_spark_scale
from tamis.errors import TamisError
from tests.spark.benches import run_tiny


@pytest.mark.slow
def test_all_of_it_runs(tmp_path):
    shown = run_tiny("bench_spark_scale", tmp_path)
    assert [line.split(",")[0] for line in shown.splitlines()] == [
        "{'measure': 'build",
        "{'measure': 'match",
        "{'measure': 'count by event",
    ]


def test_unknown_size_is_refused(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "huge")
    with pytest.raises(TamisError, match="tiny, small, full"):
        bench_spark_scale.run()
