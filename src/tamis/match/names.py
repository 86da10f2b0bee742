"""Returns ids of subscriptions as strings, fast for a few and for thousands.

Making strings costs more than matching, so they are cached, in the order of the roots: ids found
together are close together. Among a million they are still far apart; returning one writes to it,
which would wait for memory each time. So some thousand are prefetched at a time, and then used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tamis.match.kernels.names import fetch_objects

if TYPE_CHECKING:
    from tamis.index.layout import RootArrays

MOST_KEPT: Final = 4_000_000  # strings of about 70 bytes
CHUNK: Final = 2_048  # strings prefetched at a time: as many as the second-level cache holds


class Names:
    """The ids of subscriptions by position in `roots.subscriptions`."""

    def __init__(self, ids: pa.StringArray, roots: RootArrays) -> None:
        self._always: list[str] = ids.take(pa.array(roots.always)).to_pylist()
        self._ids, self._roots = ids, roots
        self._kept: np.ndarray | None = None
        if len(ids) <= MOST_KEPT:
            in_order = ids.take(pa.array(roots.subscriptions))
            self._kept = in_order.to_numpy(zero_copy_only=False)
            # In CPython an id is an address; elsewhere the prefetch has no effect.
            self._addresses = np.fromiter(map(id, self._kept), dtype=np.int64, count=len(in_order))

    def at(self, places: np.ndarray, always: np.ndarray | None = None) -> list[str]:
        """The ids of subscriptions that every event matches, or of those in `always`, and of those
        at the positions.
        """
        if always is None:
            found = list(self._always)
        else:
            found = self._ids.take(pa.array(always)).to_pylist() if len(always) else []
        if self._kept is None:
            ordinals = self._roots.subscriptions[places]
            return [*found, *self._ids.take(pa.array(ordinals)).to_pylist()]
        for start in range(0, len(places), CHUNK):
            some = places[start : start + CHUNK]
            fetch_objects(some, self._addresses)
            found += self._kept[some].tolist()
        return found
