"""What does it cost that an index is live? Against an index that was built at once.

Every figure is of one run: changes per second, the time until a change is seen, matching after 1 %
and 10 % of the set have changed, eight parts against one, single matches while all parts are
merged, memory, and the start. Ratios are against the base as it was loaded; where the first match
after a change counts too, 99th percentiles are compared. The last rows are against the A-Tree of
the lab on another set. `TAMIS_BENCH_SIZE` chooses the base: `small` (the default) has 100,000
subscriptions, `full` a million; `tiny` only shows that all runs. Targets are
for `full`, and judged there only.
"""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count, cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tamis
from benchmarks.live_against_atree import compare, seconds
from benchmarks.live_churn import Churner, Times, measure_in_turn, measure_while_changing, settle
from benchmarks.targets import Target, at_size, chosen_size, make_row
from tamis.errors import TamisError
from tamis.lab.workloads import InSets, InSetsParams
from tamis.live import LiveIndex
from tamis.match.index import Index
from tamis.subscriptions import Accepted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.targets import Row

TITLE = "A live index against one that was built at once; targets are for TAMIS_BENCH_SIZE=full"
SIZES: Final = {"tiny": 2_000, "small": 100_000, "full": 1_000_000}
SIZES_OF_A_TREE: Final = {"tiny": 500, "small": 20_000, "full": 100_000}
N_EVENTS: Final = 2_048
SIZE: Final = 1_000  # of a group of additions
N_AT_REST: Final = 2_000  # single matches before a merge
N_LOAD: Final = 1_000  # subscriptions that come and go while others are added
LOAD_PAUSE: Final = 0.002  # seconds between two calls of a thread

_TARGETS: Final = {
    "load, durable": Target(15_000, is_least=True),
    "start to the first answer": Target(2.0),
    "add in thousands, merges included": Target(15_000, is_least=True),
    "add one by one, 1 thread": Target(150, is_least=True),
    "add one by one, 16 threads": Target(1_500, is_least=True),
    "from add to seen, p99": Target(50),
    "from add to seen, p99, under load": Target(50),
    "match single, 1 % changed": Target(1.3, "ratio"),
    "match batch, 1 % changed": Target(1.3, "ratio"),
    "match single, 10 % changed": Target(1.6, "ratio"),
    "match batch, 10 % changed": Target(1.6, "ratio"),
    **{
        f"match {how}, {percent} % changed, p99 with changes": Target(limit, "ratio")
        for percent, limit in ((1, 1.3), (10, 1.6))
        for how in ("single", "batch")
    },
    "match single, eight parts": Target(1.4, "ratio"),
    "match batch, eight parts": Target(1.4, "ratio"),
    "match single, p99 during a merge": Target(3.0, "ratio"),
    "memory with 10 % churn and merges, peak": Target(2.5, "ratio"),
}
TARGETS: Final = at_size("full", _TARGETS)


def run() -> Iterator[Row]:
    """One row per figure."""
    size = chosen_size()
    if size not in SIZES:
        raise TamisError(f"TAMIS_BENCH_SIZE is {size!r}; allowed: {', '.join(SIZES)}")
    n_base = SIZES[size]
    workload = InSets(InSetsParams(n_expressions=n_base * 2))
    texts = workload.expressions()
    events = workload.events(N_EVENTS)
    base = {f"s{at}": texts[at] for at in range(n_base)}
    more = ((f"s{at}", texts[at % len(texts)]) for at in count(n_base))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "live"
        yield from _measure_loading(folder, workload.schema, base)
        yield from _measure_start(folder, n_base)
        yield from _measure_memory(folder, n_base)
        with LiveIndex.open(folder) as live:
            yield from _measure_churn(live, list(base), more, events)
            yield from _measure_merging(live, events)
            yield from _measure_adding(live, more, events, n_base)
    yield from _measure_parts(workload.schema, base, events)
    yield from compare(SIZES_OF_A_TREE[size])


_row = partial(make_row, TARGETS)


def _measure_loading(folder: Path, schema: Any, base: dict[str, str]) -> list[Row]:
    tamis.build(dict(islice(base.items(), 1_000)), schema)  # compiles
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
    found = [float(subprocess.check_output(command)) for _ in range(3)]
    return [_row("start to the first answer", min(found), "s")]


