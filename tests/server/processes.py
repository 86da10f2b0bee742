"""A real server in a child process."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.shell import environment
from tests.waiting import HANG_SECONDS


class ServerProcess:
    """`tamis serve` on a free port of 127.0.0.1."""

    def __init__(self, folder: Path, *options: str, **variables: str) -> None:
        self.folder = folder
        self.log = folder.with_name(f"{folder.name}.log")
        command = [sys.executable, "-u", "-m", "tamis", "serve", str(folder), "--port", "0"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *options],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(**variables),
                text=True,
            )
        self.url = self._read_address()

    def _read_address(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.search(r"(https?://\S+)$", line.strip()):
                return found[1]
        raise AssertionError(f"the server did not start: {self.log.read_text()}")

    def stop(self, how: int = signal.SIGTERM) -> int:
        """Send a signal, and wait for the end; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.stdout.close()
        return self.process.wait(timeout=HANG_SECONDS)


@contextmanager
def serving(folder: Path, *options: str, **variables: str) -> Iterator[ServerProcess]:
    """A running server, which is stopped at the end."""
    server = ServerProcess(folder, *options, **variables)
    try:
        yield server
    finally:
        assert server.stop() == 0, server.log.read_text()
