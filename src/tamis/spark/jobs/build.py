"""The build job: builds parts from subscriptions, and a version from parts."""

from __future__ import annotations

import json
import pickle
import warnings
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tamis.errors import InputError, TamisError, TamisWarning, warn
from tamis.index.build import build_contents, collect_votes
from tamis.input.schemas import add_definitions, check_definitions
from tamis.language.infer import SchemaVotes
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.lookalikes import Lookalike, describe_lookalikes, find_lookalikes
from tamis.language.moments import read_at
from tamis.language.names import print_path
from tamis.language.schema import Schema
from tamis.logic.evaluate import Missing
from tamis.match.reports import describe_separators, describe_unused_columns
from tamis.operators.registry import REGISTRY, module_names, with_checks, with_registered
from tamis.spark import part_assignment as slots
from tamis.spark.failures import raising_worker_errors
from tamis.spark.jobs.rows import (
    EMPTY_ROWS,
    ROW_NAMES,
    count_rows,
    find_odd_tags,
    find_switches,
    has_expired,
    read_details,
    select_rows,
    split_problems,
)
from tamis.spark.stored_subscriptions import StoredState, find_source
from tamis.spark.workers import run_on_workers
from tamis.versions.log_position import LogPosition
from tamis.versions.manifest import BASE, Part, Version, read_part
from tamis.versions.part_files import REJECTS, digest_rows, is_whole, read_table, write_part
from tamis.versions.printing import format_table
from tamis.versions.store import IndexStore, Retention
from tamis.versions.tables import PACKED
from tamis.versions.tuning import (
    find_operator_statistics,
    find_sample,
    find_terms,
    read_sample,
    read_terms,
    tune,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

    from tamis.index.contents import Contents
    from tamis.index.frequencies import Frequencies
    from tamis.match.switches import Switches
    from tamis.versions.storage import Storage

OFFERED: Final = "operators"  # in a version's provenance: the operators that could be called
ROWS: Final = "rows"  # in the same place: how many subscriptions were read
SUBSCRIPTIONS_PER_PART: Final = 500_000
_NAMED: Final = ("misspelt", "unused", "unknown")
_COUNTED: Final = ("subscriptions", "rejects", "expired", "parts", "built")


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The result of a build."""

    version: Version  # now the newest one
    n_subscriptions: int  # of that version
    n_rejects: int  # subscriptions that are invalid and were left out
    n_parts: int  # of that version
    n_built: int  # of the parts; the others were reused from the previous version
    n_expired: int = 0  # subscriptions left out because they will never be valid again
    pruned: tuple[str, ...] = ()  # names of versions and folders of parts that were deleted
    is_published: bool = True  # False: the newest version was equal, and stays
    misspelt: tuple[Lookalike, ...] = ()  # similar to others used much more often
    unused: tuple[str, ...] = ()  # attributes of the declared schema that no subscription uses
    unknown: tuple[str, ...] = ()  # ids to remove that no subscription had

    def __repr__(self) -> str:
        counts = {name: getattr(self, f"n_{name}") for name in _COUNTED}
        shown = {"version": self.version.name, **counts, "bytes": self.version.n_bytes}
        shown["published"] = "yes" if self.is_published else "no: nothing has changed"
        shown |= {name: len(own) for name in _NAMED if (own := getattr(self, name))}
        return format_table(list(shown), [list(shown.values())])


def build(  # noqa: PLR0913 - all that decides what the index is
    subscriptions: DataFrame | str | os.PathLike[str],
    store: str | os.PathLike[str] | IndexStore,
    *,
    as_of: int | None = None,
    schema: Any = None,
    definitions: Mapping[str, str] | None = None,
    missing: str | Missing = Missing.UNDEFINED,
    limits: Limits = DEFAULT_LIMITS,
    id_column: str | None = None,
    expression_column: str = "expression",
    parts: int | None = None,
    partition_by: str = slots.HASH,
    operators: str | Sequence[str] = (),
    incremental: bool = True,
    retention: Retention | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> BuildReport:
    """Build the index of all subscriptions and publish it as the store's next version.

    In: subscription_id (or id) string, expression string, and optionally tags array<string>,
    valid_from timestamp, valid_until timestamp; all other columns are kept as attributes

    Instead of a DataFrame, `subscriptions` may be a store of subscriptions: its folder, or its
    address ("postgresql://…"). It is read as of the change `as_of`, by default the newest, and the
    version records the store's epoch and that change, from which `update` continues.

    An invalid subscription becomes a row of `rejects`. If there are no subscriptions, or all are
    invalid or have expired, an `InputError` is raised and nothing is published. Of several
    subscriptions with the same id, the first that has not expired when the build starts is used.
    Parts whose subscriptions have not changed are reused if they are undamaged, unless
    `incremental` is false; if no part has changed, the newest version stays and nothing is
    published. `operators` names modules that register operators; workers need only their
    signatures.

    `id_column` and `expression_column` are the names of these columns in the input. `schema`
    declares the attributes' types, which are inferred from the expressions without it;
    `definitions` are conditions by name, to which expressions refer as `@name`. `missing` is the
    result of a test on a missing attribute, and `limits` bounds the size of expressions.
    `parts` is the number of parts, chosen by size if not given, and `partition_by` how
    subscriptions are distributed to them (hash, structure). `retention` determines which older
    versions are kept, and `provenance` is stored with the version unchanged.
    """
    target = store if isinstance(store, IndexStore) else IndexStore(store)
    if missing not in tuple(Missing):
        raise InputError(f"missing is {missing!r}; allowed: {', '.join(Missing)}")
    slots.check_partitioning(partition_by, parts)
    declared = None if schema is None else Schema.of(schema)
    if definitions is not None:
        declared = add_definitions(declared, definitions)
    is_declared = declared is not None and not declared.is_open
    target.expect_room()
    source, stored = find_source(subscriptions, as_of)
    before = target.newest_whole() if incremental else None
    now = read_at(None)
    rows = select_rows(source, id_column, expression_column).persist(StorageLevel.DISK_ONLY)
    try:
        with raising_worker_errors():
            n_rows, n_expired = count_rows(rows, now)
            # Subscriptions from an index may be none: all of them were removed.
            if not n_rows and (stored is not None or PACKED not in source.columns):
                raise _nothing_to_build(n_expired, stored)
            switches = find_switches(rows)
            odd_tags = find_odd_tags(rows) if "tags" in source.columns else []
            live = rows.where(~has_expired(now)) if n_expired else rows
            elected = declared
            if elected is None or elected.is_open:
                elected = infer_schema(live, limits, elected)
            elected = with_registered(elected, REGISTRY.load(operators))
            check_definitions(elected, limits)
            dealt, bounds = deal_rows(live, n_rows, parts, partition_by, before)
            task = BuildPart(
                target.storage,
                elected,
                Missing(missing),
                limits,
                Reusable.of(before, elected, is_declared=is_declared),
                sample=find_sample(target),
                statistics=find_operator_statistics(target),
                terms=find_terms(target),
                operators=module_names(operators),
            )
            built = run_parts(dealt, len(bounds), task)
    finally:
        rows.unpersist()
    expect_all(built, n_rows)
    parts_built = tuple(entry.part for entry in built)
    _expect_some(target, parts_built, n_rows)
    made = Version(
        number=0,
        parts=parts_built,
        schema=only_called(elected, parts_built).to_json(),
        missing=str(Missing(missing)),
        partitioning=slots.describe(partition_by, bounds),
        provenance={
            ROWS: n_rows,
            OFFERED: offered_names(elected),
            **({} if stored is None else stored.position.to_provenance(stored.where)),
            **(provenance or {}),
        },
    )
    seen: list[Version | None] = []

    def derive(newest: Version | None) -> Version | None:
        seen.append(newest)
        own = keep_given(made, newest)
        return None if is_same(newest, own) else own

    version = target.publish(derive, is_afresh=True)
    pruned = _prune(target, retention)
    report_columns(version.columns, switches)
    if (note := describe_separators(odd_tags)) is not None:
        warn(note)
    return BuildReport(
        version,
        version.n_subscriptions,
        version.n_rejects,
        len(built),
        sum(entry.is_new for entry in built),
        n_expired,
        tuple(pruned),
        is_published=version is not seen[-1],
        misspelt=() if is_declared else report_misspelt(version),
        unused=find_unused(declared, version) if is_declared and declared is not None else (),
    )


def offered_names(schema: Schema) -> list[str]:
    """The operators that subscriptions could call: with other operators, rejects may be valid."""
    return sorted(own.name for own in schema.operators)


def report_columns(names: Collection[str], switches: Switches) -> None:
    """Warn about columns of subscriptions that have no effect."""
    note = describe_unused_columns(names, switches)
    if note is not None:
        warn(note)


def report_misspelt(version: Version, new: Container[str] | None = None) -> tuple[Lookalike, ...]:
    """The attributes that are probably misspelt, with a warning; `new` are the candidates."""
    found = [one for one in find_lookalikes(version.uses) if new is None or one.attribute in new]
    if found:
        warn(describe_lookalikes(found))
    return tuple(found)


def find_unused(schema: Schema, version: Version) -> tuple[str, ...]:
    """The attributes of a schema that no subscription uses; an operator may read whole events."""
    used = set(version.attributes)
    return () if () in used else tuple(print_path(path) for path in schema if path not in used)


def _nothing_to_build(n_expired: int, stored: StoredState | None) -> InputError:
    holder = "the DataFrame" if stored is None else str(stored)
    n = f"all {n_expired:,} subscriptions have" if n_expired > 1 else "the only subscription has"
    return InputError(
        "no version was published: "
        + (f"{n} expired" if n_expired else f"{holder} holds no subscriptions"),
        hint="to empty an index, remove its subscriptions: tamis.spark.update(…, removed=[…])",
    )


def _expect_some(target: IndexStore, parts: tuple[Part, ...], n_rows: int) -> None:
    """Raise an error if every row was rejected, and show one of them."""
    if not n_rows or any(part.n_subscriptions for part in parts):
        return
    part = next(part for part in parts if part.n_rejects)
    first = read_table(target.storage, part, REJECTS).slice(0, 1).to_pylist()[0]
    named = f'subscription "{first["subscription_id"]}"' if first["subscription_id"] else "a row"
    every = "the only subscription was" if n_rows == 1 else f"all {n_rows:,} subscriptions were"
    raise InputError(
        f"no version was published: {every} rejected, such as {named}: {first['message']}",
        hint=first["hint"],
    )


def only_called(schema: Schema, parts: Iterable[Part]) -> Schema:
    """The schema without operators that no part calls."""
    called = {name for part in parts for name in part.operators}
    return schema.with_operators(own for own in schema.operators if own.name in called)


def _prune(target: IndexStore, retention: Retention | None) -> list[str]:
    try:
        return target.prune(retention)
    except TamisError as error:
        # The version is published, so the request succeeded.
        warnings.warn(f"old versions were not removed: {error.message}", TamisWarning, stacklevel=3)
        return []


def is_same(newest: Version | None, made: Version) -> bool:
    """Whether the newest version has equal parts with the same meaning, of the same state."""
    position = LogPosition.of(made)
    if position is not None and position != LogPosition.of(newest):
        return False  # `update` continues from the position
    return newest is not None and all(
        getattr(newest, name) == getattr(made, name)
        for name in ("parts", "schema", "missing", "partitioning")
    )


def keep_given(made: Version, newest: Version | None) -> Version:
    """The version with what the newest one has besides subscriptions that answer."""
    if newest is None:
        return made
    return replace(made, parts=(*made.parts, *newest.silent), statistics=newest.statistics)


# ── schema and parts of the rows ────────────────────────────────────────────────────────────


def infer_schema(rows: DataFrame, limits: Limits, known: Schema | None = None) -> Schema:
    """The schema inferred from most uses of each attribute, over all partitions; `known` has only
    definitions.
    """
    collected = run_on_workers(
        rows.select("expression"), CollectVotes(limits), CollectVotes.SCHEMA
    ).collect()
    votes = SchemaVotes()
    for row in sorted(collected, key=lambda row: row["partition"]):
        votes.merge(pickle.loads(row["votes"]))
    definitions = {} if known is None else known.definitions
    votes.merge(collect_votes(list(definitions.values()), limits))
    return votes.elect().with_definitions(definitions)


@dataclass(frozen=True, slots=True)
class CollectVotes:
    """The votes of one partition's expressions: one row for any number of expressions."""

    limits: Limits
    SCHEMA: ClassVar[str] = "partition int, votes binary"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        votes = SchemaVotes()
        for batch in batches:
            votes.merge(collect_votes(batch.column(0).to_pylist(), self.limits))
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        yield pa.RecordBatch.from_pydict(
            {"partition": pa.array([partition], pa.int32()), "votes": [pickle.dumps(votes)]}
        )


def deal_rows(
    rows: DataFrame, n_rows: int, n_parts: int | None, kind: str, before: Version | None
) -> tuple[DataFrame, list[int]]:
    """The rows with the number of their part, and the parts' bounds.

    The bounds of the previous version are kept while they fit: otherwise every part would change.
    """
    wanted = n_parts or max(1, -(-n_rows // SUBSCRIPTIONS_PER_PART))
    known = {} if before is None else before.partitioning
    is_fitting = known.get("kind") == kind and (
        len(known["bounds"]) == n_parts if n_parts else len(known["bounds"]) <= 2 * wanted
    )
    if kind == slots.HASH:
        slotted = rows.withColumn("slot", slots.hash_slot(F.col("subscription_id")))
        bounds = known["bounds"] if is_fitting else slots.even_bounds(wanted)
    else:
        slotted = _with_first_slot(
            rows.withColumn("slot", slots.structure_slot(F.col("expression")))
        )
        bounds = known["bounds"] if is_fitting else slots.choose_bounds(slotted, wanted)
    slot = F.coalesce(F.col("slot"), F.lit(0))
    return slotted.withColumn("part", slots.part_of(slot, bounds)).drop("slot"), bounds


def _with_first_slot(slotted: DataFrame) -> DataFrame:
    """Rows with the same id go to the same part, which reports the duplicates."""
    repeated = (
        slotted.groupBy("subscription_id")
        .agg(F.min_by("slot", "position").alias("first_slot"), F.count("*").alias("n"))
        .where("n > 1")
        .drop("n")
    )
    joined = slotted.join(F.broadcast(repeated), "subscription_id", "left")
    return joined.withColumn("slot", F.coalesce("first_slot", "slot")).drop("first_slot")


# ── parts ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Reusable:
    """Parts of the previous version that may be reused, by digest."""

    parts: dict[str, Part]

    @classmethod
    def of(cls, before: Version | None, schema: Schema, *, is_declared: bool) -> Reusable:
        if before is None:
            return cls({})
        known = before.typed_schema()
        called = {own.name for own in known.operators}
        alike = schema.with_operators(own for own in schema.operators if own.name in called)
        is_same = known.to_json() == alike.to_json()
        is_same &= before.provenance.get(OFFERED, []) == offered_names(schema)
        # If a declared schema no longer has an attribute, expressions that use it become rejects.
        has_all = all(path in schema for path in known) or not is_declared
        # A type in full: how values are read, and how words are split.
        agrees = all(str(known[path]) == str(schema[path]) for path in known if path in schema)
        agrees &= known.definitions == schema.definitions
        return cls(
            {
                part.digest: replace(part, n_hidden=0)
                for part in before.parts
                # Rejected subscriptions may be valid under another schema.
                if part.kind == BASE and (is_same or (has_all and agrees and part.n_rejects == 0))
            }
        )


@dataclass(frozen=True, slots=True)
class BuiltPart:
    """A task's report on its part."""

    number: int
    n_rows: int
    is_new: bool
    part: Part


@dataclass(frozen=True, slots=True)
class BuildPart:
    """Builds the part of the given rows, unless it exists already; returns one row about it."""

    storage: Storage
    schema: Schema
    missing: Missing
    limits: Limits
    reusable: Reusable
    kind: str = BASE
    removed: tuple[str, ...] = ()
    sample: str | None = None  # an object with a sample of events
    statistics: Mapping[str, Any] = field(default_factory=dict)  # kept with the part
    terms: str | None = None  # an object with the frequencies of words
    operators: tuple[str, ...] = ()  # modules, which check constants if workers have them
    SCHEMA: ClassVar[str] = "number int, n_rows bigint, is_new boolean, part string"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [batch for batch in batches if batch.num_rows]
        if not found:
            return
        table = pa.Table.from_batches(found)
        number = table["part"][0].as_py()
        yield self.say(number, table.num_rows, *self.build(table))

    def build(self, table: pa.Table) -> tuple[bool, Part]:
        """Whether the part was built, and the part."""
        # Sorted by id, so that equal subscriptions make equal parts wherever they were stored.
        rows = table.sort_by([("subscription_id", "ascending"), ("position", "ascending")])
        rows = rows.select(list(ROW_NAMES[1:]))
        digest = digest_rows(rows, str(self.missing), self.limits)
        known = self.reusable.parts.get(digest)
        if known is not None and is_whole(self.storage, known):
            return False, known
        rows, refused = split_problems(rows)
        details, untagged = read_details(rows)
        built = build_contents(
            details.pairs,
            with_checks(self.schema, self.operators),
            self.missing,
            self.limits,
            tags=details.tags,
            validity=details.validity,
            attributes=details.attributes,
            statistics=self.statistics,
            frequencies=self._frequencies(),
        )
        contents = self._tune(built.contents)
        rejects = [*built.rejects, *refused, *untagged]
        part = write_part(self.storage, contents, digest, self.kind, rejects, self.removed)
        return True, part

    def _frequencies(self) -> Frequencies | None:
        counted = None if self.terms is None else self.storage.read(self.terms)
        return None if counted is None else read_terms(counted)

    def _tune(self, contents: Contents) -> Contents:
        sampled = None if self.sample is None else self.storage.read(self.sample)
        return contents if sampled is None else tune(contents, read_sample(sampled))

    @staticmethod
    def say(number: int, n_rows: int, is_new: bool, part: Part) -> pa.RecordBatch:
        """The one row about a part."""
        return pa.RecordBatch.from_pydict(
            {
                "number": pa.array([number], pa.int32()),
                "n_rows": pa.array([n_rows], pa.int64()),
                "is_new": [is_new],
                "part": [json.dumps(asdict(part))],
            }
        )


def run_parts(dealt: DataFrame, n_parts: int, task: BuildPart) -> list[BuiltPart]:
    """Build all parts, one task each. A few hundred bytes per part are sent to the driver."""
    rows = dealt.select(*ROW_NAMES, "part")
    by_part = rows.repartitionById(n_parts, "part")
    rows_of_parts = run_on_workers(by_part, task, BuildPart.SCHEMA).collect()
    built = [
        BuiltPart(row["number"], row["n_rows"], row["is_new"], read_part(json.loads(row["part"])))
        for row in rows_of_parts
    ]
    if not built:  # no rows at all: an empty index is valid
        is_new, part = task.build(EMPTY_ROWS.empty_table())
        built = [BuiltPart(0, 0, is_new, part)]
    return sorted(built, key=lambda entry: entry.number)


def expect_all(built: list[BuiltPart], n_rows: int) -> None:
    """Raise an error if rows were lost or duplicated."""
    n_seen = sum(entry.n_rows for entry in built)
    if n_seen != n_rows:
        raise InputError(
            f"the parts were built of {n_seen:,} subscriptions, but {n_rows:,} were read; "
            "nothing was published",
            hint="the input returns other rows when it is read again: write it to a table first",
        )
