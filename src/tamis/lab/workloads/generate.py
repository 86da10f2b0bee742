"""Workloads as files: subscriptions and events as JSON lines and as Parquet.

A workload that exceeds the memory is generated on Spark, in chunks with one seed each. A chunk has
separate pools, so sharing within it is that of a workload of its size.
"""

from __future__ import annotations

import json
from ast import literal_eval
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tamis.errors import InputError
from tamis.lab.memory import available_bytes
from tamis.lab.workloads.abe_forest import AbeParams
from tamis.lab.workloads.abe_gen import AbeGen
from tamis.lab.workloads.ads_like import AdsLike, AdsLikeParams
from tamis.lab.workloads.fontoura import Fontoura, FontouraParams
from tamis.lab.workloads.in_sets import InSets, InSetsParams
from tamis.lab.workloads.keywords import KeywordParams, Keywords
from tamis.lab.workloads.sigma_like import SigmaLike, SigmaLikeParams

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

WORKLOADS: Final[dict[str, tuple[type, type]]] = {
    "abe_gen": (AbeGen, AbeParams),
    "ads_like": (AdsLike, AdsLikeParams),
    "fontoura": (Fontoura, FontouraParams),
    "in_sets": (InSets, InSetsParams),
    "keywords": (Keywords, KeywordParams),
    "sigma_like": (SigmaLike, SigmaLikeParams),
}
MOST: Final = 10_000_000  # of anything that a workload has many of, except rows
CHUNK: Final = 100_000  # expressions or events per seed, on Spark
_SAMPLE: Final = 200
_BYTES_PER_CHARACTER: Final = 4  # of a text, while it is drawn, joined and written
_BYTES_PER_ROW: Final = 400
_COPIES: Final = 3  # of events, while they are drawn


class Request(NamedTuple):
    """The workload to generate."""

    workload: str
    n_expressions: int
    n_events: int
    settings: Mapping[str, Any]


def make_workload(name: str, settings: Mapping[str, Any]) -> Any:
    """The workload of that name with those parameters."""
    if name not in WORKLOADS:
        raise InputError(f'no workload "{name}" in the lab; allowed: {", ".join(WORKLOADS)}')
    workload, params = WORKLOADS[name]
    kinds = {field.name: str(field.type) for field in fields(params)}
    for setting, value in settings.items():
        if setting not in kinds:
            problem = f'{name} has no parameter "{setting}"; allowed: {", ".join(kinds)}'
            raise InputError(problem)
        _refuse_kind(setting, value, kinds[setting])
    return workload(replace(params(), **settings))


def _refuse_kind(name: str, value: Any, kind: str) -> None:
    """Raise an error unless the value is a number, or a tuple of the right length, as the parameter
    requires.
    """
    values = value if isinstance(value, tuple) else (value,)
    is_number = all(type(one) is int or (type(one) is float and "float" in kind) for one in values)
    if not is_number or isinstance(value, tuple) != kind.startswith("tuple"):
        number = "number" if "float" in kind else "whole number"
        allowed = f"{number}s, such as (1, 2)" if kind.startswith("tuple") else f"a {number}"
        raise InputError(f"{name} is {value!r}; allowed: {allowed}")
    if name == "seed":
        if not 0 <= value < 2**63:
            raise InputError(f"seed is {value}; allowed: 0 to 2^63 - 1")
    elif not all(abs(one) <= MOST for one in values):  # neither infinity nor NaN
        raise InputError(f"{name} is {value}; allowed: numbers up to {MOST:,}")


