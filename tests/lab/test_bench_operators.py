"""The benchmark of schedules runs, counts, and shows the paper's numbers next to ours."""

from __future__ import annotations

import pytest

from benchmarks import bench_operators
from tamis.errors import TamisError
from tamis.lab.liu import SCHEDULES


@pytest.mark.slow
def test_all_of_it_runs(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "tiny")
    rows = bench_operators.run()
    counted = [row for row in rows if "calls/event" in row]
    for at in range(0, len(counted), len(SCHEDULES)):
        calls = {row["schedule"]: row["calls/event"] for row in counted[at : at + len(SCHEDULES)]}
        assert calls["adaptive"] <= calls["sub_order"]
        assert calls["adaptive"] <= calls["sequential"] <= calls["naive"]
    ratios = {row["schedule"]: row["× optimum"] for row in rows if "× optimum" in row}
    assert 1 <= ratios["adaptive"] <= ratios["sub_order"] <= ratios["naive"]


def test_every_published_number_has_a_setting():
    settings = list(bench_operators.settings(bench_operators.SIZES["small"]))
    shown = [numbers for params in settings if (numbers := bench_operators.published(params))]
    # Once for each kind of selectivities.
    assert len(shown) == 2 * len(bench_operators.PUBLISHED)


def test_unknown_size_is_refused(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "huge")
    with pytest.raises(TamisError, match="tiny, small, full"):
        bench_operators.run()
