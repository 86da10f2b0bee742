"""Tests again with every index of an array checked: a wrong one is memory overwritten."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.waiting import HANG_SECONDS

if TYPE_CHECKING:
    from pathlib import Path


def run_bounds_checked(tests: str, cache: Path) -> None:
    """Run the quick tests of a file in a process whose kernels check their indexes."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", tests],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
        env=os.environ
        | {
            "NUMBA_BOUNDSCHECK": "1",
            "TAMIS_EFFORT": "1",
            "NUMBA_CACHE_DIR": str(cache),  # not to be met by code that is not checked
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
    )
    assert done.returncode == 0, done.stdout[-5000:]
