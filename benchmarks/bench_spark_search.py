"""How fast does one Spark job answer many searches over all history? By number of searches.

The searches are web queries of people, those that several have in common once, over title and body;
the documents are abstracts of arXiv, stories of Reuters and items of feeds, repeated and varied, in
the closed segments of an archive. Building the index of the searches is not included; it has its
own column. The searches that match are counted and not stored. The number of matches is compared
with that of one process, which gives the ratio of the CPU times. `TAMIS_BENCH_SIZE` is `tiny`,
`small` (the default) or `full`.
"""

from __future__ import annotations

import os
import random
import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import orjson
import pyarrow.parquet as pq

import tamis
from benchmarks.bench_spark import CORES, TICKS, measure
from benchmarks.search_documents import DATA, read_documents, read_queries, vary
from tamis.archive import Archive, Entry, JsonEvents
from tamis.errors import ExpressionError, InputError, TamisError, TamisWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

TITLE = "many searches over an archive on Spark: documents per second"
ATTRIBUTES: Final = ("title", "body")
SCHEMA: Final = "title TEXT(english), body TEXT(english)"
AT_ONCE: Final = 5_000

Row = dict[str, Any]


class Size(NamedTuple):
    """How much is measured."""

    n_searches: tuple[int, ...]
    n_documents: int


SIZES: Final = {
    "tiny": Size((20, 100), 500),
    "small": Size((10_000, 100_000), 20_000),
    "full": Size((1_000, 10_000, 100_000), 200_000),
}


def run() -> list[Row]:
    """One row per number of searches."""
    from tamis.spark import local_session

    size = SIZES.get(name := os.environ.get("TAMIS_BENCH_SIZE", "small"))
    if size is None:
        raise TamisError(f"TAMIS_BENCH_SIZE is {name!r}; allowed: {', '.join(SIZES)}")
    if not DATA.is_dir():
        return []
    searches = read_searches(max(size.n_searches))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        fill(place / "archive", size.n_documents)
        spark = local_session("tamis-bench-search", CORES, **{"spark.driver.memory": "3g"})
        try:
            return [
                measure_searches(spark, place, searches[:n_searches])
                for n_searches in size.n_searches
            ]
        finally:
            spark.stop()


def read_searches(n_searches: int) -> list[str]:
    """At most that many different expressions, in random order."""
    queries = read_queries()
    random.Random(5).shuffle(queries)
    found: dict[str, None] = {}
    for query in queries:
        try:
            with catch_warnings():
                simplefilter("ignore", TamisWarning)  # about `and`, which people write
                expression = tamis.search_query(query, attributes=ATTRIBUTES)
        except InputError:
            continue
        if not has_only_stop_words(expression):
            found[expression] = None
        if len(found) == n_searches:
            break
    return [*found]


def has_only_stop_words(expression: str) -> bool:
    """Whether a part of it has no word that a document could have."""
    try:
        tamis.evaluate(expression, {}, SCHEMA)
    except ExpressionError:
        return True
    return False


def fill(folder: Path, n_documents: int) -> None:
    """An archive whose segments are closed, as a server leaves them."""
    documents = _spell(vary(read_documents(), n_documents))
    with Archive.open(folder) as archive:
        while texts := list(islice(documents, AT_ONCE)):
            ends = np.cumsum([len(own) + 1 for own in texts]) - 1
            starts = ends - np.array([len(own) for own in texts])
            nobody = np.zeros(len(texts) + 1, np.int64)
            events = JsonEvents(b"\n".join(texts), starts, ends)
            archive.append([Entry(events, 0, 1, nobody, np.zeros(0, np.int64))])
        archive.seal()


def _spell(documents: Iterator[Row]) -> Iterator[bytes]:
    for own in documents:
        yield orjson.dumps({name: own[name] for name in ATTRIBUTES if name in own})


def measure_searches(spark: SparkSession, place: Path, searches: list[str]) -> Row:
    """What one job costs that answers all of them over the whole archive."""
    import tamis.spark as ts

    built = place / f"queries-{len(searches)}"
    rows = [(str(at), text) for at, text in enumerate(searches)]
    queries = spark.createDataFrame(rows, "subscription_id string, expression string")
    building = measure(lambda: ts.build(queries, str(built), schema=SCHEMA))
    archived = spark.read.parquet(str(place / "archive" / "events"))
    n_documents, found = archived.count(), [0]

    def search() -> None:
        matches = ts.match(archived, str(built), event_id="number", attributes="event")
        found[0] = matches.count()

    search()  # the first one starts workers, which compile kernels
    cost = measure(search)
    texts = pq.read_table(place / "archive" / "events", columns=["event"])["event"].to_pylist()
    index = tamis.open(str(built))
    expected = [0]

    def search_here() -> None:
        expected[0] = int(index.count_by_event(texts).sum())

    search_here()
    alone = measure(search_here)
    if found != expected:
        raise TamisError(f"Spark found {found[0]:,} matches, and one process {expected[0]:,}")
    return {
        "searches": len(searches),
        "documents": n_documents,
        "matches": found[0],
        "documents/s": n_documents / cost.wall,
        "documents/CPU s": n_documents / cost.cpu,
        "seconds": cost.wall,
        "CPU s": cost.cpu,
        "CPU ratio to one process": cost.cpu / max(alone.cpu, 1 / TICKS),
        "build s": building.wall,
    }
