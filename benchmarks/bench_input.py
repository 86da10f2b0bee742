"""What does reading cost? `tamis match` on the same events in each format, in CPU time.

With TAMIS_BASE set to the `src` folder of another version, that one is measured in the same run,
in turn with this one: formats that it does not read are left out of its column.
"""

from __future__ import annotations

import csv
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import tamis

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "tamis match --counts subscription, microseconds of CPU per event, by format"
SEED = 1
N_EVENTS = 100_000
N_SUBSCRIPTIONS = 5_000
N_REPEATS = 2
USED: Final = [f"a{number}" for number in range(10)]  # attributes that expressions name
UNUSED: Final = [f"b{number}" for number in range(10)]
OURS: Final = str(Path(tamis.__file__).parents[1])


def run() -> list[dict[str, Any]]:
    """One row per format."""
    base = os.environ.get("TAMIS_BASE")
    with tempfile.TemporaryDirectory() as folder:
        files = _write_all(Path(folder))
        indexes = {source: _build(source, Path(folder)) for source in (base, OURS) if source}
        empty = Path(folder) / "empty.jsonl"
        empty.touch()
        starts = {source: _time(source, index, empty) or 0.0 for source, index in indexes.items()}
        return [_measure(indexes, starts, file, base) for file in files]


def _build(source: str, folder: Path) -> Path:
    index = folder / f"index of {source.replace('/', '+')}"
    schema = ", ".join(f"{name} {_type(at)}" for at, name in enumerate(USED))
    command = [sys.executable, "-m", "tamis", "build", str(folder / "s.jsonl"), "-o", str(index)]
    environment = os.environ | {"PYTHONPATH": source}
    subprocess.run([*command, "--schema", schema], env=environment, check=True, capture_output=True)
    return index


def _measure(
    indexes: dict[str, Path], starts: dict[str, float], file: Path, base: str | None
) -> dict[str, Any]:
    """The time of each version, without that of its start."""
    times = {source: _time(source, index, file) for source, index in indexes.items()}
    used = {source: time - starts[source] for source, time in times.items() if time is not None}
    row: dict[str, Any] = {"format": file.name.partition(".")[2], "CPU": _per_event(used[OURS])}
    if base is not None and base in used:
        ratio = round(used[base] / used[OURS], 2)
        row |= {"CPU before": _per_event(used[base]), "before / now": ratio}
    return row


def _time(source: str, index: Path, file: Path) -> float | None:
    """The best of some runs; None if the version cannot read the file."""
    times = [_match(source, index, file) for _ in range(N_REPEATS)]
    return min((time for time in times if time is not None), default=None)


def _per_event(seconds: float) -> float:
    return round(seconds * 1e6 / N_EVENTS, 3)


def _match(source: str, index: Path, file: Path) -> float | None:
    """The CPU time of the command; None if it cannot read the file."""
    command = [sys.executable, "-m", "tamis", "match", str(index), str(file)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*command, "--counts", "subscription"],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return None
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# ── files ───────────────────────────────────────────────────────────────────────────────────


def _write_all(folder: Path) -> list[Path]:
    rng = random.Random(SEED)
    rows = [{"id": str(at), "expression": _expression(rng)} for at in range(N_SUBSCRIPTIONS)]
    (folder / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    events = [_event(rng) for _ in range(N_EVENTS)]
    table = pa.Table.from_pylist(events)
    writers: dict[str, Callable[[Path], Any]] = {
        "e.jsonl": lambda path: path.write_text("".join(json.dumps(e) + "\n" for e in events)),
        "e.csv": lambda path: _write_csv(path, events),
        "e.parquet": lambda path: pq.write_table(table, path),
        "e.arrow": lambda path: _write_arrow(path, table),
        "e.jsonl.gz": lambda path: _compress(path, "gzip"),
        "e.jsonl.zst": lambda path: _compress(path, "zstd"),
        "e.avro": lambda path: _write_avro(path, events),
    }
    for name, write in writers.items():
        write(folder / name)
    return [folder / name for name in writers]


def _type(number: int) -> str:
    return ("BIGINT", "STRING", "DOUBLE")[number % 3]


def _value(rng: random.Random, number: int) -> Any:
    drawn = rng.randrange(1_000)
    return (drawn, f"text {drawn}", drawn / 8)[number % 3]


def _event(rng: random.Random) -> dict[str, Any]:
    return {name: _value(rng, at) for names in (USED, UNUSED) for at, name in enumerate(names)}


def _expression(rng: random.Random) -> str:
    chosen = rng.sample(range(len(USED)), 3)
    return " AND ".join(f"{USED[at]} = {_spell(_value(rng, at))}" for at in chosen)


def _spell(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _write_csv(path: Path, events: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(events[0]))
        writer.writeheader()
        writer.writerows(events)


def _write_arrow(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def _compress(path: Path, codec: str) -> None:
    with pa.CompressedOutputStream(str(path), codec) as stream:
        stream.write(path.with_suffix("").read_bytes())


def _write_avro(path: Path, events: list[dict[str, Any]]) -> None:
    import fastavro

    types = ("long", "string", "double")
    fields = [
        {"name": name, "type": types[at % 3]}
        for names in (USED, UNUSED)
        for at, name in enumerate(names)
    ]
    schema = {"type": "record", "name": "event", "fields": fields}
    with path.open("wb") as file:
        fastavro.writer(file, schema, events)
