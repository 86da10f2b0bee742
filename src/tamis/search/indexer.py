"""Builds the indexes that searches want, in the background.

A thread looks for what is missing; small segments are indexed in this process, others in another
one, since the work would hold up other threads.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final

from tamis.errors import StoreError, TamisError

if TYPE_CHECKING:
    from tamis.archive import Archive
    from tamis.search.indexes import Job, SearchIndexes

INTERVAL: Final = 10.0  # seconds between two looks
SMALL: Final = 500  # events
_log = logging.getLogger(__name__)


class Indexer:
    """One thread, and at most one process. Only the writer of an archive has one."""

    def __init__(self, archive: Archive, indexes: SearchIndexes) -> None:
        self._archive = archive
        self._indexes = indexes
        self._closing = Event()
        self._starting = Lock()
        self._process: subprocess.Popen[str] | None = None
        self.error: str | None = None  # of the last attempt
        self._thread = Thread(target=self._run, name="tamis-search", daemon=True)

    def start(self) -> None:
        """Look from time to time."""
        self._thread.start()

    def close(self) -> None:
        """End the thread and the process; what is not finished is built later."""
        self._closing.set()
        with self._starting:
            if self._process is not None:
                self._process.kill()
        if self._thread.is_alive():
            self._thread.join()

    def work(self) -> None:
        """Build what is missing now, and remove what nobody needs."""
        for job in self._indexes.plan():
            if self._closing.is_set():
                return
            self._indexes.prepare(job)
            if job.segment.last_event - job.segment.first_event < SMALL:
                job.run(self._archive, self._indexes.root)
            else:
                self._run_apart(job)
        self._indexes.tidy()

    def _run(self) -> None:
        while not self._closing.wait(INTERVAL):
            error = None
            try:
                self.work()
            except (OSError, ValueError, TamisError) as raised:  # the thread must go on
                error = str(raised)
                if error != self.error and not self._closing.is_set():
                    _log.warning("events are not indexed: %s; it is tried again", error)
            self.error = error

    def _run_apart(self, job: Job) -> None:
        line = json.dumps([str(self._archive.folder), list(job.segment), job.sources.spell()])
        try:
            answer, _ = self._start().communicate(f"{line}\n")
        finally:
            self._process = None
        if not answer.endswith("\n"):
            raise StoreError(f"the process that indexes segment {job.segment.serial} has ended")
        if error := json.loads(answer).get("error"):
            raise StoreError(error)

    def _start(self) -> subprocess.Popen[str]:
        with self._starting:
            if self._closing.is_set():
                raise StoreError("the archive is closed")
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tamis.search.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                # The same modules as in this process, wherever they were found.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            return self._process
