"""The sweeps run, and draw what they measured."""

from __future__ import annotations

import pytest

from benchmarks import bench_sweeps
from tamis.errors import TamisError


@pytest.mark.slow
def test_all_of_it_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "tiny")
    monkeypatch.setattr(bench_sweeps, "PLOTS", tmp_path / "results" / "sweeps.svg")
    rows = bench_sweeps.run()
    assert len({row["parameter"] for row in rows}) == 6
    assert all(row["µs/event"] > 0 and row["expressions"] == 200 for row in rows)
    assert "<svg" in (tmp_path / "results" / "sweeps.svg").read_text(encoding="utf-8")


def test_unknown_size_is_refused(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "huge")
    with pytest.raises(TamisError, match="tiny, small, full"):
        bench_sweeps.run()
