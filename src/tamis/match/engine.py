"""The kernels over one part of an index: single events, and blocks of events."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.index.validity import Validity
from tamis.match.batch import (
    Scratch,
    choose_groups,
    count_block_by_subscription,
    make_scratch,
    match_block_pairs,
    match_groups,
)
from tamis.match.kernels.event import match_event
from tamis.match.names import Names
from tamis.match.operators import Operators
from tamis.match.single import SingleScratch, make_single_scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.events.event_arrays import EventArrays
    from tamis.index.contents import Contents
    from tamis.index.layout import RootArrays
    from tamis.kernels.arrays import Int32, Int64
    from tamis.match.batch import Group, Pairs
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
        self._single_scratches: SimpleQueue[SingleScratch] = SimpleQueue()

    # ── one event ──────────────────────────────────────────────────────────────────────────

    def match_names(self, event: EventArrays, is_wanted: np.ndarray | None = None) -> list[str]:
        """The ids of the subscriptions that the event satisfies; `is_wanted` selects by ordinal,
        None all.
        """
        with borrow(self._single_scratches, self.make_single_scratch) as scratch:
            places = self._match_event(event, scratch)
            if is_wanted is None:
                return self._names.at(places)
            roots = self.contents.roots
            always = roots.always[is_wanted[roots.always]]
            return self._names.at(places[is_wanted[roots.subscriptions[places]]], always)

    def match_ordinals(self, event: EventArrays) -> Int32:
        """The subscriptions that the event satisfies."""
        roots = self.contents.roots
        with borrow(self._single_scratches, self.make_single_scratch) as scratch:
            places = self._match_event(event, scratch)
            return np.concatenate((roots.always, roots.subscriptions[places]))

    def _match_event(self, event: EventArrays, scratch: SingleScratch) -> Int32:
        """The positions of the matches in `roots.subscriptions`."""
        contents = self.contents
        n_found = match_event(
            0,
            event,
            contents.leaves,
            contents.nodes,
            contents.roots,
            contents.triggers,
            scratch,
        )
        found: Int32 = scratch.found[:n_found]
        return found

    @cached_property
    def _names(self) -> Names:
        return Names(self.contents.ids, self.contents.roots)

    def make_single_scratch(self) -> SingleScratch:
        """Scratch space for matching one event."""
        return make_single_scratch(self.contents)

    # ── blocks of events ───────────────────────────────────────────────────────────────────

    def read_groups(
        self,
        events: EventArrays,
        first_row: int,  # of the block
        bad_rows: Int64,
        roots: RootArrays,
        read: Callable[[Group, Scratch], Any],
    ) -> list[Any]:
        """The results of `read` for each group of a block and the roots found for it."""
        with borrow(self._scratches, self._make_scratch) as scratch:
            groups = match_groups(first_row, events, self.contents, roots, scratch, bad_rows)
            return [read(group, scratch) for group in groups]

    def match_pairs(
        self, events: EventArrays, first_row: int, bad_rows: Int64, roots: RootArrays
    ) -> list[Pairs]:
        """The matches of a block of events, group by group."""
        with borrow(self._scratches, self._make_scratch) as scratch:
            found = match_block_pairs(first_row, events, self.contents, roots, scratch, bad_rows)
            return list(found)

    def count_by_subscription(
        self, events: EventArrays, first_row: int, roots: RootArrays, counts: Int64
    ) -> None:
        """Add the matches of a block to each subscription's count, without always-true ones."""
        with borrow(self._scratches, self._make_scratch) as scratch:
            count_block_by_subscription(first_row, events, self.contents, roots, scratch, counts)

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
