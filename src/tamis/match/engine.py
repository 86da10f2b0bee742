"""The kernels over one part of an index: single events, and blocks of events."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from tamis.index.validity import Validity
from tamis.kernels.records import Records
from tamis.match.batch import (
    Scratch,
    choose_groups,
    count_block_by_subscription,
    make_scratch,
    match_block_pairs,
    match_groups,
)
from tamis.match.kernels.single import PartArrays
from tamis.match.names import Names
from tamis.match.operators import Operators
from tamis.match.single_scratch import RootTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.events.event_arrays import EventArrays
    from tamis.index.contents import Contents
    from tamis.index.layout import RootArrays
    from tamis.kernels.arrays import Int64
    from tamis.match.batch import Group, Pairs
    from tamis.match.single_matcher import MatchScratch, SingleKernels
    from tamis.operators.registry import Registry


class Engine:
    """Matches events against the subscriptions of one `Contents`. Threads share it.

    Of subscriptions with operators, it finds all candidates.
    """

    def __init__(
        self, contents: Contents, registry: Registry | None, n_groups: int | None = None
    ) -> None:
        """`n_groups` is the number of groups of 512 events in a block, by default chosen by
        size.
        """
        self.contents = contents
        self.operators = Operators(contents, registry)
        self.has_operators = bool(len(self.operators))
        self.validity = Validity(contents.validity)
        self.n_groups = n_groups or choose_groups(contents.n_stored)
        self._scratches: SimpleQueue[Scratch] = SimpleQueue()
        self.scratches: list[MatchScratch] = []  # of single events
        # The kernels of single events, compiled for the types of this part's arrays.
        self.single_kernels: SingleKernels | None = None

    # ── one event: see `SingleMatcher` ─────────────────────────────────────────────────────

    @cached_property
    def arrays(self) -> Records:
        """The arrays of the part, as its kernel gets them."""
        own = self.contents
        return Records([PartArrays(own.leaves, own.nodes, own.roots, own.triggers)])

    @cached_property
    def root_table(self) -> RootTable:
        """The roots by node."""
        return RootTable.of(self.contents)

    @cached_property
    def names(self) -> Names:
        """The ids of subscriptions."""
        return Names(self.contents.ids, self.contents.roots)

    # ── blocks of events ───────────────────────────────────────────────────────────────────

    def read_groups(
        self,
        events: EventArrays,
        rows: range,
        bad_rows: Int64,
        roots: RootArrays,
        read: Callable[[Group, Scratch], Any],
    ) -> list[Any]:
        """The results of `read` for each group of a block and the roots found for it."""
        with borrow(self._scratches, self._make_scratch) as scratch:
            groups = match_groups(rows, events, self.contents, roots, scratch, bad_rows)
            return [read(group, scratch) for group in groups]

    def match_pairs(
        self, events: EventArrays, rows: range, bad_rows: Int64, roots: RootArrays
    ) -> list[Pairs]:
        """The matches of a block of events, group by group."""
        with borrow(self._scratches, self._make_scratch) as scratch:
            found = match_block_pairs(rows, events, self.contents, roots, scratch, bad_rows)
            return list(found)

    def count_by_subscription(
        self, events: EventArrays, rows: range, roots: RootArrays, counts: Int64
    ) -> None:
        """Add the matches of a block to each subscription's count, without always-true ones."""
        with borrow(self._scratches, self._make_scratch) as scratch:
            count_block_by_subscription(rows, events, self.contents, roots, scratch, counts)

    def _make_scratch(self) -> Scratch:
        return make_scratch(self.contents, self.n_groups)


@contextmanager
def borrow(pool: SimpleQueue[Any], make: Callable[[], Any]) -> Iterator[Any]:
    """An object for the exclusive use of one thread, returned for reuse."""
    try:
        own = pool.get_nowait()
    except Empty:
        own = make()
    try:
        yield own
    finally:
        pool.put(own)
