"""The benchmark of searches on Spark compares what it finds with one process, and runs."""

from __future__ import annotations

import pytest

from benchmarks import bench_spark_search as bench
from tamis.errors import TamisError
from tests.spark.benches import run_tiny

needs_data = pytest.mark.skipif(not bench.DATA.is_dir(), reason="the documents are not here")


@pytest.mark.slow
@needs_data
def test_the_benchmark_runs(tmp_path):
    shown = run_tiny("bench_spark_search", tmp_path).splitlines()
    assert len(shown) == len(bench.SIZES["tiny"].n_searches)
    for line, n_searches in zip(shown, bench.SIZES["tiny"].n_searches, strict=True):
        assert f"'searches': {n_searches}, 'documents': 500" in line
        assert "'matches': 0" not in line


def test_unknown_size_is_refused(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "huge")
    with pytest.raises(TamisError, match="tiny, small, full"):
        bench.run()
