"""The audit job: evaluates a share of the events again with another evaluator."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tamis.errors import ExpressionError, InputError
from tamis.language.check import check
from tamis.language.parser import parse
from tamis.logic.evaluate import Missing, evaluate
from tamis.operators.ask import ask
from tamis.spark.jobs.audit_sql import IS_LEFT_OUT, audit_by_spark
from tamis.spark.layout import ID, expect_frame, expect_some, only_attributes, select_events
from tamis.spark.matching import Matcher, WorkerQuestion, cut
from tamis.spark.plain_events import plain_events
from tamis.spark.printing import format_frame
from tamis.spark.workers import run_on_workers
from tamis.versions.opening import open_version
from tamis.versions.printing import format_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from pyspark.sql import DataFrame

    from tamis.language.ast import Condition
    from tamis.match.index import Index

N_SUBSCRIPTIONS: Final = 200  # drawn in addition to those that match
REFERENCE: Final = "reference"
SPARK: Final = "spark"
_TEXTS: Final = ("subscription_id", "engine", "reference")


@dataclass(frozen=True)
class Audit:
    """The result of an audit. Printing it shows the counts and the first disagreements.

    version: the name of the version whose answers were compared
    by: the other evaluator, "reference" or "spark"
    rows: a row for each disagreement (event_id, subscription_id, engine, reference string), and
    rows with subscription_id NULL and n_compared bigint: how many answers a task compared, 0 for
    an event that could not be compared
    """

    version: str
    by: str
    rows: DataFrame

    @property
    def disagreements(self) -> DataFrame:
        """A row for each answer that differs: event_id, subscription_id, engine, reference."""
        return self.rows.where("subscription_id IS NOT NULL").drop("n_compared")

    @property
    def left_out(self) -> DataFrame:
        """The event_id of events that Spark cannot compare, since none of its types holds a
        number.
        """
        return self.rows.where(IS_LEFT_OUT).select("event_id")

    @cached_property
    def counts(self) -> tuple[int, int]:
        """How many answers were compared, and how many of them differ; computed once."""
        (sums,) = self.rows.agg(F.sum("n_compared"), F.count("subscription_id")).collect()
        return sums[0] or 0, sums[1]

    @property
    def n_compared(self) -> int:
        """How many answers were compared."""
        return self.counts[0]

    @property
    def n_disagreements(self) -> int:
        """How many of them differ."""
        return self.counts[1]

    def to_pandas(self) -> Any:
        """The table of `disagreements`."""
        return self.disagreements.toPandas()

    def __repr__(self) -> str:
        return f"<Audit of {self.version} by {self.by}: print it, or see disagreements>"

    def __str__(self) -> str:
        names = ["version", "by", "compared", "disagreements"]
        summary = format_table(names, [[self.version, self.by, *self.counts]])
        return (
            f"{summary}\n\n{format_frame(self.disagreements)}" if self.n_disagreements else summary
        )


def audit(  # noqa: PLR0913
    events: DataFrame,
    index: Any,
    *,
    event_id: str | None = None,
    attributes: Any = None,
    at: Any = None,
    share: float = 0.001,
    n_subscriptions: int = N_SUBSCRIPTIONS,
    seed: int = 0,
    by: str = REFERENCE,
) -> Audit:
    """Compare the engine's answers with those of another evaluator, for a `share` of the events.

    `by` names it. The reference evaluator evaluates every match of a sampled event again, and also
    `n_subscriptions` drawn at random for each event, which finds missing matches. For Spark SQL's
    evaluator (`by="spark"`), `n_subscriptions` that have a Spark SQL form are drawn once, half of
    them from those that match something; this audit runs immediately. `seed` determines which
    events and subscriptions are drawn; `event_id`, `attributes` and `at` are as for `match`.
    """
    expect_frame(events, "events")
    if not 0 < share <= 1:
        raise InputError(f"share is {share}; above 0 and up to 1 is allowed")
    if n_subscriptions < 1:
        raise InputError(f"{n_subscriptions} subscriptions drawn; at least 1 is allowed")
    if by not in (REFERENCE, SPARK):
        raise InputError(f'audit by "{by}"; allowed: {REFERENCE}, {SPARK}')
    parts = open_version(index, at=at)
    expect_some(events, parts.version.attributes, attributes)
    sampled = events.where(F.rand(seed) < share)
    selected, layout = select_events(sampled, parts.version.attributes, event_id, attributes)
    if by == SPARK:
        where = {"event_id": event_id, "attributes": attributes}
        rows = audit_by_spark(selected, layout, parts, where, sampled, n_subscriptions, seed)
        return Audit(parts.version.name, by, rows)
    fields = [
        StructField("event_id", layout.id_type),
        *(StructField(n, StringType()) for n in _TEXTS),
    ]
    schema = StructType([*fields, StructField("n_compared", LongType())])
    matcher = AuditBatch(WorkerQuestion(parts, layout), n_subscriptions=n_subscriptions, seed=seed)
    return Audit(parts.version.name, by, run_on_workers(selected, matcher, schema))


@dataclass(frozen=True, slots=True)
class AuditBatch(Matcher):
    """Compares the engine's answers with the reference evaluator's."""

    n_subscriptions: int = N_SUBSCRIPTIONS
    seed: int = 0
    TRUTHS: ClassVar[dict[bool | None, str]] = {True: "true", False: "false", None: "undefined"}

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reference = Reference(self.parts.open(), self.parts.at)
        rng = random.Random(self.seed)
        n_compared = 0
        empty = pa.nulls(0)
        for batch in cut(batches):
            rows: list[int] = []
            listed: list[tuple[str, str, str]] = []
            events = plain_events(batch, self.layout, self.parts.version.typed_schema())
            for row, event in enumerate(events):
                if event is None:
                    continue
                disagreements, n = reference.compare(
                    batch.slice(row, 1), event, rng, self.n_subscriptions, self.layout.event
                )
                n_compared += n
                rows += [row] * len(disagreements)
                listed += disagreements
            empty = batch.column(ID).slice(0, 0)
            if rows:
                yield self._make_rows(
                    batch.column(ID).take(pa.array(rows, pa.int64())), listed, None
                )
        if n_compared:
            yield self._make_rows(pa.nulls(1, empty.type), [(None, None, None)], n_compared)

    @staticmethod
    def _make_rows(
        event_ids: pa.Array, disagreements: list[Any], n_compared: int | None
    ) -> pa.RecordBatch:
        columns: dict[str, Any] = {"event_id": event_ids}
        for at, name in enumerate(_TEXTS):
            columns[name] = pa.array([row[at] for row in disagreements], pa.string())
        columns["n_compared"] = pa.array([n_compared] * len(disagreements), pa.int64())
        return pa.RecordBatch.from_pydict(columns)


class Reference:
    """The reference evaluator's answers, expressions parsed as they are met."""

    def __init__(self, index: Index, at: datetime | None) -> None:
        self._index = index
        self._at = at
        self._shown: list[int] = index.list_valid(at).tolist()
        self._schema = index.view.catalogue.schema
        self._missing = Missing(index.parts[0].missing)
        self._conditions: dict[int, Condition | None] = {}

    def compare(
        self, row: pa.RecordBatch, event: Any, rng: random.Random, n_drawn: int, column: str | None
    ) -> tuple[list[tuple[str, str, str]], int]:
        """The disagreements (id, engine, reference) for one event, and the number of answers
        compared.
        """
        encoded = self._index.encode(only_attributes(row), column=column)
        found = self._index.match_batch(encoded, at=self._at)
        matched = set(found["subscription_id"].combine_chunks().indices.to_pylist())
        drawn = set(rng.sample(self._shown, min(n_drawn, len(self._shown))))
        disagreements = []
        for ordinal in sorted(matched | drawn):
            truth = self._evaluate(ordinal, event)
            if (truth is True) != (ordinal in matched):
                name = self._index.ids[ordinal].as_py()
                engine = AuditBatch.TRUTHS[True] if ordinal in matched else "not true"
                disagreements.append((name, engine, AuditBatch.TRUTHS[truth]))
        return disagreements, len(matched | drawn)

    def _evaluate(self, ordinal: int, event: Any) -> bool | None:
        if ordinal not in self._conditions:
            text = self._index.view.catalogue.text(ordinal)
            try:
                self._conditions[ordinal] = check(parse(text), self._schema, text=text)
            except ExpressionError:
                self._conditions[ordinal] = None  # it is in the index, so it was valid once
        condition = self._conditions[ordinal]
        if condition is None:
            return None
        return evaluate(condition, event, self._missing, ask(condition, event).answers)
