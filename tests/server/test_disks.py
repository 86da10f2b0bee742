"""A full disk, a read-only one, damaged files: a clear error, and nothing is lost."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[2]
OWN_MOUNTS = ["unshare", "--map-root-user", "--mount"]


def has_own_mounts() -> bool:
    """Whether a process may mount a disk that no other sees."""
    if shutil.which(OWN_MOUNTS[0]) is None:
        return False
    script = ["sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"]
    return not subprocess.run([*OWN_MOUNTS, *script], check=False, capture_output=True).returncode


@pytest.mark.slow
def test_a_full_and_a_read_only_disk(tmp_path, seed):
    if not has_own_mounts():
        pytest.skip("no disk can be mounted here")
    command = [sys.executable, "-m", "tests.server.load.small_disk", str(tmp_path), str(seed)]
    done = subprocess.run(
        [*OWN_MOUNTS, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "full and read-only\n"
