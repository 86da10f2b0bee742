"""kill -9 at any moment and before any write: nothing acknowledged is lost or doubled."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import examples
from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[2]


def run_victims(mode: str, folder: Path, n_runs: int, seed: int) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "tests.archive.victim", mode, folder, str(n_runs), str(seed)],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
        cwd=ROOT,
    )
    assert finished.returncode == 0, finished.stderr
    assert re.match(r"\d+ runs", finished.stdout)


def test_killed_before_a_write(folder, seed):
    run_victims("writes", folder, 20, seed)


@pytest.mark.slow
def test_killed_before_hundreds_of_writes(folder, seed):
    run_victims("writes", folder, examples(40), seed + 1000)


def test_killed_at_a_moment(folder, seed):
    run_victims("moments", folder, 6, seed)


@pytest.mark.slow
def test_killed_at_hundreds_of_moments(folder, seed):
    run_victims("moments", folder, examples(20), seed + 1000)
