"""Scripts in processes of their own, which may fork others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[1]


def run_script(*arguments: object) -> str:
    """Run Python with these arguments, which must succeed; returns its output.

    What it has forked ends with it. If it fails, its children live on: with pipes for its output,
    the test would wait for them.
    """
    with TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdout=output,
            stderr=errors,
            cwd=ROOT,
            start_new_session=True,
        )
        try:
            status = process.wait(HANG_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for file in (output, errors):
            file.seek(0)
        assert status == 0, errors.read()
        return output.read()
