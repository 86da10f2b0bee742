"""Where does an event's time go, by the way it comes in? The CPU time of each stage.

| stage | what is done |
|---|---|
| read | text, Arrow data or a mapping becomes typed values of the attributes that the index knows |
| code | values become codes of the columns: ranks, and the hits of patterns |
| kernel | leaves, nodes and roots of the expressions are set |
| output | matches become ids, rows or lines; of one event, also the call itself |
| Spark | of a job: everything that one process does not do |

Events of 540 bytes, and log events against Sigma's rules if they are next to the repository. The
time of a command or a job is that of many events less that of few, so it has no start in it.
`python -m benchmarks.draw_ways` draws the rows. `TAMIS_BENCH_SIZE` is `tiny`, which only shows that
all runs, `small` (the default) or `full`, which is the same.
"""

from __future__ import annotations

import gc
import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from benchmarks import geo_events, sigma_rules
from benchmarks.bench_spark import CORES, drain, measure
from benchmarks.measuring import N_REPEATS, choose_size, run_tamis, time_clock, time_each
from tamis.events.rejects import Rejects
from tamis.input.event_batches import split_events, wanted_columns
from tamis.input.rows import Wanted

if TYPE_CHECKING:
    from benchmarks.targets import Row
    from tamis.match.question import Block

TITLE = "Where an event's time goes: microseconds of CPU"
STAGES: Final = ("read", "code", "kernel", "output", "Spark")


class Size(NamedTuple):
    """How much is measured."""

    n_events: int
    n_single: int
    n_rules: int  # over events of 540 bytes
    n_sigma: int
    n_spark: int  # events of the larger job


SIZES: Final = {
    "tiny": Size(400, 50, 40, 50, 400),
    "small": Size(40_000, 1_000, 1_000, 1_000_000, 400_000),
    "full": Size(40_000, 1_000, 1_000, 1_000_000, 400_000),
}


def run() -> list[Row]:
    """One row per workload and way in."""
    from tamis.spark import local_session

    _, size = choose_size(SIZES)
    spark = local_session("tamis-bench-ways", CORES, **{"spark.driver.memory": "3g"})
    rows = []
    try:
        for workload in read_workloads(size):
            with tempfile.TemporaryDirectory() as folder:
                rows += Ways(workload, size, Path(folder), spark).measure_all()
    finally:
        spark.stop()
    return rows


class Workload(NamedTuple):
    """Rules, and events as lines of JSON."""

    name: str
    rules: dict[str, str]
    schema: Any
    lines: list[bytes]


def read_workloads(size: Size) -> list[Workload]:
    """Events with few short properties; and log events, if there are any."""
    rules, lines = geo_events.draw_rules(size.n_rules), geo_events.write_events(size.n_events)
    title = f"540-byte events, {len(rules):,} rules"
    found = [Workload(title, rules, geo_events.SCHEMA, lines.splitlines())]
    if sigma_rules.find_data():
        rules = dict(list(sigma_rules.read_rules().items())[: size.n_sigma])
        title = f"log events of 3 kB, {len(rules):,} Sigma rules"
        schema, texts = sigma_rules.read_schema(rules), sigma_rules.read_lines(size.n_events)
        found.append(Workload(title, rules, schema, texts))
    return found


class NoReadout:
    """Matches, and reads nothing of it."""

    def read(self, block: Block) -> None:
        """One block of events."""
        block.read_settled(lambda group, scratch: None)

    def answer(self, blocks: Any) -> None:
        """Match all blocks."""
        for _ in blocks:
            pass


