"""The part of `tamis demo` that measures: many subscriptions and events, on this machine."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import tamis
from tamis.cli.demo_sample import draw_events, draw_subscriptions

if TYPE_CHECKING:
    from rich.console import Console

    from tamis.language.schema import Schema

N_SUBSCRIPTIONS: Final = 4_000
N_EVENTS: Final = 40_000
N_SINGLE: Final = 1_000  # of the events, matched one at a time
N_FIRST: Final = 200  # of both: enough to load every kernel that the rest needs


class Speed(NamedTuple):
    """The counts, and the seconds of each step."""

    n_nodes: int
    n_pairs: int
    building: float
    matching: float
    single: float


def measure_speed(schema: Schema) -> Speed:
    """Build, match many and match one at a time; every timed step has run before."""
    subscriptions = draw_subscriptions(N_SUBSCRIPTIONS)
    events = draw_events(N_EVENTS)
    _run(dict(islice(subscriptions.items(), N_FIRST)), events[:N_FIRST], schema)
    return _run(subscriptions, events, schema)


def _run(subscriptions: dict[str, str], events: list[dict[str, Any]], schema: Schema) -> Speed:
    started = time.perf_counter()
    index = tamis.build(subscriptions, schema)
    built = time.perf_counter()
    n_pairs = index.match_batch(events).num_rows
    matched = time.perf_counter()
    for event in events[:N_SINGLE]:
        index.match(event)
    done = time.perf_counter()
    return Speed(index.contents.n_nodes, n_pairs, built - started, matched - built, done - matched)


def show_speed(console: Console, schema: Schema) -> None:
    """Measure, and print the results."""
    speed = measure_speed(schema)
    console.print(
        f"{N_SUBSCRIPTIONS:,} other subscriptions were built into {speed.n_nodes:,} shared nodes "
        f"in {speed.building:.2f} s.\n"
        f"{N_EVENTS:,} events were matched in {speed.matching:.2f} s: "
        f"{N_EVENTS / speed.matching:,.0f} events a second,\n"
        f"with {speed.n_pairs:,} pairs of event and subscription.\n"
        f"One event at a time takes {1e6 * speed.single / N_SINGLE:,.0f} µs.\n"
        "\nMeasured just now on one core, from Python dictionaries, with kernels loaded before."
    )
