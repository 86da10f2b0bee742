"""Which subscriptions answer at a moment. Where none has a limited validity, nothing is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.index.hiding import keep_roots
from tamis.index.validity import Validity
from tamis.language.moments import read_at

if TYPE_CHECKING:
    from tamis.index.contents import Contents
    from tamis.index.layout import RootArrays
    from tamis.index.validity import ValidityArrays


class Shown(NamedTuple):
    """The subscriptions that answer, where not all do."""

    is_awake: np.ndarray  # bool[n_subscriptions]
    roots: RootArrays


class Moments:
    """Remembers who answered last: between two changes the same ones do."""

    def __init__(self, contents: Contents, validity: ValidityArrays) -> None:
        self._contents = contents
        self._validity = Validity(validity)
        self._last: tuple[int, Shown | None] | None = None

    def shown(self, at: Any) -> Shown | None:
        """Who answers at a moment, now if none is given; None where all do."""
        if at is None and not len(self._validity):
            return None
        moment = read_at(at)
        if not len(self._validity):
            return None
        period = self._validity.period(moment)
        last = self._last  # read once: another thread may replace it
        if last is not None and last[0] == period:
            return last[1]
        found = self._find(self._validity.asleep(moment))
        self._last = (period, found)
        return found

    def _find(self, asleep: np.ndarray) -> Shown | None:
        if not len(asleep):
            return None
        is_awake = np.ones(len(self._contents.ids), dtype=np.bool_)
        is_awake[asleep] = False
        return Shown(is_awake, keep_roots(self._contents.roots, is_awake))
