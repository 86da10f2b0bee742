"""What the benchmark compares gives the same pairs, and the whole of it runs."""

from __future__ import annotations

import pytest

import tamis
from benchmarks.baselines.spark_rules import WAYS, by_tamis, draw_events, draw_rules
from tests.spark.benches import run_tiny

N_RULES = 20


def test_every_alternative_finds_the_same_pairs(spark, tmp_path):
    rules = draw_rules(N_RULES)
    tamis.build({str(n): text for n, text in enumerate(rules.texts())}).save(tmp_path / "index")
    events = spark.createDataFrame(draw_events(3000)).persist()
    expected = by_tamis(events, str(tmp_path / "index"))
    assert expected.n_pairs > 0
    for name, way in WAYS.items():
        assert way(events, rules) == expected, name
    events.unpersist()


@pytest.mark.slow
def test_the_benchmark_runs(tmp_path):
    shown = run_tiny("bench_spark", tmp_path)
    assert "not measured" not in shown
    assert "breaks" not in shown
