"""Benchmarks on Spark, each in a separate process, at the smallest size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.shell import SOURCE
from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[2]


def run_tiny(name: str, folder: Path) -> str:
    """The rows of a benchmark, a line each."""
    code = f"from benchmarks import {name} as bench; [print(row) for row in bench.run()]"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={
            **os.environ,
            "TAMIS_BENCH_SIZE": "tiny",
            "PYTHONPATH": os.pathsep.join([str(SOURCE), str(ROOT)]),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
