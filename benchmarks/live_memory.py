"""The memory of a live index while a tenth of it changes and all of it is merged.

`python -m benchmarks.live_memory FOLDER N` opens the live index of N subscriptions in a folder, and
prints the memory of the process and its children at first, and at the peak, as JSON. In a process
of its own: the workload of the benchmark would count otherwise.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Final

from benchmarks.live_churn import Churner
from tamis.lab.workloads import InSets, InSetsParams
from tamis.live import LiveIndex

EVERY: Final = 0.05  # seconds between two looks


class Watch:
    """Notes the highest memory of this process and its children."""

    def __init__(self) -> None:
        self.peak = resident()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._is_over.wait(EVERY):
            self.peak = max(self.peak, resident())

    def close(self) -> None:
        """Stop looking."""
        self._is_over.set()
        self._thread.join()


def resident() -> int:
    """The memory of this process and of its children in bytes; what they share counts once."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "status").read_text()
            pids = [line.split()[1] for line in status.splitlines() if line[:4] in ("Pid:", "PPid")]
            if str(os.getpid()) in pids:
                rollup = (folder / "smaps_rollup").read_text()
                sizes = [line.split()[1] for line in rollup.splitlines() if line[:4] == "Pss:"]
                total += sum(map(int, sizes)) * 1024
        except OSError:
            continue  # it has ended
    return total


def churn(live: LiveIndex, n_base: int) -> None:
    """Change a tenth of the base, and merge everything."""
    n_changed = n_base // 10
    texts = InSets(InSetsParams(n_expressions=n_changed, seed=2)).expressions()
    new = ((f"new{at}", text) for at, text in enumerate(texts))
    Churner(live, [f"s{at}" for at in range(n_base)], new).change_up_to(n_changed)
    live.compact()


def main(folder: str, n_base: int) -> None:
    """Print what was measured."""
    workload = InSets(InSetsParams(n_expressions=1_000))
    events = workload.events(1_000)
    with LiveIndex.open(folder) as live:
        live.match_lists(events)
        for event in events[:200]:
            live.match(event)
        watch = Watch()
        fresh = watch.peak
        churn(live, n_base)
        live.match_lists(events)
        watch.close()
    print(json.dumps({"fresh": fresh, "peak": watch.peak}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
