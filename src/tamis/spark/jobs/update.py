"""Small changes: a version that reuses all parts and adds a small one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from tamis.errors import InputError, warn
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.moments import read_at
from tamis.language.names import print_path
from tamis.logic.evaluate import Missing
from tamis.operators.registry import REGISTRY, module_names, with_registered
from tamis.spark.failures import raising_worker_errors
from tamis.spark.jobs.build import (
    OFFERED,
    ROWS,
    BuildPart,
    BuildReport,
    Reusable,
    build,
    infer_schema,
    only_called,
    report_columns,
    report_misspelt,
    run_parts,
)
from tamis.spark.jobs.changes import find_changes
from tamis.spark.jobs.rows import find_switches, has_expired, select_rows
from tamis.spark.tables import numbered_parts
from tamis.spark.transforms import packed_subscriptions
from tamis.spark.workers import run_on_workers
from tamis.versions.manifest import DELTA, Part, Version
from tamis.versions.part_files import REMOVED
from tamis.versions.part_set import PartSet
from tamis.versions.schemas import extend_schema
from tamis.versions.store import IndexStore

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

SHOWN: Final = 3
MOST_DELTAS: Final = 16  # more are merged, since every task opens every part


def update(  # noqa: PLR0913
    spark: SparkSession,
    store: str | os.PathLike[str] | IndexStore,
    subscriptions: DataFrame | str | os.PathLike[str] | None = None,
    *,
    as_of: int | None = None,
    removed: Iterable[str] = (),
    limits: Limits = DEFAULT_LIMITS,
    most_deltas: int = MOST_DELTAS,
    operators: str | Sequence[str] = (),
) -> BuildReport:
    """Add, replace and remove subscriptions: publishes a version with an additional small part.

    `subscriptions` has the columns of `build`, and `removed` lists ids; ids that no subscription
    has are reported. If the newest version was made by the same update, or if nothing would change,
    nothing is published.

    If the version was built from a store of subscriptions, `subscriptions` may be that store: its
    folder, or its address. The part then has the changes in the store's log that the version lacks,
    up to the change `as_of` (by default the newest). If the log no longer has them all, a
    `HistoryError` says so; build the version again then.

    An invalid subscription becomes a reject, and the one it should have replaced stays. An expired
    one is left out, as in a build, and so is the one that it replaces. A stream that runs on the
    store uses the new version from its next batch on. `operators` names modules that register
    operators, and `limits` bounds expressions, as for `build`. A version with more than
    `most_deltas` small parts is rebuilt without them, as `compact` does.
    """
    target = store if isinstance(store, IndexStore) else IndexStore(store)
    base = target.current()
    changes = find_changes(spark, base, subscriptions, as_of, _check_removed(removed))
    gone = changes.hidden
    rows = select_rows(changes.subscriptions)
    now = read_at(None)
    with raising_worker_errors():
        expired = [
            row[0] for row in rows.where(has_expired(now)).select("subscription_id").collect()
        ]
        switches = find_switches(rows)
        live = rows.where(~has_expired(now))
        gone += tuple(one for one in expired if one is not None)
        found = with_registered(infer_schema(live, limits), REGISTRY.load(operators))
        schema = extend_schema(base.typed_schema(), found)
        task = BuildPart(
            *(target.storage, schema, Missing(base.missing), limits, Reusable({}), DELTA, gone),
            operators=module_names(operators),
        )
        (entry,) = run_parts(live.withColumn("part", F.lit(0)), 1, task)

        seen: list[Version] = []
        unknown: list[str] = []  # of the ids to remove; none if the job runs again

        def derive(newest: Version | None) -> Version | None:
            last = newest or base
            seen.append(last)
            if changes.are_in(last):
                return None
            noted = changes.record(last)
            unchanged = None if noted is last else noted
            if is_repeated(target, last, entry.part, gone):
                return unchanged
            unknown[:] = find_unknown(spark, target, last, gone)
            if is_empty(entry.part) and len(unknown) == len(set(gone)):
                return unchanged
            own = (*last.parts, entry.part)
            merged = only_called(extend_schema(last.typed_schema(), schema), own)
            made = replace(noted, parts=own, schema=merged.to_json())
            return replace(made, parts=count_hidden(spark, target, made))

        version = target.publish(derive)
        is_published = version is not seen[-1]
    not_there = tuple(one for one in unknown if one in changes.removed)
    if not_there:
        warn(_describe_unknown(not_there))
    new = {print_path(path) for path in entry.part.attributes if path not in base.typed_schema()}
    misspelt = report_misspelt(version, new)
    report_columns(set(entry.part.columns) - set(base.columns), switches)
    n_deltas = sum(part.kind == DELTA for part in version.parts)
    if n_deltas > most_deltas:
        return replace(compact(spark, target), misspelt=misspelt, unknown=not_there)
    return BuildReport(
        version,
        version.n_subscriptions,
        entry.part.n_rejects,
        len(version.parts),
        n_built=int(is_published and entry.part.id in (part.id for part in version.parts)),
        n_expired=len(expired),
        is_published=is_published,
        misspelt=misspelt,
        unknown=not_there,
    )


def is_empty(part: Part) -> bool:
    """Whether a part adds nothing, not even a reject."""
    return not (part.n_subscriptions or part.n_rejects)


def is_repeated(store: IndexStore, last: Version, part: Part, removed: Sequence[str]) -> bool:
    """Whether the newest part that answers makes the same changes: the job was run twice."""
    newest = last.answering[-1]
    if (newest.kind, newest.digest) != (part.kind, part.digest):
        return False
    table = PartSet(store.storage, last, (newest,)).read(newest, REMOVED)
    return table is not None and table["subscription_id"].to_pylist() == list(removed)


def compact(spark: SparkSession, store: str | os.PathLike[str] | IndexStore) -> BuildReport:
    """Rebuild the current version's subscriptions without deltas."""
    target = store if isinstance(store, IndexStore) else IndexStore(store)
    version = target.current()
    rows = packed_subscriptions(spark, PartSet.of(target.storage, version))
    known = version.partitioning
    kept = {name: own for name, own in version.provenance.items() if name not in (ROWS, OFFERED)}
    report = build(
        rows,
        target,
        schema=version.typed_schema(),
        missing=version.missing,
        parts=len(known["bounds"]) if known else None,
        partition_by=known.get("kind", "hash"),
        provenance=kept,
    )
    return replace(report, unused=())  # the schema was not declared here


