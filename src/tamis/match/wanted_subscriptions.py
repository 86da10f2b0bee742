"""The subscriptions of one part of an index that answer."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tamis.index.hiding import keep_roots

if TYPE_CHECKING:
    from datetime import datetime

    from tamis.index.contents import Contents
    from tamis.index.layout import RootArrays
    from tamis.match.engine import Engine
    from tamis.match.operators import Operators


class WantedSubscriptions:
    """Some or all subscriptions of a part. Cached while the same are requested: the arrays of their
    roots are built on first use.
    """

    def __init__(
        self, contents: Contents, operators: Operators, is_wanted: np.ndarray | None = None
    ) -> None:
        """`is_wanted` is by ordinal: bool[n_subscriptions]; None for all."""
        self.is_wanted = is_wanted
        self._contents = contents
        self._operators = operators

    @cached_property
    def roots(self) -> RootArrays:
        """The roots of the requested subscriptions."""
        roots = self._contents.roots
        return roots if self.is_wanted is None else keep_roots(roots, self.is_wanted)

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

    def only(self, is_wanted: np.ndarray) -> WantedSubscriptions:
        """Those that are also in another set."""
        both = is_wanted if self.is_wanted is None else is_wanted & self.is_wanted
        return WantedSubscriptions(self._contents, self._operators, both)


class Moments:
    """The subscriptions that are valid at a moment. Caches the last result, which stays the same
    between two changes.

    If no subscription has a limited validity, nothing is computed.
    """

    def __init__(self, engine: Engine, is_hidden: np.ndarray | None) -> None:
        """`is_hidden` is by ordinal: those that never answer; None for none."""
        is_shown = None if is_hidden is None else ~is_hidden
        self.everyone = WantedSubscriptions(engine.contents, engine.operators, is_shown)
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
        return self.everyone.only(is_awake)