@dataclass
class Ways:
    """One workload, measured by each way in."""

    workload: Workload
    size: Size
    folder: Path
    spark: Any

    def __post_init__(self) -> None:
        self.index = tamis.build(self.workload.rules, self.workload.schema)
        self.saved = self.folder / "index"
        self.index.save(self.saved)
        self.lines = self.workload.lines
        self.texts = pa.table({"body": pa.array(self.lines, pa.binary()).cast(pa.string())})

    def measure_all(self) -> list[Row]:
        """One row per way."""
        columns = self._make_columns()
        parquet, file = self.folder / "columns.parquet", self.folder / "events.jsonl"
        pq.write_table(columns, parquet)
        file.write_bytes(b"\n".join(self.lines) + b"\n")
        events = list(map(json.loads, self.lines[: self.size.n_single]))
        return [
            self._row("a buffer of JSON lines", self._time_batch(b"\n".join(self.lines))),
            self._row("an Arrow column of JSON", self._time_batch(self.texts["body"])),
            self._row("Arrow columns", self._time_batch(columns)),
            self._row("a Parquet file of columns", self._time_batch(parquet)),
            self._row("tamis match of a JSON file", self._time_command(file)),
            self._row("Spark, a column of JSON", self._time_spark()),
            self._row("one event, JSON bytes", self._time_single(self.lines[: len(events)])),
            self._row("one event, a dict", self._time_single(events)),
        ]

    def _row(self, way: str, stages: Mapping[str, float]) -> Row:
        shown = {stage: round(stages.get(stage, 0.0), 2) for stage in STAGES}
        total = round(sum(stages.values()), 2)
        return {"events": self.workload.name, "way": way, **shown, "total": total}

    def _make_columns(self) -> pa.Table:
        """The attributes of the index as typed columns, nested ones in structs."""
        tree = self.index.view.encoder.table.by_path
        events = [_pick(json.loads(line), tree) for line in self.lines]
        return pa.Table.from_pylist(events)

    # ── batches ────────────────────────────────────────────────────────────────────────────

    def _time_batch(self, source: Any) -> dict[str, float]:
        """The stages of a batch, each the best of a few passes, in microseconds per event."""
        encoder = self.index.view.encoder
        question = self.index.view.ask(None, None, None)
        best = dict.fromkeys(STAGES[:4], float("inf"))
        for _ in range(N_REPEATS):
            gc.collect()
            watch = Watch()
            values = list(self._read(source))
            watch.note("read")
            batches = [encoder.encode_read(own) for own in values]
            watch.note("code")
            question.put(batches, NoReadout())
            watch.note("kernel")
            for batch in batches:
                self.index.match_lists(batch)
            watch.note("output")
            times = watch.times
            times["output"] = max(0.0, times["output"] - times["kernel"])
            best = {stage: min(best[stage], times[stage]) for stage in best}
        return {stage: 1e6 * own / len(self.lines) for stage, own in best.items()}

    def _read(self, source: Any) -> Any:
        table = self.index.view.encoder.table
        columns = None if isinstance(source, pa.ChunkedArray) else wanted_columns(table)
        for rows in split_events(source, Wanted(columns)):
            yield rows.read(table, Rejects())

    # ── commands and jobs ──────────────────────────────────────────────────────────────────

    def _time_command(self, file: Path) -> dict[str, float]:
        """The stages of a batch, and what is left of the command's time as output."""
        few, printed = self.folder / "few.jsonl", self.folder / "matches.jsonl"
        few.write_bytes(self.lines[0] + b"\n")
        stages = self._time_batch(file)
        spent = [
            min(run_tamis("match", str(self.saved), str(own), output=printed).cpu for _ in range(3))
            for own in (few, file)
        ]
        total = 1e6 * (spent[1] - spent[0]) / (len(self.lines) - 1)
        inner = stages["read"] + stages["code"] + stages["kernel"]
        return stages | {"output": max(0.0, total - inner)}

    def _time_spark(self) -> dict[str, float]:
        """The stages of a batch in one process, and what a job takes more."""
        import tamis.spark as ts

        sizes = [self.size.n_spark // 8, self.size.n_spark]
        spent = []
        for n_events in sizes:
            copies = pa.concat_tables([self.texts] * -(-n_events // len(self.lines)))
            path = self.folder / f"texts-{n_events}"
            path.mkdir()
            _write_parts(copies.slice(0, n_events), path)
            events = self.spark.read.parquet(str(path))
            job = ts.match_lists(events, str(self.saved), event_id="id", attributes="body")
            drain(job)
            spent.append(min(measure(lambda job=job: drain(job)).cpu for _ in range(3)))
        total = 1e6 * (spent[1] - spent[0]) / (sizes[1] - sizes[0])
        stages = self._time_batch(self.texts["body"])
        return stages | {"Spark": max(0.0, total - sum(stages.values()))}

    # ── single events ──────────────────────────────────────────────────────────────────────

    def _time_single(self, events: Sequence[Any]) -> dict[str, float]:
        """The medians of the stages. Codes and kernel are one call; the kernel is timed by matching
        the same codes again.
        """
        question = self.index.view.ask(None, None, None)
        matcher, singles = question.parts[0].matcher, question.singles
        found: dict[str, list[float]] = {"read": [], "both": [], "kernel": []}
        for event in events:
            self.index.match(event)  # binds kernels; later, other events are in the cache
        for event in events:
            start = time.thread_time_ns()
            buffer = singles.read(event)
            found["read"].append(time.thread_time_ns() - start)
            scratch = matcher._take()
            start = time.thread_time_ns()
            matcher._match(buffer, scratch)
            found["both"].append(time.thread_time_ns() - start)
            arrays, _, _, wanted = matcher._addresses
            start = time.thread_time_ns()
            matcher._kernels.match_settled(arrays, wanted, *scratch.addresses[1:], buffer.address)
            found["kernel"].append(time.thread_time_ns() - start)
            matcher._scratches.append(scratch)
            singles.give_back(buffer)
        clock = time_clock()
        medians = {
            stage: max(0.0, statistics.median(own) - clock) / 1000 for stage, own in found.items()
        }
        code = max(0.0, medians["both"] - medians["kernel"])
        inner = medians["read"] + medians["both"]
        output = max(0.0, time_each(self.index.match, events) - inner)
        return {
            "read": medians["read"],
            "code": code,
            "kernel": medians["kernel"],
            "output": output,
        }


class Watch:
    """The CPU time of one stage after the other."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._start = time.process_time()

    def note(self, stage: str) -> None:
        """The stage has ended."""
        now = time.process_time()
        self.times[stage] = now - self._start
        self._start = now


def _pick(event: Mapping[str, Any], paths: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """The event with these attributes only; texts for the numbers that are not integers."""
    kept: dict[str, Any] = {}
    for path, kind in paths.items():
        value: Any = event
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        own = kept
        for name in path[:-1]:
            own = own.setdefault(name, {})
        is_text = kind.name == "string"
        own[path[-1]] = value if isinstance(value, str if is_text else int) else None
    return kept


def _write_parts(texts: pa.Table, folder: Path) -> None:
    """Some files, so that all cores have work to the end."""
    step = -(-len(texts) // 8)
    for first in range(0, len(texts), step):
        part = texts.slice(first, step)
        ids = pa.array(range(first, first + len(part)))
        pq.write_table(part.append_column("id", ids), folder / f"{first:09}.parquet")
