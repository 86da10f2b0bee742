"""The paper's matcher: builds inverted lists of queries and matches documents against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from tamis.errors import TamisError
from tamis.lab.irmak.clustering import CLUSTERINGS, cluster
from tamis.lab.irmak.kernels.matching import (
    N_COUNTS,
    QUERY_BITS,
    Lists,
    Queries,
    Table,
    match_documents,
)

_ROOM: Final = 1 << 20  # matches written at a time
WORK: Final = ("postings", "accumulators", "passed", "updates", "tests")
_BLOOM_BYTES: Final = 1 << 17  # at most; a document uses as much as its accumulators need


@dataclass(frozen=True, slots=True)
class IrmakOptions:
    """The steps of the paper that are switched on."""

    split: bool = True  # least frequent terms first; without it, the primitive algorithm
    bloom: bool = True
    n_partitions: int = 1
    superqueries: str | None = None  # random, alphabetical or overlap
    n_words: int = 1  # words of a superquery's mask, 32 bits each
    seed: int = 1

    def __post_init__(self) -> None:
        if self.superqueries not in (None, *CLUSTERINGS):
            known = ", ".join(CLUSTERINGS)
            raise TamisError(f"superqueries is {self.superqueries!r}; allowed: {known}")
        if not 1 <= self.n_words <= 4:
            raise TamisError(f"n_words is {self.n_words}; allowed: 1 to 4")
        if self.n_partitions < 1:
            raise TamisError(f"n_partitions is {self.n_partitions}; at least 1")
        if not self.split and (self.superqueries or self.n_partitions > 1):
            raise TamisError("the primitive algorithm has neither partitions nor superqueries")


class Partition(NamedTuple):
    """One partition of the queries."""

    lists: Lists
    queries: Queries


class IrmakIndex:
    """Queries of terms, all of which must occur in a document."""

    def __init__(self, starts: np.ndarray, terms: np.ndarray, options: IrmakOptions) -> None:
        """Query i has terms[starts[i]:starts[i + 1]], at least one, all distinct."""
        self.options = options
        self.n_terms = int(terms.max(initial=-1)) + 1
        self.n_queries = len(starts) - 1
        frequencies = np.bincount(terms, minlength=self.n_terms)
        # TIDs ascend with the frequency of terms in queries (§3.3).
        self._tid = np.empty(self.n_terms, dtype=np.int32)
        self._tid[np.argsort(frequencies, kind="stable")] = np.arange(self.n_terms)
        sizes = np.diff(starts)
        owners = np.repeat(np.arange(self.n_queries), sizes)
        tids = self._tid[terms]
        tids = tids[np.lexsort((tids, owners))]
        self._refuse_long(sizes)
        self.partitions = [
            self._build(members, starts, tids) for members in self._split(tids[starts[:-1]])
        ]
        self._table = self._make_table()

    def _refuse_long(self, sizes: np.ndarray) -> None:
        if sizes.max(initial=0) > 255:
            raise TamisError(f"a query has {sizes.max()} terms; accumulators count to 255")
        if self.n_queries >> QUERY_BITS:
            raise TamisError(f"{self.n_queries} queries; a posting has room for {1 << QUERY_BITS}")
        most = 32 * self.options.n_words + 1
        if self.options.superqueries and sizes.max(initial=0) > most:
            raise TamisError(f"a query has {sizes.max()} terms; a superquery has {most} at most")

    def _split(self, firsts: np.ndarray) -> list[np.ndarray]:
        """The queries of each partition; those with the same least frequent term stay together."""
        rng = np.random.default_rng(self.options.seed)
        if not self.options.split:
            return [rng.permutation(self.n_queries)]
        by_first = np.argsort(firsts, kind="stable")
        part_of = rng.integers(0, self.options.n_partitions, self.n_terms)[firsts[by_first]]
        return [by_first[part_of == part] for part in range(self.options.n_partitions)]

    def _build(self, members: np.ndarray, starts: np.ndarray, tids: np.ndarray) -> Partition:
        """One partition with the queries `members`, renumbered in this order."""
        sizes = np.diff(starts)[members]
        ends = np.cumsum(sizes)
        own_starts = np.concatenate((np.zeros(1, np.int64), ends))
        own = tids[np.arange(own_starts[-1]) + np.repeat(starts[members] - own_starts[:-1], sizes)]
        owners = np.repeat(np.arange(len(members), dtype=np.int32), sizes)
        if self.options.superqueries and len(members):
            return self._build_superqueries(members, own_starts, own)
        is_first = np.zeros(len(own), dtype=np.bool_)
        if self.options.split:
            is_first[own_starts[:-1]] = True
        first_starts, first = self._invert(own[is_first], owners[is_first])
        rest_starts, rest = self._invert(own[~is_first], owners[~is_first])
        lists = Lists(
            np.stack((first_starts, rest_starts), axis=1),
            owners[is_first][first],
            (sizes[owners[is_first][first]] - 1).astype(np.uint8),
            owners[~is_first][rest].astype(np.uint32),
        )
        masks = np.empty((0, 1), dtype=np.uint32)
        queries = Queries(sizes.astype(np.int32), own_starts, members.astype(np.int32), masks)
        return Partition(lists, queries)

    def _build_superqueries(
        self, members: np.ndarray, starts: np.ndarray, tids: np.ndarray
    ) -> Partition:
        options = self.options
        assert options.superqueries is not None
        clusters = cluster(starts, tids, options.superqueries, options.n_words, options.seed)
        n_clusters = len(clusters.starts) - 1
        first_starts, first = self._invert(clusters.first_terms, np.arange(n_clusters))
        rest_starts, rest = self._invert(clusters.terms, clusters.owners)
        lists = Lists(
            np.stack((first_starts, rest_starts), axis=1),
            first.astype(np.int32),
            np.empty(0, np.uint8),
            (clusters.owners | clusters.bits.astype(np.uint32) << QUERY_BITS)[rest],
        )
        own = members[clusters.members].astype(np.int32)
        return Partition(
            lists, Queries(np.empty(0, np.int32), clusters.starts, own, clusters.masks)
        )

    def _invert(self, terms: np.ndarray, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The start of each term's postings, and the order of the postings."""
        counts = np.bincount(terms, minlength=self.n_terms)
        starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        return starts.astype(np.uint32), np.lexsort((queries, terms))

    # ── matching ───────────────────────────────────────────────────────────────────────────

    def match(self, starts: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The matching documents and queries, partition by partition: int32[n], int32[n]."""
        return self.match_encoded(*self.encode(starts, terms))

    def encode(self, starts: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Documents as TIDs, each ascending; terms without queries are dropped."""
        is_known = terms < self.n_terms
        owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[is_known]
        tids = self._tid[terms[is_known]]
        counts = np.bincount(owners, minlength=len(starts) - 1)
        own_starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        return own_starts, tids[np.lexsort((tids, owners))]

    def match_encoded(self, starts: np.ndarray, tids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The result of `match` for encoded documents."""
        options = self.options
        self._table.work[:] = 0
        room = self.n_queries + _ROOM
        found, rows = (np.empty(room, dtype=np.int32) for _ in range(2))
        runs = [(np.empty(0, np.int32), np.empty(0, np.int32))]
        for lists, queries in self.partitions:
            document = 0
            while document < len(starts) - 1:
                document, n_found = match_documents(
                    document,
                    starts,
                    tids,
                    lists,
                    queries,
                    self._table,
                    options.split,
                    options.bloom,
                    options.superqueries is not None,
                    found,
                    rows,
                )
                runs.append((rows[:n_found].copy(), found[:n_found].copy()))
        all_rows, all_found = zip(*runs, strict=True)
        return np.concatenate(all_rows), np.concatenate(all_found)

    def _make_table(self) -> Table:
        """A table that is half full if it contains all queries of a partition."""
        n_most = max(len(queries.starts) for _, queries in self.partitions)
        size = 1 << max(4, (2 * n_most).bit_length())
        longest = 1 + max(len(lists.rest) for lists, _ in self.partitions)
        return Table(
            np.full(size, -1, dtype=np.int32),
            np.zeros(size, dtype=np.uint8),
            np.zeros((size, self.options.n_words), dtype=np.uint32),
            np.empty(n_most, dtype=np.int32),
            np.zeros(_BLOOM_BYTES, dtype=np.uint8),
            np.empty(longest, dtype=np.uint32),
            np.zeros(N_COUNTS, dtype=np.int64),
        )

    @property
    def work(self) -> dict[str, int]:
        """The counts of the last match, over all its documents."""
        return dict(zip(WORK, self._table.work.tolist(), strict=True))

    @property
    def n_bytes(self) -> int:
        """The memory of the lists and queries."""
        return sum(array.nbytes for part in self.partitions for group in part for array in group)
