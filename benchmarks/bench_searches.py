"""What do truncations and proximities cost? Against plain words, over real abstracts, in one run.

The documents are abstracts of arXiv (`../shared/data/arxiv-abstracts`), and the words of all
queries are taken from them at random. Times are CPU times of one process for reading and matching:
of the first pass, in which every distinct word is analysed, and the best of a few others. Some
answers are compared with the reference evaluator. `TAMIS_BENCH_SIZE`
chooses the number of documents: `small` (the default) has 5,000, `full` all 29,362.
"""

from __future__ import annotations

import csv
import io
import lzma
import os
import random
import sys
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import tamis
from benchmarks.targets import Target, make_row
from tamis.errors import TamisError
from tamis.text import ANY_WORD, get_analyser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TITLE = "truncations and proximities against plain words"
DATA: Final = Path(__file__).parents[2] / "shared" / "data" / "arxiv-abstracts"
SIZES: Final = {"tiny": 200, "small": 5_000, "full": 50_000}
N_TRUNCATIONS: Final = 10_000
N_PROXIMITIES: Final = 1_000
N_REPEATS: Final = 3
N_COMPARED: Final = (10, 100)  # documents, queries
ANALYSER: Final = "english"
SCHEMA: Final = f"abstract TEXT({ANALYSER})"
_LEAST_LETTERS: Final = 6
TARGETS: Final = {
    "truncations": Target(2, "ratio", also=("first ratio",)),
    "proximities": Target(2, "ratio", also=("first ratio",)),
    "truncations and proximities": Target(2, "ratio", also=("first ratio",)),
}

Row = dict[str, Any]


def run() -> list[Row]:
    """One row per kind of query, and the plain words that it is compared with."""
    chosen = os.environ.get("TAMIS_BENCH_SIZE", "small")
    if chosen not in SIZES:
        raise TamisError(f"TAMIS_BENCH_SIZE is {chosen!r}; allowed: {', '.join(SIZES)}")
    if not DATA.is_dir():
        return []
    abstracts = [*islice(read_abstracts(), SIZES[chosen])]
    queries = Queries(abstracts)
    table = pa.table({"abstract": abstracts})
    rows: list[Row] = []
    for what, own, plain in (
        ("truncations", queries.truncations, queries.words),
        ("suffixes", queries.suffixes, queries.words),
        ("proximities", queries.proximities, queries.pairs),
        (
            "truncations and proximities",
            queries.truncations + queries.proximities,
            queries.words + queries.pairs,
        ),
    ):
        base = measure(plain, table)
        found = measure(own, table)
        rows.append(make_row(TARGETS, f"plain words of {what}", base["µs"], "µs/document", **base))
        ratios = {"ratio": found["µs"] / base["µs"], "first ratio": found["first"] / base["first"]}
        rows.append(make_row(TARGETS, what, found["µs"], "µs/document", **ratios, **found))
    return [{key: own for key, own in row.items() if key != "µs"} for row in rows]


def read_abstracts() -> Iterator[str]:
    """The abstracts of one category after the other."""
    csv.field_size_limit(sys.maxsize)
    for path in sorted(DATA.glob("*.tsv.xz")):
        text = io.StringIO(lzma.decompress(path.read_bytes()).decode("utf-8"))
        yield from (row["abstract"] for row in csv.DictReader(text, delimiter="\t"))


class Queries:
    """Queries whose words are in the abstracts."""

    def __init__(self, abstracts: list[str]) -> None:
        rng = random.Random(1)
        normalize = get_analyser(ANALYSER).normalize
        self.words: list[str] = []
        self.truncations: list[str] = []
        self.suffixes: list[str] = []
        self.pairs: list[str] = []
        self.proximities: list[str] = []
        while len(self.words) < N_TRUNCATIONS or len(self.pairs) < N_PROXIMITIES:
            text = [word for word in rng.choice(abstracts).split() if word.isalpha()]
            longer = [word for word in text if len(word) >= _LEAST_LETTERS]
            if len(longer) < 2:
                continue
            word = rng.choice(longer)
            if len(self.words) < N_TRUNCATIONS and normalize(word) != ANY_WORD:
                self.words.append(f"matches(abstract, '{word}')")
                self.truncations.append(f"matches(abstract, '{word[: max(4, len(word) - 3)]}*')")
                self.suffixes.append(f"matches(abstract, '*{word[2:]}')")
            at = rng.randrange(len(text) - 1)
            one, other = text[at], text[min(at + rng.randint(1, 4), len(text) - 1)]
            forms = {normalize(one), normalize(other)}
            if len(self.pairs) < N_PROXIMITIES and len(forms) == 2 and ANY_WORD not in forms:
                self.pairs.append(f"matches(abstract, '{one} {other}')")
                self.proximities.append(f"near(abstract, '{one} {other}', 3)")


def measure(expressions: list[str], table: pa.Table) -> Row:
    """µs per document of the first pass and of later ones, and the matches per document."""
    index = tamis.build({str(at): text for at, text in enumerate(expressions)}, SCHEMA)
    scale = 1e6 / len(table)

    def match() -> int:
        return int(index.count_by_event(table).sum())

    first = cpu_time(match) * scale
    best = min(cpu_time(match) for _ in range(N_REPEATS)) * scale
    compare(index, expressions, table)
    return {
        "µs": best,
        "first": first,
        "queries": len(index),
        "matches/document": match() / len(table),
    }


def compare(index: Any, expressions: list[str], table: pa.Table) -> None:
    """Refuse an index that answers differently from the reference evaluator."""
    n_documents, n_queries = N_COMPARED
    step = max(1, len(expressions) // n_queries)
    for event in table.slice(0, n_documents).to_pylist():
        found = set(index.match(event))
        for at in range(0, len(expressions), step):
            if tamis.evaluate(expressions[at], event, SCHEMA) is not (str(at) in found):
                raise TamisError(f"{expressions[at]} is answered differently for {event}")


def cpu_time(function: Callable[[], Any]) -> float:
    """The CPU seconds of a call."""
    begin = time.process_time()
    function()
    return time.process_time() - begin
