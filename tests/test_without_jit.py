"""Kernels mean the same when they are plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "tests/events/test_json_reader.py",
        "tests/events/test_single.py",
        "tests/events/test_values.py",
        "tests/lab/fontoura",
        "tests/lab/liu",
        "tests/operators/test_schedule.py",
        "tests/text/test_finder.py",
    ],
)
def test_without_compiler(path):
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", path],
        cwd=ROOT,
        # Plain Python is a hundred times as slow: no more examples than `make test` draws.
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "TAMIS_EFFORT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert finished.returncode == 0, finished.stdout