def _check_removed(removed: Iterable[str]) -> tuple[str, ...]:
    if isinstance(removed, str) or not isinstance(removed, Iterable):
        raise InputError(f"removed must be a list of ids, not {type(removed).__name__}")
    gone = tuple(removed)
    wrong = next((one for one in gone if not isinstance(one, str)), None)
    if wrong is not None:
        raise InputError(f"removed has {wrong!r}; ids must be strings")
    return gone


def _describe_unknown(unknown: Sequence[str]) -> str:
    n = len(unknown)
    shown = ", ".join(f'"{one}"' for one in unknown[:SHOWN]) + (", …" if n > SHOWN else "")
    if n == 1:
        return f"an id to remove belongs to no subscription: {shown}; nothing was removed for it"
    return f"{n:,} ids to remove belong to no subscription: {shown}; nothing was removed for them"


# ── who is there ────────────────────────────────────────────────────────────────────────────


def find_unknown(
    spark: SparkSession, store: IndexStore, version: Version, ids: Sequence[str]
) -> tuple[str, ...]:
    """The ids that no subscription of the version has."""
    if not ids:
        return ()
    parts = PartSet.of(store.storage, version)
    numbers = spark.range(0, len(parts.parts), 1, min(len(parts.parts), 64))
    found = numbers.mapInArrow(FindIds(parts, tuple(ids)), FindIds.SCHEMA).collect()
    known = {row["subscription_id"] for row in found}
    return tuple(dict.fromkeys(one for one in ids if one not in known))


@dataclass(frozen=True, slots=True)
class FindIds:
    """One row for each id of a part's subscriptions that no later part hides."""

    parts: PartSet
    ids: tuple[str, ...]
    SCHEMA: ClassVar[str] = "subscription_id string"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        wanted = pa.array(self.ids, pa.string())
        for part in numbered_parts(self.parts, batches).open_parts():
            found = wanted.filter(pc.is_in(wanted, part.contents.ids))
            if part.gone is not None:
                found = found.filter(pc.invert(pc.is_in(found, part.gone)))
            yield pa.RecordBatch.from_pydict({"subscription_id": found})


# ── how many are hidden ─────────────────────────────────────────────────────────────────────


def count_hidden(spark: SparkSession, store: IndexStore, version: Version) -> tuple[Part, ...]:
    """The parts, each with the number of its subscriptions that later parts hide."""
    parts = PartSet.of(store.storage, version)
    numbers = spark.range(0, len(parts.parts), 1, min(len(parts.parts), 64))
    counted = run_on_workers(numbers, CountHidden(parts), CountHidden.SCHEMA).collect()
    counts: dict[Any, int] = {row["part"]: row["n"] for row in counted}
    return tuple(replace(part, n_hidden=counts.get(part.id, 0)) for part in version.parts)


@dataclass(frozen=True, slots=True)
class CountHidden:
    """One row for each part: how many of its subscriptions later parts hide."""

    parts: PartSet
    SCHEMA: ClassVar[str] = "part string, n bigint"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for opened in numbered_parts(self.parts, batches).open_parts():
            is_hidden = opened.find_hidden()
            n = 0 if is_hidden is None else int(np.count_nonzero(is_hidden))
            columns = {"part": [opened.part.id], "n": pa.array([n], pa.int64())}
            yield pa.RecordBatch.from_pydict(columns)
