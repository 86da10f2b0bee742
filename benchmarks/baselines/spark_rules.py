"""What one writes on Spark without an index: the same rules in five ways, answers compared.

Rules are conjunctions of four ranges over 30 columns. Each way gives a `Found`: how many pairs, and
a hash of all of them, so that a wrong answer cannot pass for a fast one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

N_COLUMNS: Final = 30
RANGE: Final = 1000  # values of a column
WIDTH: Final = 100  # of a rule's range
CHUNK: Final = 100  # rules in one query


class Rules(NamedTuple):
    """Rule i asks lows[i, j] <= column < lows[i, j] + WIDTH of four columns."""

    columns: np.ndarray  # int[n, 4]
    lows: np.ndarray  # int[n, 4]

    def texts(self) -> list[str]:
        """The rules as expressions, ours and Spark's."""
        return [
            " AND ".join(
                f"c{c} >= {low} AND c{c} < {low + WIDTH}"
                for c, low in zip(columns, lows, strict=True)
            )
            for columns, lows in zip(self.columns.tolist(), self.lows.tolist(), strict=True)
        ]


def draw_rules(n: int, seed: int | None = None) -> Rules:
    """Rules of which about one in ten thousand matches an event."""
    rng = np.random.default_rng(n if seed is None else seed)
    columns = np.argsort(rng.random((n, N_COLUMNS)), axis=1)[:, :4]
    return Rules(columns, rng.integers(0, RANGE - WIDTH, (n, 4)))


def draw_events(n: int) -> pa.Table:
    """Events with all columns."""
    rng = np.random.default_rng(7)
    columns = {f"c{c}": rng.integers(0, RANGE, n) for c in range(N_COLUMNS)}
    return pa.table({"id": np.arange(n), **columns})


# ── answers ─────────────────────────────────────────────────────────────────────────────────


class Found(NamedTuple):
    """Pairs of event and rule: how many, and the exclusive-or of their hashes."""

    n_pairs: int
    digest: int

    def __add__(self, other: Any) -> Found:
        return Found(self.n_pairs + other.n_pairs, self.digest ^ other.digest)


def find(pairs: DataFrame) -> Found:
    """What is in a DataFrame of `id` and `rule`."""
    from pyspark.sql import functions as F

    hashed = F.xxhash64(F.col("id").cast("bigint"), F.col("rule").cast("bigint"))
    (row,) = pairs.agg(F.count(F.lit(1)), F.bit_xor(hashed)).collect()
    return Found(row[0], row[1] or 0)


def by_tamis(events: DataFrame, index: str) -> Found:
    """By an index whose ids are the rules' numbers."""
    import tamis.spark as ts

    found = ts.match(events, index, event_id="id")
    return find(found.withColumnsRenamed({"event_id": "id", "subscription_id": "rule"}))


# ── ways ────────────────────────────────────────────────────────────────────────────────────


def by_select(events: DataFrame, rules: Rules) -> Found:
    """All rules in one expression."""
    return find(_flagged(events, list(enumerate(rules.texts()))))


def by_chunks(events: DataFrame, rules: Rules) -> Found:
    """A hundred rules at a time, whole-stage code generation off: more would not compile."""
    spark = events.sparkSession
    numbered = list(enumerate(rules.texts()))
    before = spark.conf.get("spark.sql.codegen.wholeStage")
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    try:
        chunks = (numbered[at : at + CHUNK] for at in range(0, len(numbered), CHUNK))
        return sum((find(_flagged(events, own)) for own in chunks), Found(0, 0))
    finally:
        spark.conf.set("spark.sql.codegen.wholeStage", before)


def _flagged(events: DataFrame, numbered: list[tuple[int, str]]) -> DataFrame:
    flags = ", ".join(f"IF({text}, {n}, NULL)" for n, text in numbered)
    return events.selectExpr("id", f"explode(array_compact(array({flags}))) AS rule")


def by_filters(events: DataFrame, rules: Rules) -> Found:
    """A filter for each rule, and their union."""
    from functools import reduce

    from pyspark.sql import functions as F

    own = (
        events.where(text).select("id", F.lit(n).alias("rule"))
        for n, text in enumerate(rules.texts())
    )
    return find(reduce(lambda one, other: one.union(other), own))


def by_cross_join(events: DataFrame, rules: Rules) -> Found:
    """Rules as rows: the columns' numbers and bounds; events as arrays."""
    from pyspark.sql import functions as F

    rows = [
        (n, columns, lows)
        for n, (columns, lows) in enumerate(
            zip(rules.columns.tolist(), rules.lows.tolist(), strict=True)
        )
    ]
    table = events.sparkSession.createDataFrame(rows, "rule int, cs array<int>, lows array<bigint>")
    values = events.select("id", F.array(*(f"c{c}" for c in range(N_COLUMNS))).alias("v"))
    condition = " AND ".join(
        f"v[cs[{j}]] >= lows[{j}] AND v[cs[{j}]] < lows[{j}] + {WIDTH}" for j in range(4)
    )
    return find(values.crossJoin(F.broadcast(table)).where(condition).select("id", "rule"))


def by_numpy(events: DataFrame, rules: Rules) -> Found:
    """One rule after the other over NumPy columns."""
    columns, lows = rules.columns.tolist(), rules.lows.tolist()

    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = [batch.column(f"c{c}").to_numpy() for c in range(N_COLUMNS)]
            ids = batch.column("id").to_numpy()
            rows, names = [], []
            for n, (own, bounds) in enumerate(zip(columns, lows, strict=True)):
                is_true = np.ones(len(ids), dtype=bool)
                for c, low in zip(own, bounds, strict=True):
                    is_true &= (values[c] >= low) & (values[c] < low + WIDTH)
                found = ids[is_true]
                rows.append(found)
                names.append(np.full(len(found), n))
            yield pa.RecordBatch.from_pydict(
                {"id": np.concatenate(rows), "rule": np.concatenate(names)}
            )

    return find(events.mapInArrow(scan, "id bigint, rule bigint"))


WAYS: Final[dict[str, Callable[[DataFrame, Rules], Found]]] = {
    "NumPy, a rule at a time, in mapInArrow": by_numpy,
    "cross join with rules as data": by_cross_join,
    "one select for each 100 rules": by_chunks,
    "one select of all rules": by_select,
    "union of a filter for each rule": by_filters,
}
# These take all memory or never end: each is tried in a separate process.
UNSAFE: Final = ("one select of all rules", "union of a filter for each rule")
