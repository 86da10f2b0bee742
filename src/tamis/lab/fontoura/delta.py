"""A main index and a small delta index (§2.1): how the paper handles updates.

The indexes themselves are immutable. An inserted subscription goes into the delta, which is rebuilt
on the next match; a deleted one is removed from the delta, or stays in the main index and is
hidden. A delta that has grown to a given fraction of the main index is merged into it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tamis.errors import InputError
from tamis.lab.forest import Rows, as_rows
from tamis.lab.machine import Updatable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.lab.forest import Tree

SMALL: Final = 64  # subscriptions that a delta may always have
SHARE: Final = 8  # a delta has at most an eighth of the main index


class Work:
    """Counts, and the CPU seconds of each phase."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure the time of the block."""
        begun = time.process_time()
        yield
        self.seconds[name] += time.process_time() - begun


class ImmutableIndex(ABC):
    """One immutable index."""

    def __init__(
        self, trees: Mapping[int, Tree], n_leaves: int, opposites: Mapping[int, int]
    ) -> None:
        self.ordinals = np.array(sorted(trees), dtype=np.int32)
        self.build([trees[ordinal] for ordinal in self.ordinals.tolist()], n_leaves, opposites)

    @abstractmethod
    def build(self, trees: list[Tree], n_leaves: int, opposites: Mapping[int, int]) -> None:
        """Build the arrays."""

    @abstractmethod
    def match(self, satisfied: Rows, work: Work) -> Rows:
        """The positions of the trees that each event matches, ascending."""

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """The memory of the arrays."""


class WithDelta(Updatable):
    """A machine whose index is a `ImmutableIndex`.

    `opposites` are leaves that are true for exactly the events for which another leaf is not.
    """

    part: ClassVar[type[ImmutableIndex]]

    def __init__(
        self,
        trees: Mapping[int, Tree],
        n_leaves: int,
        opposites: Mapping[int, int] | None = None,
    ) -> None:
        self.opposites = opposites or {}
        self.seconds: dict[str, float] = {}  # CPU time of the last `match`, by phase
        super().__init__(trees, n_leaves)

    def build(self, trees: Mapping[int, Tree]) -> None:
        """Put all trees into the main index."""
        self._trees = dict(trees)
        self._main = self._make(trees)
        self._hidden: set[int] = set()  # in the main index, but deleted
        self._new: dict[int, Tree] = {}
        self._delta: ImmutableIndex | None = None  # of `_new`, built on demand

    def _make(self, trees: Mapping[int, Tree]) -> ImmutableIndex:
        return self.part(trees, self.n_leaves, self.opposites)

    def insert(self, ordinal: int, tree: Tree) -> None:
        """Insert into the delta."""
        if ordinal in self._trees:
            raise InputError(f"subscription {ordinal} is in the index already")
        self._make({ordinal: tree})  # raises an error for a tree that is not supported
        self._trees[ordinal] = self._new[ordinal] = tree
        self._delta = None

    def delete(self, ordinal: int) -> None:
        """Remove from the delta, or hide."""
        if ordinal not in self._trees:
            raise InputError(f"subscription {ordinal} is not in the index")
        del self._trees[ordinal]
        if self._new.pop(ordinal, None) is None:
            self._hidden.add(ordinal)
        else:
            self._delta = None

    def _refresh(self) -> None:
        if len(self._new) > max(SMALL, len(self._main.ordinals) // SHARE):
            self.build(self._trees)
        elif self._new and self._delta is None:
            self._delta = self._make(self._new)

    def match(self, satisfied: Rows) -> Rows:
        """The ordinals that each event matches, from both indexes."""
        self._refresh()
        work = Work()
        found = self._name(self._main, self._main.match(satisfied, work))
        if self._hidden:
            hidden = np.array(sorted(self._hidden), dtype=np.int32)
            runs = [found[row] for row in range(len(found))]
            found = as_rows([run[~np.isin(run, hidden)] for run in runs])
        if self._new and self._delta is not None:
            more = self._name(self._delta, self._delta.match(satisfied, work))
            both = [np.concatenate((found[row], more[row])) for row in range(len(found))]
            found = as_rows([np.sort(run) for run in both])
        self.counts, self.seconds = dict(work.counts), dict(work.seconds)
        return found

    def _name(self, part: ImmutableIndex, found: Rows) -> Rows:
        return Rows(found.starts, part.ordinals[found.values])

    @property
    def n_bytes(self) -> int:
        """The memory of both indexes."""
        parts = [self._main, *([self._delta] if self._delta else [])]
        return sum(part.n_bytes + part.ordinals.nbytes for part in parts)
