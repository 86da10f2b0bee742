"""kill -9 at any moment and before any write: nothing acknowledged is lost or doubled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.effort import examples
from tests.scripts import run_script


def run_victims(mode: str, folder: Path, n_runs: int, seed: int) -> None:
    out = run_script("-m", "tests.archive.victim", mode, folder, n_runs, seed)
    assert re.match(r"\d+ runs", out)


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
