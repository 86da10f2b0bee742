"""Closes segments: small ones in this process, others in another one.

The work for large ones would hold up other threads: much of it is done by the interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from threading import Lock
from typing import TYPE_CHECKING, Final

from tamis.archive.closed_files import close_journal
from tamis.archive.folder import SegmentName
from tamis.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

SMALL: Final = 1 << 20  # bytes of a journal


class Converter:
    """Writes the files of closed segments, one segment at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: subprocess.Popen[str] | None = None
        self._starting = Lock()
        self._is_closed = False

    def convert(self, serial: int, end_event: int, n_bytes: int) -> SegmentName:
        """Write the files of a segment; raises a `StoreError` or OSError if they are not there."""
        if n_bytes <= SMALL:
            return close_journal(self._root, serial, end_event, lambda: not self._is_closed)
        job = json.dumps([str(self._root), serial, end_event, os.getpid()])
        try:
            process = self._start()
            answer, _ = process.communicate(f"{job}\n")
        except (OSError, ValueError) as error:
            raise StoreError(f"the process that closes segments failed: {error}") from error
        finally:
            self._process = None
        if not answer.endswith("\n"):
            raise StoreError(f"the process that closes segment {serial} has ended")
        found = json.loads(answer)
        if "error" in found:
            raise StoreError(found["error"])
        return SegmentName(*found["name"])

    def close(self) -> None:
        """End the process, if it runs; nothing is lost."""
        with self._starting:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()

    def _start(self) -> subprocess.Popen[str]:
        with self._starting:
            if self._is_closed:
                raise OSError("the archive is closed")
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tamis.archive.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                # The same modules as in this process, wherever they were found.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            return self._process
