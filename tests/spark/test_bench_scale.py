"""The benchmark of large indexes runs, and checks its answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import bench_spark_scale
from tamis.errors import TamisError
from tests.cli.shell import SOURCE


@pytest.mark.slow
def test_all_of_it_runs(tmp_path):
    code = "from benchmarks import bench_spark_scale as b; [print(row) for row in b.run()]"
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
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == [
        "{'measure': 'build",
        "{'measure': 'match",
        "{'measure': 'count by event",
    ]


def test_unknown_size_is_refused(monkeypatch):
    monkeypatch.setenv("TAMIS_BENCH_SIZE", "huge")
    with pytest.raises(TamisError, match="tiny, small, full"):
        bench_spark_scale.run()
