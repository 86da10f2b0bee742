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
    from collections.abc import Callable

    from tamis.index.layout import RootArrays

MOST_KEPT: Final = 4_000_000  # strings of about 70 bytes
MANY: Final = 100_000
FEW: Final = 32  # strings that are not worth a prefetch
CHUNK: Final = 2_048  # strings prefetched at a time: as many as the second-level cache holds


class Names:
    """The ids of subscriptions by position in `roots.subscriptions`."""

    def __init__(self, ids: pa.StringArray, roots: RootArrays) -> None:
        self._ids, self._roots = ids, roots
        self.always: list[str] = self.of(roots.always)  # of those that every event matches
        self._kept: np.ndarray | None = None
        if len(ids) <= MOST_KEPT:
            in_order = ids.take(_view_int32(roots.subscriptions))
            self._kept = _to_objects(in_order)
            self._one: Callable[[int], str] = self._kept.item
            # In CPython an id is an address; elsewhere the prefetch has no effect.
            self._addresses = np.fromiter(map(id, self._kept), dtype=np.int64, count=len(in_order))

    def of(self, ordinals: np.ndarray) -> list[str]:
        """The ids of subscriptions by ordinal."""
        names: list[str] = self._ids.take(_view_int32(ordinals)).to_pylist()
        return names

    def at(self, found: np.ndarray, n_found: int, always: list[str]) -> list[str]:
        """The ids in `always`, and those of subscriptions at the first `n_found` positions."""
        names = always.copy()
        if not n_found:
            return names
        if self._kept is None:
            return names + self.of(self._roots.subscriptions[found[:n_found]])
        if n_found <= FEW:
            names += map(self._one, found[:n_found].tolist())
            return names
        for start in range(0, n_found, CHUNK):
            some = found[start : min(start + CHUNK, n_found)]
            fetch_objects(some, self._addresses)
            names += self._kept[some].tolist()
        return names


# Some functions of Arrow import pandas, which takes longer than to open an index: `pa.array` of a
# NumPy array, and `to_numpy` of texts.


def _view_int32(numbers: np.ndarray) -> pa.Int32Array:
    """The same numbers, without a copy."""
    return pa.Int32Array.from_buffers(pa.int32(), len(numbers), [None, pa.py_buffer(numbers)])


def _to_objects(texts: pa.StringArray) -> np.ndarray:
    """The texts as an array of strings."""
    objects: np.ndarray
    if len(texts) > MANY:
        objects = texts.to_numpy(zero_copy_only=False)  # twice as fast
    else:
        objects = np.empty(len(texts), dtype=object)
        objects[:] = texts.to_pylist()
    return objects
