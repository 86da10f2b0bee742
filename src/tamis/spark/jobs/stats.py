"""The statistics job: describes events, for people and for the next build."""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DateType, NumericType, StringType, StructType

from tamis.errors import InputError
from tamis.language.names import print_path
from tamis.language.types import STRING
from tamis.spark.failures import raising_worker_errors
from tamis.spark.layout import expect_frame, expect_some, quoted, select_events, undisguised
from tamis.spark.transforms import count_terms
from tamis.versions.part_set import PartSet
from tamis.versions.store import IndexStore
from tamis.versions.tuning import write_terms

if TYPE_CHECKING:
    import os

    from pyspark.sql import Column, DataFrame

    from tamis.versions.manifest import Version

SAMPLE_ROWS: Final = 20_000
TOP: Final = 10
QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
COLUMNS_AT_ONCE: Final = 50  # more would make Spark compile one huge method
ERROR: Final = 0.02  # relative, of the sketches


def compute_statistics(
    events: DataFrame, paths: list[tuple[str, ...]] | None = None
) -> dict[str, Any]:
    """For each attribute: the share of events that have it, distinct values, most frequent values,
    quantiles. Counts are exact; the others are sketches of a fixed size.

    `paths` are the attributes to describe; without them, all columns.
    """
    expect_frame(events, "events")
    wanted = paths or [(name,) for name in events.columns]
    found = {path: column for path in wanted if (column := _column(events, path)) is not None}
    n_events = events.count()
    attributes: dict[str, Any] = {}
    items = list(found.items())
    for start in range(0, len(items), COLUMNS_AT_ONCE):
        own = items[start : start + COLUMNS_AT_ONCE]
        row = events.agg(*(_summary(*item).alias(f"c{n}") for n, item in enumerate(own))).first()
        for n, (path, _) in enumerate(own):
            attributes[print_path(path)] = _describe(row[n] if row else None, n_events)
    return {"n_events": n_events, "attributes": attributes}


def save_statistics(
    events: DataFrame,
    store: str | os.PathLike[str] | IndexStore,
    *,
    attributes: str | None = None,
    sample_rows: int = SAMPLE_ROWS,
    seed: int = 0,
) -> Version:
    """Compute statistics of the attributes that subscriptions use, and publish them with a sample
    of the events and the number of events with each word that subscriptions search for. The next
    build uses the sample to choose access children and the counts to order words.

    `attributes` is the column of whole events, a struct; without it each attribute has a column.
    `sample_rows` is the number of events kept, and `seed` determines which.
    """
    expect_frame(events, "events")
    target = store if isinstance(store, IndexStore) else IndexStore(store)
    version = target.current()
    if sample_rows < 1:
        raise InputError(f"a sample of {sample_rows} events; at least 1")
    events = _flatten(events, attributes)
    expect_some(events, version.attributes, None)
    with raising_worker_errors():
        statistics = compute_statistics(events, [path for path in version.attributes if path])
        sample = _sample(events, version, statistics["n_events"], sample_rows, seed)
        terms = _count_terms(events, target, version)
    if terms is not None and terms.num_rows:
        counted = write_terms(terms, statistics["n_events"])
        statistics |= _write(target, "terms", "-terms.parquet", counted)
    sink = pa.BufferOutputStream()
    pq.write_table(sample, sink)
    content = sink.getvalue().to_pybytes()
    statistics |= _write(target, "sample", ".parquet", content)
    statistics["sample_rows"] = sample.num_rows
    return target.publish(lambda newest: _with_statistics(newest or version, statistics))


def _write(target: IndexStore, what: str, suffix: str, content: bytes) -> dict[str, Any]:
    """Write an object of the statistics; returns its name."""
    # Named by its content: equal statistics are the same objects.
    name = f"statistics/{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
    target.storage.write(name, content)
    return {what: name, f"{what}_crc32": zlib.crc32(content)}


def _with_statistics(version: Version, computed: dict[str, Any]) -> Version | None:
    """The version with new statistics; None if it already has them. Statistics of operators
    stay.
    """
    learned = version.statistics.get("operators")
    kept = {} if learned is None else {"operators": learned}
    # In the form in which they are read from storage.
    statistics = json.loads(json.dumps(kept | computed))
    return None if version.statistics == statistics else replace(version, statistics=statistics)


def _flatten(events: DataFrame, attributes: str | None) -> DataFrame:
    if attributes is None:
        return events
    type_ = events.schema[attributes].dataType if attributes in events.columns else None
    if not isinstance(type_, StructType):
        actual = "not there" if type_ is None else type_.simpleString()
        raise InputError(
            f'column "{attributes}" is {actual}; statistics need typed columns or a struct',
            hint="read JSON with from_json, or write the events as Parquet",
        )
    return events.select(f"{quoted(attributes)}.*")


def _count_terms(events: DataFrame, target: IndexStore, version: Version) -> pa.Table | None:
    """How many events have each word or phrase; None if no attribute can be a text."""
    schema = version.typed_schema()
    if not any(schema[path] == STRING for path in version.attributes):
        return None
    parts = PartSet.of(target.storage, version)
    return count_terms(events, parts).toArrow()


def _sample(events: DataFrame, version: Version, n_events: int, n_rows: int, seed: int) -> pa.Table:
    selected, _ = select_events(events, version.attributes, None, None)
    attributes = selected.drop(selected.columns[0])
    if n_events > n_rows:
        # Slightly more than needed, then cut: the size of a sample varies.
        attributes = attributes.sample(min(1.0, 1.1 * n_rows / n_events), seed)
    return undisguised(attributes.limit(n_rows).toArrow())


def _column(events: DataFrame, path: tuple[str, ...]) -> tuple[Column, Any] | None:
    schema: Any = events.schema
    column = None
    for name in path:
        fields = {field.name: field.dataType for field in getattr(schema, "fields", ())}
        if name not in fields:
            return None
        column = F.col(quoted(name)) if column is None else column.getField(name)
        schema = fields[name]
    return None if column is None else (column, schema)


def _summary(path: tuple[str, ...], found: tuple[Column, Any]) -> Column:
    column, type_ = found
    simple = isinstance(type_, NumericType | StringType | BooleanType | DateType)
    nothing = F.lit(None)
    # Elements of arrays have no sketches: only their presence is known.
    distinct = nothing if isinstance(type_, ArrayType) else F.approx_count_distinct(column, ERROR)
    top = F.call_function("approx_top_k", column, F.lit(TOP)) if simple else nothing
    quantiles = (
        F.percentile_approx(column.cast("double"), list(QUANTILES), int(1 / ERROR) * 10)
        if isinstance(type_, NumericType)
        else nothing
    )
    return F.struct(F.count(column), distinct, top, quantiles)


def _describe(summary: Any, n_events: int) -> dict[str, Any]:
    n_present, n_distinct, top, quantiles = summary or (0, None, None, None)
    statistics: dict[str, Any] = {"present": n_present / n_events if n_events else 0.0}
    if n_distinct is not None:
        statistics["distinct"] = n_distinct
    if top:
        statistics["top"] = [
            [_plain(item[0]), item[1] / n_events] for item in top if item[0] is not None
        ]
    if quantiles:
        statistics["quantiles"] = dict(zip(map(str, QUANTILES), quantiles, strict=True))
    return statistics


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else str(value)
