"""What do conditions over the elements of arrays cost, compared with the same ones over one value?

An array has ten elements, so a lambda may cost ten times as much. Both indexes have the same
conditions; the events are an Arrow table, read and matched together.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any, Final

import pyarrow as pa

import tamis
from benchmarks.measuring import time_in_turn

TITLE = "exists() over arrays of 10 elements against a scalar: microseconds of CPU per event"
N_EVENTS: Final = 8_192
N_ELEMENTS: Final = 10
N_WORDS: Final = 20_000
MOST: Final = 10.0  # times as much as a scalar


def run() -> list[dict[str, Any]]:
    """One row per number of subscriptions."""
    is_tiny = os.environ.get("TAMIS_BENCH_SIZE") == "tiny"
    sizes = (50,) if is_tiny else (1_000, 100_000)
    return [_measure(n, 100 if is_tiny else N_EVENTS) for n in sizes]


def _measure(n_subscriptions: int, n_events: int) -> dict[str, Any]:
    rng = Random(7)
    tests = [_draw_test(rng) for _ in range(n_subscriptions)]
    scalar = tamis.build(
        {str(at): own.replace("t ", "tag ") for at, own in enumerate(tests)}, "tag STRING"
    )
    arrays = tamis.build(
        {str(at): f"exists(tags, t -> {own})" for at, own in enumerate(tests)}, "tags ARRAY<STRING>"
    )
    lists = [[_word(rng) for _ in range(N_ELEMENTS)] for _ in range(n_events)]
    ways = {
        "scalar": lambda: scalar.count_by_event(pa.table({"tag": [own[0] for own in lists]})),
        "array": lambda: arrays.count_by_event(pa.table({"tags": lists})),
    }
    times = time_in_turn(ways, n_events)
    row: dict[str, Any] = {"subscriptions": n_subscriptions, "elements": N_ELEMENTS}
    row |= {way: round(own, 2) for way, own in times.items()}
    ratio = times["array"] / times["scalar"]
    met = ratio <= MOST if n_events == N_EVENTS else None
    return row | {"times as much": round(ratio, 1), "at most": MOST, "met": met}


def _draw_test(rng: Random) -> str:
    """Most tests are equalities, some are patterns."""
    if rng.random() < 0.1:
        return f"t LIKE '{_word(rng)[:7]}%'"
    return f"t = '{_word(rng)}'" if rng.random() < 0.6 else f"t IN ('{_word(rng)}', '{_word(rng)}')"


def _word(rng: Random) -> str:
    return f"word-{rng.randrange(N_WORDS)}"