def read_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Parameters given as `name=value`."""
    settings = {}
    for text in texts:
        name, sign, value = text.partition("=")
        try:
            settings[name.strip()] = literal_eval(value.strip())
        except (ValueError, SyntaxError):
            sign = ""
        if not sign:
            raise InputError(f'"{text}" is not a parameter; allowed: name=number')
    return settings


def generate(request: Request, folder: Path) -> list[Path]:
    """Write the workload to a folder; returns the files.

    Raises `InputError` if it would not fit in memory or if files exist already.
    """
    workload = make_workload(request.workload, request.settings)
    _refuse_large(workload, request)
    paths = _make_room(folder)
    texts = workload.expressions(request.n_expressions)
    _write(_subscriptions(texts, 0), paths["subscriptions.jsonl"], paths["subscriptions.parquet"])
    events = workload.event_table(request.n_events)
    _write(events, paths["events.jsonl"], paths["events.parquet"])
    paths["schema.json"].write_text(json.dumps(workload.schema, indent=1) + "\n")
    return list(paths.values())


def describe_sharing(request: Request) -> list[str]:
    """How often parts of expressions are used, by level; empty if parts are not shared."""
    workload = make_workload(request.workload, request.settings)
    if not hasattr(workload, "sharing") or not request.n_expressions:
        return []
    return [
        f"level {level.level}: each of {level.n_distinct:,} parts is used {level.ratio:.2f} times"
        for level in workload.sharing(request.n_expressions)
    ]


def generate_on_spark(spark: SparkSession, request: Request, folder: Path) -> list[Path]:
    """The same as directories of many files, generated by Spark's workers, with a seed per
    chunk.
    """
    workload = make_workload(request.workload, request.settings)
    paths = _make_room(folder)
    columns = {
        "subscriptions": "subscription_id string, expression string",
        "events": _spark_schema(workload.event_table(0).schema),
    }
    for kind, n_rows in (("subscriptions", request.n_expressions), ("events", request.n_events)):
        n_chunks = -(-n_rows // CHUNK)
        chunks = spark.range(n_chunks).repartition(max(1, n_chunks))
        drawn = chunks.mapInArrow(DrawChunks(request, kind, n_rows), columns[kind])
        # Generated once: the text files are written from the Parquet files.
        drawn.write.parquet(str(paths[f"{kind}.parquet"]))
        stored = spark.read.parquet(str(paths[f"{kind}.parquet"]))
        stored.write.json(str(paths[f"{kind}.jsonl"]))
    paths["schema.json"].write_text(json.dumps(workload.schema, indent=1) + "\n")
    return list(paths.values())


class DrawChunks:
    """A function for `mapInArrow` that takes numbers of chunks and returns their rows."""

    def __init__(self, request: Request, kind: str, n_rows: int) -> None:
        self.request = request
        self.kind = kind
        self.n_rows = n_rows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for chunk in batch.column("id").to_pylist():
                yield from self._draw(chunk).to_batches()

    def _draw(self, chunk: int) -> pa.Table:
        settings = dict(self.request.settings)
        seeds = np.random.SeedSequence((settings.get("seed", 1), chunk))
        settings["seed"] = int(seeds.generate_state(1)[0])
        workload = make_workload(self.request.workload, settings)
        first = chunk * CHUNK
        n_rows = min(CHUNK, self.n_rows - first)
        if self.kind == "events":
            return workload.event_table(n_rows)
        return _subscriptions(workload.expressions(n_rows), first)


def _subscriptions(texts: list[str], first: int) -> pa.Table:
    import pyarrow as pa

    ids = [f"s{number}" for number in range(first, first + len(texts))]
    return pa.table({"subscription_id": ids, "expression": pa.array(texts, pa.string())})


def _write(table: pa.Table, text: Path, parquet: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, parquet)
    with text.open("w", encoding="utf-8") as file:
        for batch in table.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                known = {name: value for name, value in row.items() if value is not None}
                file.write(json.dumps(known) + "\n")


def _spark_schema(schema: pa.Schema) -> str:
    names = {"int64": "bigint", "double": "double", "string": "string", "bool": "boolean"}
    return ", ".join(f"`{field.name}` {names[str(field.type)]}" for field in schema)


def _make_room(folder: Path) -> dict[str, Path]:
    kinds = ("subscriptions", "events")
    names = [*(f"{kind}.{end}" for kind in kinds for end in ("jsonl", "parquet")), "schema.json"]
    paths = {name: folder / name for name in names}
    for path in paths.values():
        if path.exists():
            raise InputError(f'"{path}" exists already; choose another folder')
    folder.mkdir(parents=True, exist_ok=True)
    return paths


def _refuse_large(workload: Any, request: Request) -> None:
    """Raise an error before any work if the workload will not fit."""
    sample = workload.expressions(_SAMPLE)
    length = sum(map(len, sample)) / len(sample)
    needed = int(request.n_expressions * (_BYTES_PER_CHARACTER * length + _BYTES_PER_ROW))
    events = workload.event_table(_SAMPLE)
    needed += request.n_events * (_COPIES * events.nbytes // _SAMPLE + _BYTES_PER_ROW)
    available = available_bytes()
    if needed > available:
        raise InputError(
            f"{request.n_expressions:,} expressions and {request.n_events:,} events need about "
            f"{needed / 1e9:.1f} GB; {available / 1e9:.1f} GB of memory are free",
            hint="generate it on Spark, with --spark",
        )
