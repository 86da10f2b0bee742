"""What does a log event cost against real detection rules, from its JSON text to its matches?

Sigma's rules and Windows events of the Security Datasets, if they are next to the repository;
without them there are no rows. All events are distinct and in the order of their archives. Rates
and microseconds are of CPU time on one core, except for commands: they are measured by the clock,
start included, kernels compiled beforehand. Baselines in the same run: all events parsed first and
matched as dicts; orjson alone, which only parses; Python lambdas in buckets by the source of the
log, without the rules that have regular expressions; building instead of opening; a command that
only starts. `TAMIS_BENCH_SIZE` is `tiny`, which only shows that all runs, `small` (the default) or
`full`, which is the same.
"""

from __future__ import annotations

import collections
import json
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

import tamis
from benchmarks import sigma_rules
from benchmarks.baselines import BucketedLambdas
from benchmarks.measuring import N_REPEATS, choose_size, run_tamis, time_each, time_in_turn
from benchmarks.targets import Target, make_row
from tamis.language import check, parse
from tamis.language.ast import Rlike, leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.targets import Row

TITLE = "Log events against Sigma's rules"


class Size(NamedTuple):
    """How much is measured."""

    n_rules: int
    n_batch: int  # events of a batch
    n_single: int
    n_lines: int  # of the file that the command reads


SIZES: Final = {
    "tiny": Size(100, 300, 500, 500),
    "small": Size(1_000_000, 60_000, 2_000, 200_000),
    "full": Size(1_000_000, 60_000, 2_000, 200_000),
}
BATCH_SIZES: Final = (10, 100, 500)
N_SLOW: Final = 50  # events for the lambdas
SHELL: Final = "tamis match of a file of log events"
TARGETS: Final = {
    "batch from JSON bytes": Target(100_000, is_least=True),
    "one event from a dict, median": Target(60),
    "one event from bytes, median": Target(70),
    "open, and match the first event": Target(0.3),
    SHELL: Target(60_000, is_least=True),
    "tamis match of one event": Target(0.7),
}


def run() -> list[Row]:
    """One row per way to ask."""
    name, size = choose_size(SIZES)
    if not sigma_rules.find_data():
        return []
    rules = dict(list(sigma_rules.read_rules().items())[: size.n_rules])
    index = tamis.build(rules, sigma_rules.read_schema(rules))
    row = partial(make_row, {} if name == "tiny" else TARGETS)
    few = sigma_rules.read_lines(size.n_single)
    many = sigma_rules.read_lines(max(size.n_batch, size.n_lines))
    rows = _measure_batches(row, index, many[: size.n_batch])
    rows += _measure_singles(row, index, few)
    rows += _measure_small_batches(row, index, few)
    with tempfile.TemporaryDirectory() as folder:
        rows += _measure_commands(row, index, many[: size.n_lines], Path(folder))
    return rows


def _measure_batches(row: Any, index: tamis.Index, lines: Sequence[bytes]) -> list[Row]:
    data = b"\n".join(lines)
    column = pa.table({"body": pa.array(lines, pa.binary()).cast(pa.string())})
    found = index.match_batch(data)
    ways: dict[str, Callable[[], Any]] = {
        "batch from JSON bytes": lambda: index.match_batch(data),
        "batch from an Arrow column of JSON": lambda: index.match_batch(column["body"]),
    }
    baselines: dict[str, Callable[[], Any]] = {
        "parsed first": lambda: index.match_batch(list(map(orjson.loads, lines))),
        "orjson alone": lambda: collections.deque(map(orjson.loads, lines), maxlen=0),
    }
    assert ways["batch from an Arrow column of JSON"]() == found
    assert baselines["parsed first"]() == found
    more = {
        "rules": len(index),
        "events": len(lines),
        "bytes": round(len(data) / len(lines)),
        "matches": round(len(found) / len(lines), 2),
    }
    times = time_in_turn(ways | baselines, len(lines), n_repeats=3)
    more |= {way: round(1e6 / times.pop(way)) for way in baselines}
    return [
        row(way, 1e6 / each, "events/s", **more, **{"µs per event": round(each, 2)})
        for way, each in times.items()
    ]


