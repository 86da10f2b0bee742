"""Run commands as a test does: inside this process, or as a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tamis.cli import main
from tests.waiting import HANG_SECONDS

SOURCE = Path(__file__).parents[2] / "src"


def run(*arguments: str | Path, stdin: bytes | str | None = None) -> Result:
    """The command's result; anything but a clean exit fails the test."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    return result


def environment(**variables: str) -> dict[str, str]:
    """The environment of a real process that finds this source tree."""
    paths = [str(SOURCE), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **variables}


def run_process(
    *arguments: str | Path, stdin: bytes = b"", **variables: str
) -> subprocess.CompletedProcess[bytes]:
    """The same in a separate process."""
    done = subprocess.run(
        [sys.executable, "-m", "tamis", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=environment(**variables),
        timeout=HANG_SECONDS,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    return done


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]
