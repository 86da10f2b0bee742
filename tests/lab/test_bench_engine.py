"""The engine's benchmark runs, and times nothing that answers wrongly."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import bench_engine
from tamis.errors import TamisError


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*missing in every event")  # few events of many attributes
def test_all_of_it_runs(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "tiny")
    rows = bench_engine.run()
    assert {row["workload"] for row in rows} == {"ABE-Gen", "IN sets", "Sigma-like"}
    assert all(row["value"] > 0 for row in rows)


def test_unknown_size_is_refused(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "huge")
    with pytest.raises(TamisError, match="tiny, small, full"):
        bench_engine.run()


class Fixed:
    """An engine that always finds the same."""

    def __init__(self, *ids):
        self.ids = list(ids)

    def match(self, event):
        return self.ids

    def match_batch(self, events):
        rows = [row for row in range(len(events)) for _ in self.ids]
        return pa.table({"event_row": rows, "subscription_id": self.ids * len(events)})


class Scan:
    """A baseline that always finds the first and the third."""

    def match(self, event):
        return np.array([0, 2])


def test_answers_are_compared():
    events = [{"a": 1}, {"a": 2}]
    batch = pa.table({"a": [1, 2, 3]})

    def case(*ids):
        return bench_engine.Case(bench_engine.Table("", 3), Fixed(*ids), [], events, batch)

    bench_engine.compare_answers(case("s0", "s2"), Scan())
    with pytest.raises(TamisError, match="found 2 matches, and Scan 4"):
        bench_engine.compare_answers(case("s0"), Scan())
