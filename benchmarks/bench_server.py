"""What does the match server cost? Against the engine in this process, in the same run.

The server is a real `tamis serve` in a process of its own. Everything that is published is archived
and on disk, with its matches, when the answer comes. `TAMIS_BENCH_SIZE` chooses the sizes: `small`
(the default) and `full` have 100,000 subscriptions, and differ in the start and the number of
streams; `tiny` only shows that all runs. Targets are judged at the sizes that they are for.
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
import pyarrow as pa

import tamis
from benchmarks import server_latency, server_streams
from benchmarks.server_process import Server, ask, fill
from benchmarks.targets import Target, chosen_size, make_row
from tamis.lab.workloads import AbeGen, AbeParams, InSets, InSetsParams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.targets import Row

TITLE = "The match server against the engine in one process"
N_ROUNDS: Final = 3
N_CONNECTIONS: Final = 3  # a request is read while another is matched and a third is written
ARROW: Final = "vnd.apache.arrow.stream"
LINES: Final = "x-ndjson"


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    n_subscriptions: int
    n_batches: int
    n_events: int  # of a batch
    n_started: int  # subscriptions of a server that starts
    n_streams: int
    seconds: float  # of each load of single events
    n_first: int  # subscriptions whose first match is awaited


SIZES: Final = {
    "tiny": Size(2_000, 3, 512, 2_000, 50, 0.5, 5),
    "small": Size(100_000, 12, 8_192, 100_000, 2_000, 10.0, 100),
    "full": Size(100_000, 24, 8_192, 1_000_000, 10_000, 30.0, 300),
}
_LARGE: Final = ("small", "full")
TARGETS: Final = {
    "publish Arrow": Target(0.5, "ratio", True, _LARGE),
    "publish JSON lines": Target(0.25, "ratio", True, _LARGE),
    "publish ABE-Gen, matches stored": Target(5_000_000, "value", True, _LARGE),
    "publish one event at half load, p99": Target(25, sizes=_LARGE),
    "the same, p99 by p50": Target(10, sizes=_LARGE),
    "subscribe to first delivered match, p99": Target(100, sizes=_LARGE),
    # The load of the rows above: of 100 subscribes and 100 unsubscribes a second, some are still
    # under way at the end.
    "changes meanwhile": Target(99, "each", True, _LARGE),
    "start to ready": Target(3.0, sizes=("full",)),
    "streams held": Target(10_000, "value", True, ("full",)),
}
_row = partial(make_row, TARGETS)


def run() -> Iterator[Row]:
    """One row per figure."""
    size = SIZES[chosen_size()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from _measure_batches(folder / "batches", size)
        yield from _measure_abe_gen(folder / "abe", size)
        yield from _measure_singles(folder / "singles", size)
        yield from _measure_start(folder / "start", size)
        yield from _measure_streams(folder / "streams", size)


# ── batches ─────────────────────────────────────────────────────────────────────────────────


class Bodies(NamedTuple):
    """Requests with the same kind of content."""

    kind: str
    contents: Sequence[bytes]


def _in_sets(n: int) -> InSets:
    """A workload whose events match about 10 of 100,000 subscriptions."""
    return InSets(InSetsParams(n_expressions=n, n_values=(1, 3)))


def _measure_batches(folder: Path, size: Size) -> list[Row]:
    workload = _in_sets(size.n_subscriptions)
    texts = workload.expressions()
    batches = _split(workload.event_table(size.n_batches * size.n_events), size.n_events)
    index = tamis.build({f"s{at}": text for at, text in enumerate(texts)}, workload.schema)
    n_matches, engine = _measure_engine(index, batches)
    fill(folder, workload.schema, texts)
    n_events = size.n_batches * size.n_events
    rows = []
    for what, bodies in (
        ("publish Arrow", Bodies(ARROW, [_to_arrow(own) for own in batches])),
        ("publish JSON lines", Bodies(LINES, [_to_lines(own) for own in batches])),
    ):
        with Server(folder) as server:
            spent = _publish(server, bodies, n_events, n_matches)
        own = {"baseline": n_events / engine, "ratio": engine / spent}
        rows.append(_row(what, n_events / spent, "events/s", **own))
    matches = n_matches / n_events
    return [_row("matches of an event", matches, "subscriptions"), *rows]


def _split(table: pa.Table, n_events: int) -> list[pa.RecordBatch]:
    return table.combine_chunks().to_batches(max_chunksize=n_events)


def _to_arrow(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _to_lines(batch: pa.RecordBatch) -> bytes:
    events = ({k: v for k, v in row.items() if v is not None} for row in batch.to_pylist())
    return b"\n".join(map(orjson.dumps, events))


def _measure_engine(index: Any, batches: Sequence[pa.RecordBatch]) -> tuple[int, float]:
    """The matches of all events, and the seconds that `match_batch` takes for them."""
    tables = [pa.Table.from_batches([own]) for own in batches]
    n_matches = sum(len(index.match_batch(own)) for own in tables)  # compiles
    return n_matches, _best(lambda: [index.match_batch(own) for own in tables])


def _best(call: Callable[[], Any]) -> float:
    found = []
    for _ in range(N_ROUNDS):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return min(found)


def _publish(server: Server, bodies: Bodies, n_events: int, n_matches: int) -> float:
    """The seconds until all requests are answered, by some connections at once."""
    connections = [server.connect() for _ in range(N_CONNECTIONS)]

    def send(own: int) -> tuple[int, int]:
        found = [
            ask(connections[own], "POST", "/v1/events", body, bodies.kind)
            for body in bodies.contents[own::N_CONNECTIONS]
        ]
        return sum(own["accepted"] for own in found), sum(own["matches"] for own in found)

    def send_all() -> None:
        found = list(pool.map(send, range(N_CONNECTIONS)))
        assert [sum(own) for own in zip(*found, strict=True)] == [n_events, n_matches]

    with ThreadPoolExecutor(N_CONNECTIONS) as pool:
        send_all()  # loads the kernels
        return _best(send_all)


def _measure_abe_gen(folder: Path, size: Size) -> list[Row]:
    """An event matches 4 % of the subscriptions: it is the matches that cost."""
    workload = AbeGen(AbeParams(n_expressions=size.n_subscriptions))
    texts = workload.expressions()
    n_events = min(size.n_events, 512)
    batches = _split(workload.event_table(size.n_batches * n_events), n_events)
    index = tamis.build({f"s{at}": text for at, text in enumerate(texts)}, workload.schema)
    n_matches, engine = _measure_engine(index, batches)
    fill(folder, workload.schema, texts)
    with Server(folder) as server:
        bodies = Bodies(ARROW, [_to_arrow(own) for own in batches])
        spent = _publish(server, bodies, size.n_batches * n_events, n_matches)
    own = {"baseline": n_matches / engine, "ratio": engine / spent}
    return [_row("publish ABE-Gen, matches stored", n_matches / spent, "matches/s", **own)]


# ── one at a time ───────────────────────────────────────────────────────────────────────────


def _measure_singles(folder: Path, size: Size) -> list[Row]:
    workload = _in_sets(size.n_subscriptions)
    texts = workload.expressions()
    fill(folder, workload.schema, texts)
    events = [orjson.dumps(own) for own in workload.events(1_000)]
    with Server(folder) as server:
        found = server_latency.measure(server.port, events, texts, size.seconds)
        first = server_latency.measure_first(server.port, size.n_first)
    p50, p99 = found.quantile(0.5), found.quantile(0.99)
    return [
        _row("publish one event, saturated", found.saturated, "events/s"),
        _row("publish one event at half load, p50", p50, "ms", rate=found.rate),
        _row("publish one event at half load, p99", p99, "ms", rate=found.rate),
        _row("the same, p99 by p50", p99 / p50, "×"),
        _row(
            "changes meanwhile",
            (found.n_subscribed + found.n_unsubscribed) / found.seconds,
            "changes/s",
            each=min(found.n_subscribed, found.n_unsubscribed) / found.seconds,
        ),
        _row("subscribe to first delivered match, p50", first.quantile(0.5), "ms"),
        _row("subscribe to first delivered match, p99", first.quantile(0.99), "ms"),
    ]


# ── the start, and streams ──────────────────────────────────────────────────────────────────


def _measure_start(folder: Path, size: Size) -> list[Row]:
    workload = _in_sets(size.n_started)
    fill(folder, workload.schema, workload.expressions())
    found = []
    for _ in range(N_ROUNDS):
        with Server(folder) as server:
            found.append(server.wait_until_ready())
    return [_row("start to ready", min(found), "s", subscriptions=size.n_started)]


def _measure_streams(folder: Path, size: Size) -> list[Row]:
    workload = _in_sets(size.n_started)
    n_files = server_streams.allow_files(size.n_streams)
    fill(folder, workload.schema, [])
    with Server(folder) as server:
        held = server_streams.hold(server, min(size.n_streams, n_files))
    return [
        _row("streams held", held.n_streams, "streams"),
        _row("memory of a stream", held.bytes_each, "bytes"),
        _row("publish to all streams", held.seconds, "s"),
    ]
