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
SIZES: Final = (2_000, 202_000)  # events
N_SUBSCRIPTIONS = 5_000
N_REPEATS = 2
USED: Final = [f"a{number}" for number in range(10)]  # attributes that expressions name
UNUSED: Final = [f"b{number}" for number in range(10)]
OURS: Final = str(Path(tamis.__file__).parents[1])


def run() -> list[dict[str, Any]]:
    """One row per format."""
    base = os.environ.get("TAMIS_BASE")
    with tempfile.TemporaryDirectory() as folder:
        names = _write_all(Path(folder))
        indexes = {source: _build(source, Path(folder)) for source in (base, OURS) if source}
        return [_measure(indexes, Path(folder), name, base) for name in names]


def _build(source: str, folder: Path) -> Path:
    index = folder / f"index of {source.replace('/', '+')}"
    schema = ", ".join(f"{name} {_type(at)}" for at, name in enumerate(USED))
    command = [sys.executable, "-m", "tamis", "build", str(folder / "s.jsonl"), "-o", str(index)]
    environment = os.environ | {"PYTHONPATH": source}
    subprocess.run([*command, "--schema", schema], env=environment, check=True, capture_output=True)
    return index


def _measure(indexes: dict[str, Path], folder: Path, name: str, base: str | None) -> dict[str, Any]:
    used = {source: _time(source, index, folder, name) for source, index in indexes.items()}
    ours, before = used[OURS], used.get(base or "")
    assert ours is not None
    row: dict[str, Any] = {"format": name.partition(".")[2], "CPU": round(ours, 3)}
    if before is not None:
        row |= {"CPU before": round(before, 3), "before / now": round(before / ours, 2)}
    return row


def _time(source: str, index: Path, folder: Path, name: str) -> float | None:
    """Microseconds per event, without the start: that of many events less that of few. None if the
    version cannot read the file."""
    times = []
    for size in SIZES:
        found = [_match(source, index, folder / str(size) / name) for _ in range(N_REPEATS)]
        if None in found:
            return None
        times.append(min(time for time in found if time is not None))
    return 1e6 * (times[1] - times[0]) / (SIZES[1] - SIZES[0])


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


def _write_all(folder: Path) -> list[str]:
    """The subscriptions, and the events in folders by their number; the names of the files."""
    rng = random.Random(SEED)
    rows = [{"id": str(at), "expression": _expression(rng)} for at in range(N_SUBSCRIPTIONS)]
    (folder / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for size in SIZES:
        (folder / str(size)).mkdir()
        names = _write_events(folder / str(size), [_event(rng) for _ in range(size)])
    return names


def _write_events(folder: Path, events: list[dict[str, Any]]) -> list[str]:
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
    return list(writers)


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
