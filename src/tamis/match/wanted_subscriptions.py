"""The subscriptions of one part of an index that answer."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.index.carriers import frozen
from tamis.index.hiding import keep_roots
from tamis.kernels.records import Records
from tamis.match.kernels.single import Wanted

if TYPE_CHECKING:
    from datetime import datetime

    from tamis.index.contents import Contents
    from tamis.index.layout import RootArrays
    from tamis.match.batch import Pairs
    from tamis.match.engine import Engine
    from tamis.match.operators import Operators


_EVERYONE: Final = np.empty(0, dtype=np.bool_)
# To choose the roots of a set takes about as long as to examine so many matches for each of its
# subscriptions.
_CHOICE_COST: Final = 2
_CALL_COST: Final = 1_000  # the same, of a call that examines few


class WantedSubscriptions:
    """Some or all subscriptions of a part. Cached while the same are requested: the arrays of their
    roots are built on first use.

    After each removal others are requested, and their roots take time in proportion to the part.
    So the roots of a larger set are used first, and its matches are examined, until that has taken
    as long as to choose the roots: the total is at most twice that of the better way.
    """

    def __init__(
        self,
        contents: Contents,
        operators: Operators,
        is_wanted: np.ndarray | None = None,
        larger: WantedSubscriptions | None = None,
    ) -> None:
        """`is_wanted` is by ordinal: bool[n_subscriptions]; None for all. `larger` has these
        subscriptions and some more.
        """
        self.is_wanted = is_wanted
        self._contents = contents
        self._operators = operators
        self._source = self if larger is None else larger.source
        self._credit = _CHOICE_COST * len(contents.ids)

    @property
    def source(self) -> WantedSubscriptions:
        """The set whose roots are used now: this one, or a larger one with `keep_pairs`."""
        return self._source

    def keep_pairs(self, pairs: Pairs) -> Pairs:
        """The requested ones among the matches of a larger set."""
        assert self.is_wanted is not None
        is_kept = self.is_wanted[pairs.subscriptions]
        self._credit -= len(is_kept) + _CALL_COST
        if self._credit < 0:
            self._source = self
        if is_kept.all():
            return pairs
        n_kept = np.zeros(len(is_kept) + 1, dtype=np.int64)
        np.cumsum(is_kept, out=n_kept[1:])
        found = pairs.subscriptions[is_kept]
        return pairs._replace(starts=n_kept[pairs.starts], subscriptions=found)

    @cached_property
    def records(self) -> Records:
        """Which ones they are, for the single-event kernel."""
        flags = _EVERYONE if self.is_wanted is None else self.is_wanted
        return Records([Wanted(frozen(np.ascontiguousarray(flags).view(np.uint8)))])

    @cached_property
    def roots(self) -> RootArrays:
        """The roots of the requested subscriptions."""
        roots = self._contents.roots
        found = roots if self.is_wanted is None else keep_roots(roots, self.is_wanted)
        self._source = self
        return found

    @cached_property
    def settled(self) -> RootArrays:
        """The roots of those without operators: the index decides their matches."""
        if not len(self._operators):
            return self.roots
        return keep_roots(self.roots, ~self._operators.is_decided_here)

    @cached_property
    def decided(self) -> RootArrays:
        """The roots of the others."""
        return keep_roots(self.roots, self._operators.is_decided_here)

    def keep(self, ordinals: np.ndarray) -> np.ndarray:
        """The requested ones among these subscriptions."""
        return ordinals if self.is_wanted is None else ordinals[self.is_wanted[ordinals]]

    def flags(self) -> np.ndarray:
        """bool[n_subscriptions]: whether each is wanted."""
        everyone = np.ones(len(self._contents.ids), dtype=np.bool_)
        return everyone if self.is_wanted is None else self.is_wanted

    def only(self, is_wanted: np.ndarray, *, are_most: bool = False) -> WantedSubscriptions:
        """Those that are also in another set; `are_most` says that few are left out."""
        both = is_wanted if self.is_wanted is None else is_wanted & self.is_wanted
        larger = self if are_most else None
        return WantedSubscriptions(self._contents, self._operators, both, larger)


class Moments:
    """The subscriptions that are valid at a moment. Caches the last result, which stays the same
    between two changes.

    If no subscription has a limited validity, nothing is computed.
    """

    def __init__(
        self, engine: Engine, is_hidden: np.ndarray | None, earlier: Moments | None = None
    ) -> None:
        """`is_hidden` is by ordinal: those that never answer; None for none. `earlier` is of the
        same part, when fewer were hidden.
        """
        is_shown = None if is_hidden is None else ~is_hidden
        larger = None if earlier is None or is_shown is None else earlier.everyone
        self.everyone: WantedSubscriptions = WantedSubscriptions(
            engine.contents, engine.operators, is_shown, larger
        )
        self.is_hidden = is_hidden
        self._validity = engine.validity
        self._last: tuple[int, WantedSubscriptions] | None = None

    def __len__(self) -> int:
        """The number of subscriptions with a limited validity."""
        return len(self._validity)

    def find(self, moment: datetime) -> WantedSubscriptions:
        """The subscriptions that are valid at a moment."""
        if not len(self._validity):
            return self.everyone
        period = self._validity.period(moment)
        last = self._last  # read once: another thread may replace it
        if last is not None and last[0] == period:
            return last[1]
        found = self._without(self._validity.asleep(moment))
        self._last = (period, found)
        return found

    def _without(self, asleep: np.ndarray) -> WantedSubscriptions:
        if not len(asleep):
            return self.everyone
        is_awake = self.everyone.flags().copy()
        is_awake[asleep] = False
        return self.everyone.only(is_awake, are_most=2 * len(asleep) < len(is_awake))
