"""What does it cost that an index is live? Against an index that was built at once.

Every figure is of one run: changes per second, the time until a change is seen, matching after 1 %
and 10 % of the set have changed, single matches while all parts are merged, memory, and the start.
Ratios are against the same set built afresh. `TAMIS_BENCH_SIZE` chooses the base: `small` (the
default) has 100,000 subscriptions, `full` a million; `tiny` only shows that all runs.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tamis
from tamis.lab.workloads import InSets, InSetsParams
from tamis.live import LiveIndex
from tamis.subscriptions import Accepted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TITLE = "A live index against one that was built at once"
SIZES: Final = {"tiny": 2_000, "small": 100_000, "full": 1_000_000}
N_EVENTS: Final = 2_048
SIZE: Final = 1_000  # of a group of additions
Row = dict[str, Any]


def run() -> list[Row]:
    """One row per figure."""
    n_base = SIZES[os.environ.get("TAMIS_BENCH_SIZE", "small")]
    workload = InSets(InSetsParams(n_expressions=n_base * 2))
    texts = workload.expressions()
    events = workload.events(N_EVENTS)
    base = {f"s{at}": texts[at] for at in range(n_base)}
    more = ((f"s{at}", texts[at % len(texts)]) for at in count(n_base))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "live"
        rows = _measure_loading(folder, workload.schema, base)
        rows += _measure_start(folder, n_base)
        with LiveIndex.open(folder) as live:
            rows += _measure_adding(live, more, n_base)
            live.compact()
            rows += _measure_churn(live, more, events, n_base)
            rows += _measure_merging(live, events)
    return rows


def _row(what: str, value: float, unit: str, **more: Any) -> Row:
    return {"what": what, "value": round(value, 3), "unit": unit, **more}


def _measure_loading(folder: Path, schema: Any, base: dict[str, str]) -> list[Row]:
    began = time.perf_counter()
    tamis.build(base, schema)
    built = time.perf_counter() - began
    gc.collect()
    began = time.perf_counter()
    with LiveIndex.open(folder, schema=schema) as live:
        _add(live, list(base.items()))
        loaded = time.perf_counter() - began
        live.compact()
    speed = len(base) / loaded
    baseline = len(base) / built
    return [
        _row("load, durable", speed, "subscriptions/s", baseline=baseline, ratio=speed / baseline)
    ]


def _add(live: LiveIndex, rows: list[tuple[str, str]]) -> None:
    for at in range(0, len(rows), SIZE):
        results = live.add_many(rows[at : at + SIZE])
        assert all(isinstance(result, Accepted) for result in results)


def _measure_start(folder: Path, n_base: int) -> list[Row]:
    """From a new process to its first answer, without the time to start Python."""
    program = (
        "import time; began = time.perf_counter()\n"
        "import sys; from tamis.live import LiveIndex\n"
        "live = LiveIndex.open(sys.argv[1])\n"
        "live.match({'a1': 'v1', 'a2': 'v2'})\n"
        "print(time.perf_counter() - began); assert len(live) == int(sys.argv[2]); live.close()"
    )
    command = [sys.executable, "-c", program, str(folder), str(n_base)]
    seconds = [float(subprocess.check_output(command)) for _ in range(3)]
    return [_row("start to the first answer", min(seconds), "s")]


# ── changes ─────────────────────────────────────────────────────────────────────────────────


def _measure_adding(live: LiveIndex, more: Iterator[tuple[str, str]], n_base: int) -> list[Row]:
    rows = list(islice(more, n_base // 2))
    seconds = _time(lambda: _add(live, rows))
    found = [_row("add in thousands, merges included", len(rows) / seconds, "subscriptions/s")]
    for n_threads, n_added in ((1, 300), (16, 3_000)):
        some = list(islice(more, n_added))
        with ThreadPoolExecutor(n_threads) as pool:
            seconds = _time(lambda: list(pool.map(lambda row: live.add(*row), some)))  # noqa: B023
        what = f"add one by one, {n_threads} thread{'s' * (n_threads > 1)}"
        found.append(_row(what, n_added / seconds, "subscriptions/s"))
    return [*found, _measure_visibility(live, more)]


def _measure_visibility(live: LiveIndex, more: Iterator[tuple[str, str]]) -> Row:
    """From the call of `add` until a match that began afterwards has seen it."""
    seconds = []
    for name, _ in islice(more, 300):
        began = time.perf_counter()
        live.add(name, "a0 = 'new'")
        assert name in live.match({"a0": "new"})
        seconds.append(time.perf_counter() - began)
    live.remove_many(live.match({"a0": "new"}))
    return _row("from add to seen, p99", float(np.quantile(seconds, 0.99)) * 1e3, "ms")


def _measure_churn(
    live: LiveIndex, more: Iterator[tuple[str, str]], events: list[Any], n_base: int
) -> list[Row]:
    fresh = _measure_matching(live, events)
    rows, changed = [], 0
    for percent in (1, 10):
        n_changed = n_base * percent // 100 - changed
        changed += n_changed
        _add(live, list(islice(more, n_changed // 2)))
        live.remove_many(list(islice(live, n_changed - n_changed // 2)))
        _settle(live)
        for how, seconds in _measure_matching(live, events).items():
            rows.append(
                _row(
                    f"match {how}, {percent} % changed",
                    seconds * 1e6,
                    "µs",
                    baseline=fresh[how] * 1e6,
                    ratio=seconds / fresh[how],
                    parts=len(live.view.engines),
                )
            )
    return rows


def _settle(live: LiveIndex) -> None:
    """Wait for merges that are due."""
    while live._maintenance.step():
        pass


def _measure_matching(live: LiveIndex, events: list[Any]) -> dict[str, float]:
    """Seconds of CPU per event: single, and in a batch."""
    few = events[:200]

    def single() -> None:
        for event in few:
            live.match(event)

    view = live.snapshot()
    table = view.encode(events)
    return {
        "single": _best(single) / len(few),
        "batch": _best(lambda: view.match_lists(table)) / len(events),
    }


def _measure_merging(live: LiveIndex, events: list[Any]) -> list[Row]:
    """Single matches at rest, and while all parts are merged into one."""
    rest = _latencies(live, events, lambda: False)
    before = _resident()
    peak = [before]
    merge = threading.Thread(target=live.compact)
    merge.start()

    def is_over() -> bool:
        peak[0] = max(peak[0], _resident())
        return not merge.is_alive()

    busy = _latencies(live, events, is_over)
    merge.join()
    baseline, value = (float(np.quantile(own, 0.99)) * 1e6 for own in (rest, busy))
    memory = {"baseline": before / 2**20, "ratio": peak[0] / before}
    return [
        _row(
            "match single, p99 during a merge",
            value,
            "µs",
            baseline=baseline,
            ratio=value / baseline,
        ),
        _row("memory during a merge, peak", peak[0] / 2**20, "MB", **memory),
    ]


def _latencies(live: LiveIndex, events: list[Any], is_over: Callable[[], bool]) -> list[float]:
    found = []
    for at in count():
        began = time.perf_counter()
        live.match(events[at % len(events)])
        found.append(time.perf_counter() - began)
        if at % 100 == 0 and (is_over() or (at >= 2_000 and not is_over.__code__.co_freevars)):
            return found
        time.sleep(0.0005)  # an open load, as of a server
    raise AssertionError


def _resident() -> int:
    """The memory of this process and of its children, in bytes."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(
                line.split(":", 1) for line in status.read_text().splitlines() if ":" in line
            )
        except OSError:
            continue
        pids = (fields["Pid"].strip(), fields["PPid"].strip())
        if str(os.getpid()) in pids:
            total += int(fields.get("RssAnon", "0 kB").split()[0]) * 1024
    return total


def _time(function: Callable[[], Any]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def _best(function: Callable[[], Any]) -> float:
    """The least CPU time of a few runs, after one to warm up."""
    function()
    seconds = []
    for _ in range(3):
        began = time.process_time()
        function()
        seconds.append(time.process_time() - began)
    return min(seconds)