def _measure_singles(row: Any, index: tamis.Index, lines: Sequence[bytes]) -> list[Row]:
    events = list(map(json.loads, lines))
    expected = index.match_lists(events).to_pylist()
    rows = []
    more = _time_lambdas(index, events[:: -(-len(events) // N_SLOW)])
    forms: dict[str, Sequence[Any]] = {"a dict": events, "bytes": lines}
    for form, own in forms.items():
        assert [index.match(event) for event in own] == expected
        value = time_each(index.match, own)
        rows.append(row(f"one event from {form}, median", value, "µs", events=len(own), **more))
    return rows


def _time_lambdas(index: tamis.Index, events: Sequence[Any]) -> dict[str, Any]:
    """What these events take without an index, each as a dict."""
    schema = index.view.shown[0].schema
    read = {own: check(parse(index.expression(own)), schema) for own in index}
    # Python's regular expressions are others.
    rules = {
        own: condition
        for own, condition in read.items()
        if not any(isinstance(leaf, Rlike) for leaf in leaves(condition))
    }
    ids, lambdas = list(rules), BucketedLambdas(rules.values())
    for event in events:
        expected = sorted(set(index.match(event)) & rules.keys())
        assert sorted(ids[at] for at in lambdas.match(event)) == expected
    return {"Python lambdas": round(time_each(lambdas.match, events), 1), "of rules": len(ids)}


def _measure_small_batches(row: Any, index: tamis.Index, lines: Sequence[bytes]) -> list[Row]:
    """`match_many` against `match` of each event and against a batch, all from bytes."""
    rows = []
    for n_events in BATCH_SIZES:
        own = np.array(lines, dtype=object)[:: max(1, len(lines) // n_events)][:n_events].tolist()
        data = b"\n".join(own)
        ways = {
            "match_many": lambda own=own: index.match_many(own),
            "match, one by one": lambda own=own: [index.match(line) for line in own],
            "match_lists": lambda data=data: index.match_lists(data),
        }
        assert ways["match_many"]() == ways["match_lists"]().to_pylist()
        times = time_in_turn(ways, len(own))
        many = times.pop("match_many")
        more = {way: round(each, 1) for way, each in times.items()}
        more["ratio"] = round(many / min(times.values()), 2)
        rows.append(row(f"match_many of {n_events} events", many, "µs", events=len(own), **more))
    return rows


def _measure_commands(
    row: Any, index: tamis.Index, lines: Sequence[bytes], folder: Path
) -> list[Row]:
    saved, file, one = folder / "index", folder / "events.jsonl", folder / "one.jsonl"
    index.save(saved)
    file.write_bytes(b"\n".join(lines) + b"\n")
    one.write_bytes(lines[0] + b"\n")
    run_tamis("match", str(saved), str(one))  # compiles, if nothing is cached
    rows = [_measure_opening(row, index, saved, json.loads(lines[0]))]
    for threads in (1, 2):
        more = ("--threads", str(threads)) if threads > 1 else ()
        printed = folder / "matches.jsonl"
        spent = min(
            run_tamis("match", str(saved), str(file), *more, output=printed) for _ in range(2)
        )
        assert printed.read_bytes().count(b"\n") == len(lines)
        what = SHELL if threads == 1 else f"the same with {threads} threads"
        more: Row = {"µs per event": round(1e6 * spent.cpu / len(lines), 2)}
        more["orjson alone"] = round(len(lines) / _time_parsing(file))
        rows.append(row(what, len(lines) / spent.wall, "events/s", events=len(lines), **more))
    start = min(run_tamis("match", str(saved), str(one)) for _ in range(N_REPEATS))
    version = min(run_tamis("--version") for _ in range(N_REPEATS))
    more = {"tamis --version": round(version.wall, 3)}
    rows.append(row("tamis match of one event", start.wall, "s", events=1, **more))
    return rows


def _time_parsing(file: Path) -> float:
    """The seconds in which the lines of a file are parsed one by one, and nothing is matched."""
    start = time.perf_counter()
    with file.open("rb") as lines:
        collections.deque(map(orjson.loads, lines), maxlen=0)
    return time.perf_counter() - start


def _measure_opening(row: Any, index: tamis.Index, saved: Path, event: Any) -> Row:
    """The best time to open a saved index and match one event, once the library is loaded."""
    rules, schema = {own: index.expression(own) for own in index}, index.view.shown[0].schema
    start = time.process_time()
    tamis.build(rules, schema)
    more = {"building": round(time.process_time() - start, 2)}
    best = float("inf")
    for _ in range(N_REPEATS):
        start = time.process_time()
        tamis.open(saved).match(event)
        best = min(best, time.process_time() - start)
    return row("open, and match the first event", best, "s", events=1, **more)
