"""Live indexes whose maintenance is done by the test, step by step."""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

from tamis.live import LiveIndex, maintenance, merging, worker


@contextmanager
def by_hand(fan_in: int = 2, *, has_thread: bool = False, has_process: bool = False):
    """Merges in this process, of few parts, and only when a test asks for them; or in the
    background, if that has its thread, or in the other process.
    """

    def ask(self, job):
        return json.loads(json.dumps(worker.answer(json.loads(json.dumps(job)))))

    def look(self):
        with self._wake:
            while not self._is_closed:
                self._wake.wait()

    with (
        nullcontext() if has_process else patch.object(merging.Merger, "_ask", ask),
        patch.object(merging, "FAN_IN", fan_in),
        patch.object(merging, "LEAST_WORN", 1),
        nullcontext() if has_thread else patch.object(maintenance.Maintenance, "_run", look),
    ):
        yield


def step(live: LiveIndex) -> bool:
    """Let the index do what is due."""
    return live._maintenance.step()


def crash(live: LiveIndex) -> None:
    """Forget the index as a killed process does: nothing is saved, only the locks are released."""
    live._maintenance.close()
    live._committer.close()
    live._store.close()
    live.__dict__.clear()
