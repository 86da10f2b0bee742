"""Programs that are killed: each is run as a process by `test_faults`, and can be run again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tamis.index.build import build_contents
from tamis.versions import IndexStore, Retention
from tamis.versions.manifest import BASE
from tamis.versions.part_files import write_part
from tests.cli.shell import SOURCE

ROOT = Path(__file__).parents[2]


def start(module: str, program: str, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The program of a module as a process in its own group."""
    paths = os.pathsep.join([str(SOURCE), str(ROOT)])
    with (folder / f"{program}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, program, str(folder), *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill all that is left of the group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def publish(folder: Path) -> None:
    """Publish version after version until killed."""
    store = IndexStore(folder / "index")
    while True:
        store.publish(lambda newest: replace(newest, parts=newest.parts[:1]))
        store.prune(Retention(versions=5))


def write_parts(folder: Path) -> None:
    """Write part after part until killed."""
    store = IndexStore(folder / "index")
    contents = build_contents({"x": "a = 1"}).contents
    while True:
        write_part(store.storage, contents, "d" * 64, BASE, [])


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
