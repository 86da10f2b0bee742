"""What does the archive cost? Against plain writes of as many bytes to a file, each flushed.

The baseline writes the same number of bytes in the same number of groups, with one `fdatasync`
each. Both are measured in turn, and the best round counts.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.archive import Archive, ArrowEvents, Entry, JsonEvents

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "The archive, items per second against plain writes with fdatasync"
N_ROUNDS = 3
N_GROUPS = 20
N_POLLS = 2_000


def run() -> list[dict[str, Any]]:
    """One row per kind of write or read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            _measure_append(folder, "matches: 512 events × 4,000", _many_matches(), 512 * 4000),
            _measure_append(folder, "events: 5,000 JSON × 10 matches", _small_events(), 5000),
            _measure_append(folder, "events: 5,000 Arrow × 10 matches", _arrow_events(), 5000),
            _measure_append(folder, "events: one at a time", _single_event(), 1),
        ]
        return [*rows, *_measure_reads(folder)]


# ── what is appended ────────────────────────────────────────────────────────────────────────


def _make_entry(events: Any, n_events: int, n_matches: int, n_subscriptions: int) -> Entry:
    draw = np.random.default_rng(1)
    matches = draw.integers(1, n_subscriptions, n_events * n_matches)
    starts = np.arange(n_events + 1) * n_matches
    return Entry(events, time.time_ns() // 1000, 1, starts, matches)


def _json_events(n_events: int) -> JsonEvents:
    texts = [b'{"id": %d, "name": "%s"}' % (at, b"x" * 180) for at in range(n_events)]
    ends = np.cumsum([len(text) + 1 for text in texts])
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    return JsonEvents(b"\n".join(texts), starts, ends - 1)


def _many_matches() -> Entry:
    return _make_entry(_json_events(512), 512, 4000, 100_000)


def _small_events() -> Entry:
    return _make_entry(_json_events(5000), 5000, 10, 1_000_000)


def _arrow_events() -> Entry:
    columns = {"id": np.arange(5000), "price": np.arange(5000) / 7, "name": ["x" * 20] * 5000}
    return _make_entry(ArrowEvents(pa.record_batch(columns)), 5000, 10, 1_000_000)


def _single_event() -> Entry:
    return _make_entry(_json_events(1), 1, 10, 1_000_000)


# ── measurements ────────────────────────────────────────────────────────────────────────────


def _measure_append(folder: Path, what: str, entry: Entry, n_items: int) -> dict[str, Any]:
    best: dict[str, tuple[float, float]] = {}
    n_groups = 200 if n_items == 1 else N_GROUPS
    for at in range(N_ROUNDS):
        with Archive.open(folder / f"{what[:3]}{n_items}-{at}") as archive:
            before = archive.stats()["bytes"]
            ours = _time(lambda: [archive.append([entry]) for _ in range(n_groups)])
            n_bytes = (archive.stats()["bytes"] - before) // n_groups
        plain = _time(lambda: _write_plainly(folder / "plain", n_bytes, n_groups))  # noqa: B023
        for name, seconds in (("ours", ours), ("plain", plain)):
            best[name] = min(best.get(name, seconds), seconds)
    n = n_items * n_groups
    return {
        "operation": f"append {what}",
        "archive": round(n / best["ours"][0]),
        "archive, by CPU time": round(n / best["ours"][1]),
        "plain writes": round(n / best["plain"][0]),
        "archive / plain": round(best["plain"][0] / best["ours"][0], 2),
        "bytes": n_bytes // n_items,
    }


def _write_plainly(path: Path, n_bytes: int, n_groups: int) -> None:
    data = os.urandom(n_bytes)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for _ in range(n_groups):
        os.write(descriptor, data)
        os.fdatasync(descriptor)
    os.close(descriptor)


def _measure_reads(folder: Path) -> list[dict[str, Any]]:
    """Polls of mailboxes in the open segment, and when it is closed."""
    rows = []
    entry = _small_events()
    with Archive.open(folder / "reads") as archive:
        for _ in range(N_GROUPS):
            archive.append([entry])
        last = archive.last_event
        for state in ("open", "closed"):
            if state == "closed":
                archive.seal()
            archive.read_matches([1], after=0, limit=1)  # sorts, or maps the file
            for what, after in (("all of a mailbox", 0), ("the last 100", last - 100)):
                name = f"read {what}, {state} segment"
                rows.append(_measure_polls(archive, name, after))
            numbers = np.random.default_rng(2).integers(1, last, 100).tolist()
            seconds, cpu = _time(lambda: archive.get_events(numbers))  # noqa: B023
            rows.append(_row(f"get 100 scattered events, {state} segment", 100, seconds, cpu))
        rows.append(_measure_polls(archive, "poll a mailbox without news", last))
    return rows


def _measure_polls(archive: Archive, what: str, after: int) -> dict[str, Any]:
    names = np.random.default_rng(3).integers(1, 1_000_000, N_POLLS).tolist()
    seconds, cpu = min(
        _time(lambda: [archive.read_matches([name], after=after, limit=100) for name in names])
        for _ in range(N_ROUNDS)
    )
    return _row(what, N_POLLS, seconds, cpu)


def _row(what: str, n: int, seconds: float, cpu: float) -> dict[str, Any]:
    return {
        "operation": what,
        "archive": round(n / seconds),
        "archive, by CPU time": round(n / max(cpu, 1e-9)),
    }


def _time(call: Callable[[], Any]) -> tuple[float, float]:
    start, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - cpu
