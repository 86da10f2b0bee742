"""What does an event cost that comes as JSON? From a buffer of lines to matches, in CPU time.

Three ways in the same run, in turn, after their answers were compared: the reader that skips; all
events parsed first and matched as dicts; and orjson alone, which only parses. The kernel's column
is the matching of events that are encoded already.
"""

from __future__ import annotations

import gc
import os
import time
from typing import TYPE_CHECKING, Any, Final

import orjson

import tamis
from benchmarks.geo_events import SCHEMA, draw_rules, write_events

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "JSON events of 540 bytes in batch, from a buffer: microseconds of CPU per event"
N_REPEATS: Final = 7
N_EVENTS: Final = 16_384
TARGETS: Final = {40: 3.0, 1_000: 3.5, 100_000: 8.0}


def run() -> list[dict[str, Any]]:
    """One row per number of rules."""
    is_tiny = os.environ.get("TAMIS_BENCH_SIZE") == "tiny"
    data = write_events(200 if is_tiny else N_EVENTS)
    return [_measure(n_rules, data) for n_rules in ((40,) if is_tiny else TARGETS)]


def _measure(n_rules: int, data: bytes) -> dict[str, Any]:
    index = tamis.build(draw_rules(n_rules), SCHEMA)
    lines = data.splitlines()
    encoded = index.encode(data)
    found = index.match_batch(data)
    assert found == index.match_batch(list(map(orjson.loads, lines)))
    ways: dict[str, Callable[[], Any]] = {
        "from a buffer": lambda: index.match_batch(data),
        "parsed first": lambda: index.match_batch(list(map(orjson.loads, lines))),
        "orjson alone": lambda: _parse_all(lines),
        "kernel alone": lambda: index.match_batch(encoded),
    }
    times = _time_in_turn(ways, len(lines))
    row = {"rules": n_rules, "bytes": round(len(data) / len(lines))}
    row["matches per event"] = round(len(found) / len(lines), 2)
    return row | {way: round(time, 2) for way, time in times.items()} | {"target": TARGETS[n_rules]}


def _parse_all(lines: list[bytes]) -> None:
    for line in lines:
        orjson.loads(line)


def _time_in_turn(ways: dict[str, Callable[[], Any]], n_events: int) -> dict[str, float]:
    """The best time of each way, in microseconds per event."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(N_REPEATS):
        for way, call in ways.items():
            gc.collect()
            start = time.process_time()
            call()
            best[way] = min(best[way], 1e6 * (time.process_time() - start) / n_events)
    return best
