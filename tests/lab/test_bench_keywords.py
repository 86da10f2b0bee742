"""The keyword benchmark runs, and times nothing that answers wrongly."""

from __future__ import annotations

import pytest

from benchmarks import bench_keywords
from tamis.errors import TamisError


@pytest.mark.slow
def test_all_of_it_runs(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "tiny")
    rows = bench_keywords.run()
    ways = [row["way"] for row in rows]
    assert ways[0] == "paper: primitive"
    assert {"match_batch", "3 × the queries: match_batch"} <= set(ways)
    assert all(row["µs/document"] > 0 for row in rows)


def test_unknown_size_is_refused(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "huge")
    with pytest.raises(TamisError, match="tiny, small, full"):
        bench_keywords.run()


def test_a_wrong_answer_is_not_timed():
    size = bench_keywords.SIZES["tiny"]
    workload = bench_keywords.Keywords(bench_keywords.KeywordParams(size.n_queries))
    bench = bench_keywords.Bench(workload, size)
    bench.n_pairs = 1
    with pytest.raises(TamisError, match="matches, and not 1"):
        bench.time_paper(bench_keywords.IrmakOptions())
