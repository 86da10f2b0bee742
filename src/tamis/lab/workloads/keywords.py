"""Keyword queries and documents with the statistics of Irmak's Table 3.1.

Terms follow one Zipf law in queries and another in documents, over nearly the same ranks: people
search for nearly the terms that people write. The exponent of queries is that of real web queries
(0.92 over the ranks 50 to 5,000 of 110,000 queries of TREC). A third of the queries are others with
one term added or removed, as users refine them. The other parameters are chosen so that at
1,077,958 queries the figures of Tables 3.1 and 4.1 are reproduced:

| | the paper | here |
|---|---|---|
| terms in all queries | 271,167 | 269,346 |
| terms per query | 3.37 | 3.42 |
| query terms per document | 144 | 146 |
| postings per document | 199,262 | 197,103 |
| of these with position zero | 6,630 | 4,060 |
| queries contained in another one | 25.3% | 24.5% |
| … that has the same least frequent term | 20.7% | 18.2% |
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.lab.workloads.draws import Floats, Ints, require

if TYPE_CHECKING:
    import pyarrow as pa

_TABLE_QUERIES = 1_077_958
_QUERY_EXPONENT, _QUERY_SHIFT = 0.98, 12
_TEXT_EXPONENT, _TEXT_SHIFT, _TEXT_NOISE = 0.925, 13, 0.7
_REDRAWN = 1.2  # ratio of queries drawn to queries wanted, since some are equal
_REFINED = 0.33  # of the queries are earlier ones with one term added or removed


@dataclass(frozen=True, slots=True)
class KeywordParams:
    """How many queries, over how many terms, and how long documents are."""

    n_queries: int = 100_000
    n_terms: int = 0  # of the vocabulary; 0: fits the number of queries
    mean_length: float = 3.2  # terms of a query
    n_drawn: int = 150  # words of a document, drawn one by one
    n_repeated: int = 150  # words of a document that repeat earlier ones
    n_unknown: int = 50  # words of a document that no query has
    seed: int = 1

    def __post_init__(self) -> None:
        require(self.n_queries >= 1, f"n_queries is {self.n_queries}; at least 1")
        require(self.mean_length >= 1, f"mean_length is {self.mean_length}; at least 1")
        require(self.n_terms >= 0, f"n_terms is {self.n_terms}; at least 0")


class TermSets(NamedTuple):
    """Sets of terms: set i is terms[starts[i]:starts[i + 1]], ascending."""

    starts: Ints  # int64[n + 1]
    terms: Ints  # int32[:]


class Keywords:
    """Queries and documents; equal parameters give equal workloads."""

    def __init__(self, params: KeywordParams | None = None) -> None:
        self.params = params or KeywordParams()
        scale = (self.params.n_queries / _TABLE_QUERIES) ** 0.75
        self.n_terms = self.params.n_terms or max(50, round(310_000 * scale))

    @property
    def schema(self) -> dict[str, str]:
        """The type of each attribute."""
        return {"body": "text(simple)"}

    def words(self) -> list[str]:
        """The spelling of each term."""
        return [_spell(term) for term in range(self.n_terms)]

    def queries(self) -> TermSets:
        """The queries, all distinct."""
        params = self.params
        rng = np.random.default_rng((params.seed, 1))
        limits = _limits(np.arange(1, self.n_terms + 1), _QUERY_EXPONENT, _QUERY_SHIFT)
        kept = TermSets(np.zeros(1, np.int64), np.empty(0, np.int32))
        n_drawn = round(params.n_queries * _REDRAWN) + 10
        for _ in range(20):
            lengths = rng.poisson(params.mean_length - 1, n_drawn) + 1
            drawn = _sets(_draw(rng, limits, int(lengths.sum())), lengths, self.n_terms)
            drawn = _shuffled(rng, _joined(drawn, _refine(rng, drawn, limits, self.n_terms)))
            kept = _distinct(_joined(kept, drawn))
            if len(kept.starts) > params.n_queries:
                break
        n_kept = min(params.n_queries, len(kept.starts) - 1)
        require(
            n_kept == params.n_queries, f"{self.n_terms} terms allow only {n_kept} distinct queries"
        )
        starts = kept.starts[: n_kept + 1]
        return TermSets(starts, kept.terms[: starts[-1]])

    def documents(self, n: int) -> TermSets:
        """The terms of n documents."""
        draws = self._draw_documents(n)
        return _sets(draws.ravel(), np.full(n, draws.shape[1]), self.n_terms)

    def expressions(self, n: int | None = None) -> list[str]:
        """The queries as expressions."""
        words = self.words()
        starts, terms = self.queries()
        spelled = [words[term] for term in terms.tolist()]
        ends = starts[: (n or self.params.n_queries) + 1].tolist()
        return [f"matches(body, '{' '.join(spelled[begin:end])}')" for begin, end in pairwise(ends)]

    def texts(self, n: int) -> list[str]:
        """The texts of n documents: their terms, some repeated, and words that no query has."""
        params = self.params
        rng = np.random.default_rng((params.seed, 3))
        words = self.words()
        drawn = self._draw_documents(n)
        picks = rng.integers(0, drawn.shape[1], (n, params.n_repeated))
        again = np.take_along_axis(drawn, picks, axis=1)
        unknown = rng.integers(self.n_terms, 4 * self.n_terms, (n, params.n_unknown))
        texts = []
        for row in rng.permuted(np.hstack((drawn, again, unknown)), axis=1).tolist():
            spelled = (words[t] if t < self.n_terms else _spell(t) + "q" for t in row)
            texts.append(" ".join(spelled).capitalize() + ".")
        return texts

    def events(self, n: int) -> list[dict[str, Any]]:
        """n documents as dictionaries."""
        return [{"body": text} for text in self.texts(n)]

    def event_table(self, n: int) -> pa.Table:
        """n documents as a table."""
        import pyarrow as pa

        return pa.table({"body": pa.array(self.texts(n), pa.string())})

    def _draw_documents(self, n: int) -> Ints:
        params = self.params
        rng = np.random.default_rng((params.seed, 2))
        ranks = np.arange(1, self.n_terms + 1)
        ranks = ranks * np.exp(_TEXT_NOISE * rng.standard_normal(self.n_terms))
        limits = _limits(ranks, _TEXT_EXPONENT, _TEXT_SHIFT)
        return _draw(rng, limits, n * params.n_drawn).reshape(n, params.n_drawn)


def _limits(ranks: np.ndarray, exponent: float, shift: float) -> Floats:
    sums = np.cumsum((ranks + shift) ** -exponent)
    limits: Floats = sums / sums[-1]
    return limits


def _draw(rng: np.random.Generator, limits: Floats, n_draws: int) -> Ints:
    drawn = np.searchsorted(limits, rng.random(n_draws), side="right")
    return np.minimum(drawn, len(limits) - 1)


def _sets(terms: Ints, lengths: Ints, n_terms: int) -> TermSets:
    """Draws as sets: distinct terms, ascending."""
    keys = np.unique(np.repeat(np.arange(len(lengths)), lengths) * n_terms + terms)
    sizes = np.bincount(keys // n_terms, minlength=len(lengths))
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    return TermSets(starts, (keys % n_terms).astype(np.int32))


def _joined(one: TermSets, other: TermSets) -> TermSets:
    starts = np.concatenate((one.starts, one.starts[-1] + other.starts[1:]))
    return TermSets(starts, np.concatenate((one.terms, other.terms)))


def _refine(rng: np.random.Generator, sets: TermSets, limits: Floats, n_terms: int) -> TermSets:
    """Copies of some of the sets, half with one term added, half with one removed."""
    n_sets = len(sets.starts) - 1
    n_refined = round(n_sets * _REFINED / (1 - _REFINED))
    some = picked(sets, rng.integers(0, n_sets, n_refined))
    sizes = np.diff(some.starts)
    is_longer = (rng.random(n_refined) < 0.5) | (sizes == 1)
    dropped = some.starts[:-1] + rng.integers(0, sizes)
    owners = np.repeat(np.arange(n_refined), sizes)
    is_kept = np.ones(len(owners), dtype=np.bool_)
    is_kept[dropped[~is_longer]] = False
    keys = np.concatenate((owners[is_kept], np.flatnonzero(is_longer)))
    terms = np.concatenate((some.terms[is_kept], _draw(rng, limits, int(is_longer.sum()))))
    order = np.argsort(keys, kind="stable")
    return _sets(terms[order], np.bincount(keys, minlength=n_refined), n_terms)


def _shuffled(rng: np.random.Generator, sets: TermSets) -> TermSets:
    return picked(sets, rng.permutation(len(sets.starts) - 1))


def picked(sets: TermSets, places: Ints) -> TermSets:
    """The sets at these positions, in this order."""
    sizes = np.diff(sets.starts)[places]
    ends = np.cumsum(sizes)
    at = np.arange(sizes.sum()) + np.repeat(sets.starts[places] - (ends - sizes), sizes)
    return TermSets(np.concatenate((np.zeros(1, np.int64), ends)), sets.terms[at])


def _distinct(sets: TermSets) -> TermSets:
    """The distinct sets, in the order of first occurrence, identified by two sums of hashes."""
    mixed = (sets.terms.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    sums = np.add.reduceat(mixed, sets.starts[:-1])
    _, first = np.unique(sums, return_index=True)
    first.sort()
    return picked(sets, first)


def _spell(term: int) -> str:
    """A word of alternating consonants and vowels, distinct for distinct terms."""
    letters: list[str] = []
    number = term
    while number or len(letters) < 4:
        number, at = divmod(number, 14)
        letters.append("bdfghklmnprstv"[at])
        number, at = divmod(number, 5)
        letters.append("aeiou"[at])
    return "".join(letters)
