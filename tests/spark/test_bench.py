"""What the benchmark compares gives the same pairs, and the whole of it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tamis
from benchmarks.baselines.spark_rules import WAYS, by_tamis, draw_events, draw_rules
from tests.cli.shell import SOURCE

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
    code = "from benchmarks import bench_spark; [print(row) for row in bench_spark.run()]"
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={
            **os.environ,
            "TAMIS_BENCH_SIZE": "tiny",
            "PYTHONPATH": os.pathsep.join([str(SOURCE), root]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "not measured" not in done.stdout
    assert "breaks" not in done.stdout
