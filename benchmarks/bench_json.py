"""What does an event cost that comes as JSON? From text to matches, in CPU time.

Four ways in batch in the same run, in turn, after their answers were compared: the reader that
skips; all events parsed first and matched as dicts; orjson alone, which only parses; and the kernel
alone, which matches events that are encoded already. And one by one from bytes: `match` against a
rule matcher, an automaton made for such rules. `TAMIS_BENCH_SIZE=tiny` only shows that all runs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

import tamis
from benchmarks.baselines import RuleMatcher
from benchmarks.geo_events import SCHEMA, draw_rules, write_events
from benchmarks.measuring import choose_size, time_each, time_in_turn
from benchmarks.targets import Target, make_row
from tamis.language import Schema, check, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.targets import Row

TITLE = "JSON events of 540 bytes: microseconds of CPU per event"
N_REPEATS: Final = 7
N_SINGLE: Final = 1_000
LIMITS: Final = {40: 3.0, 1_000: 3.5, 100_000: 8.0}
LIMITS_OF_ONE: Final = {40: 8.0, 1_000: 9.0, 100_000: 20.0}
SIZES: Final = {"tiny": (200, (40,)), "small": (16_384, (*LIMITS,)), "full": (16_384, (*LIMITS,))}
TARGETS: Final = {
    **{f"{n:,} rules, a buffer of lines": Target(limit) for n, limit in LIMITS.items()},
    **{f"{n:,} rules, one by one": Target(limit) for n, limit in LIMITS_OF_ONE.items()},
}


def run() -> list[Row]:
    """Two rows per number of rules: a buffer of lines, and lines one by one."""
    name, (n_events, numbers) = choose_size(SIZES)
    row = partial(make_row, {} if name == "tiny" else TARGETS)
    data = write_events(n_events)
    return [own for n_rules in numbers for own in _measure(row, n_rules, data)]


def _measure(row: Any, n_rules: int, data: bytes) -> list[Row]:
    rules = draw_rules(n_rules)
    index, lines = tamis.build(rules, SCHEMA), data.splitlines()
    encoded = index.encode(data)
    found = index.match_batch(data)
    assert found == index.match_batch(list(map(orjson.loads, lines)))
    ways: dict[str, Callable[[], Any]] = {
        "from a buffer": lambda: index.match_batch(data),
        "parsed first": lambda: index.match_batch(list(map(orjson.loads, lines))),
        "orjson alone": lambda: _parse_all(lines),
        "kernel alone": lambda: index.match_batch(encoded),
    }
    times = time_in_turn(ways, len(lines), N_REPEATS)
    own = times.pop("from a buffer")
    more: Row = {"bytes": round(len(data) / len(lines))}
    more["matches"] = round(len(found) / len(lines), 2)
    rounded = {way: round(time, 2) for way, time in times.items()}
    return [
        row(f"{n_rules:,} rules, a buffer of lines", own, "µs", **more, **rounded),
        _measure_one_by_one(row, index, rules, lines[:N_SINGLE]) | more,
    ]


def _measure_one_by_one(
    row: Any, index: tamis.Index, rules: dict[str, str], lines: Sequence[bytes]
) -> Row:
    schema, ids = Schema.of(SCHEMA), list(rules)
    matcher = RuleMatcher(check(parse(text), schema) for text in rules.values())
    for line in lines:
        assert sorted(ids[at] for at in matcher.match_text(line)) == sorted(index.match(line))
    theirs = time_each(lambda line: [ids[at] for at in matcher.match_text(line)], lines)
    value = time_each(index.match, lines)
    ratio = round(value / theirs, 2)
    what = f"{len(rules):,} rules, one by one"
    return row(what, value, "µs", **{"rule matcher": round(theirs, 2), "ratio": ratio})


def _parse_all(lines: Sequence[bytes]) -> None:
    for line in lines:
        orjson.loads(line)
