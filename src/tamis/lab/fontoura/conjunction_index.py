"""The index of conjunctions that the paper builds on (§2.1): the K-index of Whang et al.

Conjunctions are partitioned by their size, their number of ∈. A leaf has a posting list in each
partition; a posting is a conjunction and whether it requires the leaf (∈) or its absence (∉); a ∉
does not count for the size. A conjunction of size k is found in k lists of partition k, or not at
all, so the lists are traversed together with skips. The conjunctions of size zero are in an
additional list, Z, which is read for every event.

Each conjunction has a run of annotations, its occurrences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.index.layout import run_starts
from tamis.lab.fontoura.kernels.conjunctions import find_conjunctions
from tamis.lab.fontoura.kernels.gather import gather_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.kernels.arrays import Int32, Int64, Starts
    from tamis.lab.fontoura.expressions import Conjunction
    from tamis.lab.forest import Rows

LEAST_ROOM = 1 << 18  # conjunctions found for a block of events
MOST_ANNOTATIONS = 1 << 20  # of a block; the event that exceeds it is the block's last


class Postings(NamedTuple):
    """The posting lists; those of a leaf are contiguous, one for each size."""

    list_starts: Starts  # [n_leaves + 1], the lists of each leaf; Z is the last of all lists
    list_sizes: Int32  # [n_lists], the size of the conjunctions in it
    posting_starts: Starts  # [n_lists + 1]
    postings: Int32  # twice the conjunction, plus 1 for ∈; ascending in each list
    required: Int32  # [n_conjunctions], their sizes; ascending


class ConjunctionScratch(NamedTuple):
    """Scratch space of the search; `hits` is zero before and after."""

    open_lists: Int32
    cursors: Int64
    ends: Int64
    heads: Int32
    hits: Int64
    touched: Int32
    n_postings: Int64  # [1], postings read so far


class Found(NamedTuple):
    """The conjunctions that a block of events satisfies."""

    n_rows: int
    starts: Int64  # [n_rows + 1]
    conjunctions: Int32


class ConjunctionIndex:
    """Conjunctions, each with its annotations from `occurrences`."""

    def __init__(
        self, occurrences: Mapping[Conjunction, Sequence[int]], n_leaves: int, dtype: Any
    ) -> None:
        # Numbered by size: then the parts of a list are contiguous, and `required` ascends.
        conjunctions = sorted(occurrences, key=lambda one: (len(one.wanted), one))
        self.postings = build_postings(conjunctions, n_leaves)
        runs = [occurrences[one] for one in conjunctions]
        self.annotation_starts = run_starts(np.array([len(run) for run in runs], dtype=np.int64))
        self.annotations = np.array([value for run in runs for value in run], dtype=dtype)
        n_lists, n = len(self.postings.list_sizes), len(conjunctions)
        self.scratch = ConjunctionScratch(
            np.empty(n_lists, dtype=np.int32),
            np.empty(n_lists, dtype=np.int64),
            np.empty(n_lists, dtype=np.int64),
            np.empty(n_lists, dtype=np.int32),
            np.zeros(n, dtype=np.int64),
            np.empty(n, dtype=np.int32),
            np.zeros(1, dtype=np.int64),
        )
        self._found = np.empty(max(LEAST_ROOM, 2 * n), dtype=np.int32)

    def __len__(self) -> int:
        return len(self.postings.required)

    @property
    def n_bytes(self) -> int:
        """The posting lists and the annotations."""
        own = (*self.postings, self.annotation_starts, self.annotations)
        return sum(array.nbytes for array in own)

    def find(self, first_row: int, satisfied: Rows) -> Found:
        """The conjunctions of as many events as there is room for, at least one."""
        starts = np.zeros(len(satisfied) - first_row + 1, dtype=np.int64)
        n_rows = find_conjunctions(
            first_row,
            satisfied.starts,
            satisfied.values,
            self.postings,
            self.annotation_starts,
            MOST_ANNOTATIONS,
            self.scratch,
            starts,
            self._found,
        )
        return Found(n_rows, starts[: n_rows + 1], self._found[: starts[n_rows]])

    def gather(self, found: Found) -> tuple[Int64, npt.NDArray[Any]]:
        """The annotations of the conjunctions found: the start of each event's, and the
        annotations.
        """
        sizes = np.diff(self.annotation_starts)[found.conjunctions]
        gathered = np.empty(int(sizes.sum()), dtype=self.annotations.dtype)
        starts = np.zeros(found.n_rows + 1, dtype=np.int64)
        gather_runs(
            found.starts,
            found.conjunctions,
            self.annotation_starts,
            self.annotations,
            starts,
            gathered,
        )
        return starts, gathered


def build_postings(conjunctions: Sequence[Conjunction], n_leaves: int) -> Postings:
    """The posting lists of conjunctions, which must be sorted by size."""
    sizes = np.array([len(one.wanted) for one in conjunctions], dtype=np.int64)
    wanted = [(leaf, 2 * at + 1) for at, one in enumerate(conjunctions) for leaf in one.wanted]
    unwanted = [(leaf, 2 * at) for at, one in enumerate(conjunctions) for leaf in one.unwanted]
    pairs = np.array(wanted + unwanted, dtype=np.int64).reshape(-1, 2)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    leaves, postings = pairs[order].T
    # Z is a list of size zero, stored as that of an additional leaf.
    zero = np.flatnonzero(sizes == 0)
    leaves = np.append(leaves, np.full(len(zero), n_leaves))
    postings = np.append(postings, 2 * zero + 1)
    sizes_of = sizes[postings >> 1]
    changes = np.flatnonzero(np.diff(leaves, prepend=-1) | np.diff(sizes_of, prepend=-1))
    if not len(zero):
        changes = np.append(changes, len(postings))
    owners = np.append(leaves, n_leaves)[changes]
    return Postings(
        run_starts(np.bincount(owners[:-1], minlength=n_leaves)),
        np.append(sizes_of, 0)[changes].astype(np.int32),
        run_starts(np.diff(np.append(changes, len(postings)))),
        postings.astype(np.int32),
        sizes.astype(np.int32),
    )
