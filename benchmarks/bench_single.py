"""What does one event cost? From a dict or from JSON bytes to the ids of its matches, in CPU time.

Against two baselines in the same run, whose answers are compared first: compiled Python lambdas,
one for each expression, which is what a user writes without an index; and the same events in one
batch, from a buffer of JSON lines. Times are the medians of single calls, the best of a few passes.
`TAMIS_BENCH_SIZE` is `tiny`, which only shows that all runs, `small` (the default) or `full`, which
goes to a million expressions.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import tamis
from benchmarks import geo_events, sigma_rules
from benchmarks.baselines import Lambdas
from benchmarks.measuring import choose_size, time_each, time_whole
from benchmarks.targets import Target, make_row
from tamis.lab.workloads import AbeGen, SigmaLike, SigmaLikeParams
from tamis.language import Schema, check, parse
from tamis.language.types.texts import print_string
from tamis.match.index import Index

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.targets import Row

TITLE = "One event at a time: median microseconds of CPU"
MOST_LAMBDAS: Final = 20_000  # more take too long to compile
N_SLOW: Final = 20  # events for the lambdas
N_PARTS: Final = 8
TEXT_LENGTH: Final = 200


class Size(NamedTuple):
    """How much is measured."""

    n_events: int
    n_batch: int  # events for patterns in a batch: enough that the call itself costs nothing
    n_patterns: int
    rules: tuple[int, ...]  # over the events of 540 bytes
    abe: tuple[int, ...]


SIZES: Final = {
    "tiny": Size(50, 100, 100, (40,), (100,)),
    "small": Size(1_000, 16_384, 15_000, (40, 1_000, 100_000), (12_000, 100_000)),
    "full": Size(1_000, 16_384, 15_000, (40, 1_000, 100_000), (12_000, 100_000, 1_000_000)),
}
PATTERNS: Final = f"15,000 patterns, a text of {TEXT_LENGTH} characters"
# The targets of what is measured at one size only are judged there.
TARGETS: Final = {
    "one expression, 20 attributes, from a dict": Target(6),
    **{
        f"540-byte events, {n_rules:,} rules, from {form}": Target(limit)
        for n_rules, limit in ((40, 8), (1_000, 9), (100_000, 20))
        for form in ("a dict", "bytes")
    },
    f"the same in {N_PARTS} parts, from a dict": Target(1.4, "ratio"),
    f"{PATTERNS}, from a dict": Target(15),
    f"{PATTERNS}, in a batch": Target(8),
    "ABE-Gen, 12,000 expressions, from a dict": Target(30),
    "ABE-Gen, 100,000 expressions, from a dict": Target(250),
    "ABE-Gen, 1,000,000 expressions, from a dict": Target(11, "ratio"),
}


def run() -> list[Row]:
    """One row per workload and form of the event."""
    name, size = choose_size(SIZES)
    bench = Bench(size, {} if name == "tiny" else TARGETS)
    return [
        *bench.measure_one_expression(),
        *bench.measure_lots(),
        *bench.measure_patterns(),
        *bench.measure_abe(),
    ]


class Bench:
    """The workloads, at one size."""

    def __init__(self, size: Size, targets: Mapping[str, Target]) -> None:
        self._size = size
        self._row = partial(make_row, targets)

    # ── workloads ──────────────────────────────────────────────────────────────────────────

    def measure_one_expression(self) -> list[Row]:
        """An index of one expression shows what a call costs."""
        events = [
            {f"a{at}": number if at == 5 else "xy"[at % 2] for at in range(20)}
            for number in range(self._size.n_events)
        ]
        index = tamis.build({"only": "a3 = 'x' AND a5 > 3"}, "a3 STRING, a5 INT")
        return self._measure("one expression, 20 attributes", index, events)

    def measure_lots(self) -> list[Row]:
        """Few short properties, and a polygon that no rule asks about."""
        lines = geo_events.write_events(self._size.n_events).splitlines()
        events = list(map(json.loads, lines))
        rows = []
        for n_rules in self._size.rules:
            rules = geo_events.draw_rules(n_rules)
            index = tamis.build(rules, geo_events.SCHEMA)
            rows += self._measure(f"540-byte events, {n_rules:,} rules", index, events, lines)
            if n_rules == 1_000:
                rows += self._measure_parts(rules, events, lines, rows[-2:])
        return rows

    def _measure_parts(
        self,
        rules: dict[str, str],
        events: Sequence[Any],
        lines: Sequence[bytes],
        whole: Sequence[Row],
    ) -> list[Row]:
        items = list(rules.items())
        parts = [dict(items[first::N_PARTS]) for first in range(N_PARTS)]
        contents = [tamis.build(part, geo_events.SCHEMA).contents for part in parts]
        what = f"the same in {N_PARTS} parts"
        return self._measure(what, Index(*contents), events, lines, whole)

    def measure_patterns(self) -> list[Row]:
        """One by one, and in a batch: each text is different."""
        n_events = self._size.n_events
        workload = SigmaLike(SigmaLikeParams(n_expressions=10, n_patterns=self._size.n_patterns))
        rules = {
            str(at): f"CommandLine ILIKE {print_string(f'%{sigma_rules.escape(own)}%')}"
            for at, own in enumerate(workload.patterns)
        }
        texts = [event["CommandLine"][:TEXT_LENGTH] for event in workload.events(n_events)]
        events = [{"CommandLine": text} for text in texts]
        index = tamis.build(rules, "CommandLine STRING")
        what = f"{len(rules):,} patterns, a text of {TEXT_LENGTH} characters"
        more = workload.events(self._size.n_batch)
        many = _spell([{"CommandLine": event["CommandLine"][:TEXT_LENGTH]} for event in more])
        n_distinct = len(set(many))
        batch = self._row(
            f"{what}, in a batch", _time_batch(index, many), "µs", distinct=n_distinct
        )
        return [*self._measure(what, index, events), batch]

    def measure_abe(self) -> list[Row]:
        """How the time of an event grows with the number of expressions."""
        rows: list[Row] = []
        for n_rules in self._size.abe:
            workload = AbeGen()
            rules = {str(at): text for at, text in enumerate(workload.expressions(n_rules))}
            events = workload.events(min(300, self._size.n_events))
            index = tamis.build(rules, workload.schema)
            what = f"ABE-Gen, {n_rules:,} expressions"
            # The ratio to the one before: from 100,000 to a million it has a target.
            rows += self._measure(what, index, events, compared=rows[-2:])
        return rows

    # ── measuring ──────────────────────────────────────────────────────────────────────────

    def _measure(
        self,
        what: str,
        index: Index,
        events: Sequence[Mapping[str, Any]],
        lines: Sequence[bytes] = (),
        compared: Sequence[Row] = (),
    ) -> list[Row]:
        """A row from dicts and one from bytes; ratios to the rows that they are compared with."""
        lines = lines or _spell(events)
        more: Row = {"matches": _compare_answers(index, events, lines)}
        more["in a batch"] = round(_time_batch(index, lines), 1)
        more |= _time_lambdas(index, events)
        rows = []
        forms: dict[str, Sequence[Any]] = {"a dict": events, "bytes": lines}
        for at, (form, own) in enumerate(forms.items()):
            value = time_each(index.match, own)
            ratio = {"ratio": round(value / compared[at]["value"], 2)} if compared else {}
            rows.append(self._row(f"{what}, from {form}", value, "µs", **ratio, **more))
        return rows


def _spell(events: Sequence[Mapping[str, Any]]) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


def _compare_answers(index: Index, events: Sequence[Any], lines: Sequence[bytes]) -> float:
    """The matches of an event, which are the same from all forms."""
    expected = index.match_lists(events).to_pylist()
    assert index.match_lists(b"\n".join(lines)).to_pylist() == expected
    assert [index.match(event) for event in events] == expected
    assert [index.match(line) for line in lines] == expected
    return round(sum(map(len, expected)) / len(expected), 2)


def _time_batch(index: Index, lines: Sequence[bytes]) -> float:
    data = b"\n".join(lines)
    return time_whole(lambda: index.match_lists(data), len(lines))


def _time_lambdas(index: Index, events: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    if len(index) > MOST_LAMBDAS:
        return {}
    schema = Schema.of(index.view.shown[0].schema.to_json())
    ids = list(index)
    lambdas = Lambdas([check(parse(index.expression(own)), schema) for own in ids])
    few = events[:N_SLOW]
    for event in few:
        found = [ids[at] for at in lambdas.match(event).tolist()]
        assert sorted(found) == sorted(index.match(event))
    call: Callable[[Any], Any] = lambdas.match
    return {"Python lambdas": round(time_each(call, few), 1)}