def _measure_memory(folder: Path, n_base: int) -> list[Row]:
    """The peak while a tenth of a copy of the set changes and all of it is merged."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    command = [sys.executable, "-m", "benchmarks.live_memory", str(copy), str(n_base)]
    found = json.loads(subprocess.check_output(command))
    shutil.rmtree(copy)
    fresh, peak = found["fresh"], found["peak"]
    what = "memory with 10 % churn and merges, peak"
    return [_row(what, peak / 1e6, "MB", baseline=fresh / 1e6, ratio=peak / fresh)]


# ── changes ─────────────────────────────────────────────────────────────────────────────────


def _measure_adding(
    live: LiveIndex, more: Iterator[tuple[str, str]], events: list[Any], n_base: int
) -> list[Row]:
    rows = list(islice(more, n_base // 2))

    def add_and_merge() -> None:
        _add(live, rows)
        settle(live)

    spent = seconds(add_and_merge)
    found = [_row("add in thousands, merges included", len(rows) / spent, "subscriptions/s")]
    for n_threads, n_added in ((1, 300), (16, 3_000)):
        some = list(islice(more, n_added))
        with ThreadPoolExecutor(n_threads) as pool:
            spent = seconds(lambda: list(pool.map(lambda row: live.add(*row), some)))  # noqa: B023
        what = f"add one by one, {n_threads} thread{'s' * (n_threads > 1)}"
        found.append(_row(what, n_added / spent, "subscriptions/s"))
    what = "from add to seen, p99"
    found.append(_measure_visibility(live, more, what))
    with _load(live, more, events):
        found.append(_measure_visibility(live, more, f"{what}, under load"))
    return found


@contextmanager
def _load(live: LiveIndex, more: Iterator[tuple[str, str]], events: list[Any]) -> Iterator[None]:
    """One thread that matches, and one that adds and removes, all the time."""
    some = list(islice(more, N_LOAD))
    is_over = threading.Event()

    def match() -> None:
        for event in cycle(events):
            live.match(event)
            if is_over.wait(LOAD_PAUSE):
                break

    def change() -> None:
        for name, text in cycle(some):
            live.add(name, text)
            live.remove(name)
            if is_over.wait(LOAD_PAUSE):
                break

    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(match), pool.submit(change)]
        try:
            yield
        finally:
            is_over.set()
        for task in tasks:
            task.result()


def _measure_visibility(live: LiveIndex, more: Iterator[tuple[str, str]], what: str) -> Row:
    """From the call of `add` until a match that began afterwards has seen it."""
    spent = []
    for name, _ in islice(more, 300):
        began = time.perf_counter()
        live.add(name, "a0 = 'new'")
        assert name in live.match({"a0": "new"})
        spent.append(time.perf_counter() - began)
    live.remove_many(live.match({"a0": "new"}))
    return _row(what, float(np.quantile(spent, 0.99)) * 1e3, "ms")


def _measure_churn(
    live: LiveIndex, names: list[str], more: Iterator[tuple[str, str]], events: list[Any]
) -> list[Row]:
    """The base is one part now."""
    fresh = live.snapshot()
    churner = Churner(live, names, more)
    rows = []
    for percent in (1, 10):
        churner.change_up_to(len(names) * percent // 100)
        settle(live)
        rows += _compare(f"{percent} % changed", live, *measure_in_turn(fresh, live, events))
        while_changing = measure_while_changing(fresh, live, churner, events)
        rows += _compare(f"{percent} % changed, p99 with changes", live, *while_changing)
    return rows


def _compare(when: str, index: Index, fresh: Times, now: Times) -> list[Row]:
    return [
        _row(
            f"match {how}, {when}",
            spent * 1e6,
            "µs",
            baseline=before * 1e6,
            ratio=spent / before,
            parts=len(index.view.engines),
        )
        for how, spent, before in zip(Times._fields, now, fresh, strict=True)
    ]


def _measure_parts(schema: Any, base: dict[str, str], events: list[Any]) -> list[Row]:
    """The same subscriptions in eight parts of one size."""
    own = list(base.items())
    one = tamis.build(base, schema)
    eight = Index(*(tamis.build(dict(own[at::8]), schema).contents for at in range(8)))
    return _compare("eight parts", eight, *measure_in_turn(one, eight, events))


def _measure_merging(live: LiveIndex, events: list[Any]) -> list[Row]:
    """Single matches at rest, and while all parts are merged into one."""
    left = iter(range(N_AT_REST))
    rest = _latencies(live, events, lambda: next(left, None) is None)
    merge = threading.Thread(target=live.compact)
    merge.start()
    busy = _latencies(live, events, lambda: not merge.is_alive())
    merge.join()
    baseline, value = (float(np.quantile(own, 0.99)) * 1e6 for own in (rest, busy))
    what, ratio = "match single, p99 during a merge", value / baseline
    return [_row(what, value, "µs", baseline=baseline, ratio=ratio)]


def _latencies(live: LiveIndex, events: list[Any], is_over: Callable[[], bool]) -> list[float]:
    """Seconds of single matches until something is over, one at least."""
    found = []
    for event in cycle(events):
        began = time.perf_counter()
        live.match(event)
        found.append(time.perf_counter() - began)
        if is_over():
            break
        time.sleep(0.0005)  # an open load, as of a server
    return found
