"""Irmak's algorithms and the product on the same queries and documents.

The paper replicates its queries to have more of them. The product merges equal queries and would
gain by that, so all queries differ here, over as many terms as the smallest set has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.lab.experiments.experiment import (
    ALGORITHM,
    BATCH,
    HANDED,
    MICROSECONDS,
    PROCESS_BYTES,
    SINGLE,
)
from tamis.lab.experiments.measure import (
    build_index,
    compare,
    cpu_seconds,
    matches_of,
    product_bytes,
    sort_pairs,
)
from tamis.lab.irmak import IrmakIndex, IrmakOptions
from tamis.lab.workloads.keywords import KeywordParams, Keywords, TermSets, picked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.lab.experiments.experiment import Row, Setting
    from tamis.lab.forest import Rows

PAPER: Final = "Irmak"
PRIMITIVE: Final = "primitive"
SPLIT: Final = "split lists"
BLOOM: Final = "Bloom filter"
BEST: Final = "partitions"
PARTITIONS: Final = (1, 4, 16)  # of which the best is taken, as in the paper
DOCUMENTS_PER_SECOND: Final = "documents per second"
POSTINGS: Final = "postings"
ACCUMULATORS: Final = "accumulators"
GAIN: Final = 1.05  # a smaller factor is no gain
WORDS: Final = "words"  # terms of a document that occur in some query
N_SINGLE: Final = 100  # documents for the product's single matcher

STEPS: Final[dict[str, IrmakOptions]] = {  # §3.2 and §3.3, one after the other
    PRIMITIVE: IrmakOptions(split=False, bloom=False),
    SPLIT: IrmakOptions(bloom=False),
    BLOOM: IrmakOptions(),
    BEST: IrmakOptions(),
}


def overlap(n_words: int = 1, method: str = "overlap") -> IrmakOptions:
    """Superqueries (§4)."""
    return IrmakOptions(superqueries=method, n_words=n_words)


class Task(NamedTuple):
    """Queries and documents, as sets of terms and as texts."""

    queries: TermSets
    documents: TermSets
    expressions: list[str]
    texts: list[str]
    schema: dict[str, str]


def draw(setting: Setting, seed: int) -> Task:
    """The workload of a setting: `queries` over the terms of `base` queries."""
    n_terms = Keywords(KeywordParams(setting["base"])).n_terms
    workload = Keywords(KeywordParams(setting["queries"], n_terms=n_terms, seed=seed))
    n_documents = setting["documents"]
    return Task(
        workload.queries(),
        workload.documents(n_documents),
        workload.expressions(),
        workload.texts(n_documents),
        workload.schema,
    )


def measure(task: Task, steps: Mapping[str, IrmakOptions]) -> list[Row]:
    """A row for each of the paper's algorithms and for the product; `partitions` finds the best
    number of partitions.
    """
    wanted, ours = measure_product(task)
    rows = []
    for name, options in steps.items():
        tried = (
            [replace(options, n_partitions=n) for n in PARTITIONS] if name == BEST else [options]
        )
        found = [measure_paper(name, one, task, wanted) for one in tried]
        rows.append(min(found, key=lambda row: float(row[MICROSECONDS])))
    return rows + ours


def measure_paper(name: str, options: IrmakOptions, task: Task, wanted: Rows) -> Row:
    """The row of one algorithm of the paper."""
    index = IrmakIndex(*task.queries, options)
    encoded = index.encode(*task.documents)
    n_documents = len(task.documents.starts) - 1
    compare(sort_pairs(*index.match_encoded(*encoded), n_documents), wanted, name)
    seconds = cpu_seconds(lambda: index.match_encoded(*encoded)) / n_documents
    work = index.work
    return {
        ALGORITHM: name,
        MICROSECONDS: 1e6 * seconds,
        DOCUMENTS_PER_SECOND: 1 / seconds,
        "partitions": options.n_partitions,
        "index postings": sum(
            len(lists.first_queries) + len(lists.rest) for lists, _ in index.partitions
        ),
        "superqueries": sum(len(queries.starts) - 1 for _, queries in index.partitions),
        "megabytes": index.n_bytes / 1e6,
        **{what: count / n_documents for what, count in work.items()},
    }


def measure_product(task: Task) -> tuple[Rows, list[Row]]:
    """The product's matches and its rows: a batch of encoded documents, and texts one by one."""
    index = build_index(task.expressions, task.schema)
    table = pa.table({"body": task.texts})
    n_documents = len(task.texts)
    encoded = index.encode(table)
    found = matches_of(index, encoded, n_documents)
    few = [{"body": text} for text in task.texts[:N_SINGLE]]
    shared: Row = {
        "megabytes": product_bytes(index) / 1e6,
        "matches": len(found.values) / n_documents,
        "index nodes": index.contents.n_nodes,
        WORDS: np.isin(task.documents.terms, task.queries.terms).sum() / n_documents,
    }
    costs = {
        BATCH: cpu_seconds(lambda: index.match_batch(encoded)) / n_documents,
        SINGLE: cpu_seconds(lambda: [index.match(event) for event in few]) / len(few),
    }
    reading = cpu_seconds(lambda: index.encode(table)) / n_documents
    rows = [
        {ALGORITHM: name, MICROSECONDS: 1e6 * cost, DOCUMENTS_PER_SECOND: 1 / cost, **shared}
        for name, cost in costs.items()
    ]
    rows[1][HANDED] = 1e6 * reading
    return found, rows


def estimate(setting: Setting) -> int:
    """An estimate of the bytes that a setting needs, from the cost of building each query."""
    return PROCESS_BYTES + 900 * int(setting["queries"])


def pick(task: Task, ordinals: np.ndarray) -> Task:
    """The task with these queries only."""
    expressions = [task.expressions[at] for at in ordinals.tolist()]
    return task._replace(queries=picked(task.queries, ordinals), expressions=expressions)


def describe_behind(ours: Row, rival: Row) -> str:
    """Why the product is behind the best of the paper's algorithms."""
    return (
        f"{rival[ALGORITHM].capitalize()} reads {rival[POSTINGS]:,.0f} postings for a document, "
        f"{1e3 * rival[MICROSECONDS] / rival[POSTINGS]:.1f} ns each; Tamis sets a bit for each of "
        f"the document's {ours[WORDS]:,.0f} words that queries have, however few queries have it, "
        f"and evaluates {ours['index nodes']:,.0f} nodes for every block of 512 documents."
    )


def ratio_of(rows: list[Row], slow: str, fast: str) -> float:
    """How many times faster one algorithm is than another, in one setting."""
    took = {row[ALGORITHM]: float(row[MICROSECONDS]) for row in rows if MICROSECONDS in row}
    return took[slow] / took[fast]
