"""The benchmark of live indexes runs, and judges every figure that has a target."""

from __future__ import annotations

import pytest

from benchmarks import bench_live
from benchmarks.live_churn import Churner
from tamis.errors import TamisError
from tamis.live import LiveIndex


@pytest.mark.slow
def test_all_of_it_runs(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "tiny")
    rows = {row["what"]: row for row in bench_live.run()}
    assert bench_live.TARGETS.keys() <= rows.keys()
    for what, target in bench_live.TARGETS.items():
        row = rows[what]
        assert row["value"] > 0
        assert row["met"] is None  # targets are for another size
        assert f"{target.limit:,.10g}" in row["target"]
        if target.key == "ratio":
            assert row["ratio"] == pytest.approx(row["value"] / row["baseline"], rel=0.01)
    assert rows["match single, eight parts"]["parts"] == 8


def test_the_changes_are_as_many_as_the_rows_say(tmp_path):
    names = [f"s{at}" for at in range(50)]
    more = ((f"new{at}", f"b = {at}") for at in range(1_000))
    with LiveIndex.open(tmp_path / "live") as live:
        live.add_many(dict.fromkeys(names, "a = 1"))
        Churner(live, names, more).change_up_to(30)
        assert live.change == 50 + 30
        kinds = [str(change.kind) for change in live.store.changes(after=50)]
        assert set(kinds) == {"subscribe", "replace", "unsubscribe"}
        left = set(live)
    assert left != set(names)
    assert len(left) == 50 + kinds.count("subscribe") - kinds.count("unsubscribe")


def test_unknown_size_is_refused(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "huge")
    with pytest.raises(TamisError, match="tiny, small, full"):
        next(bench_live.run())
