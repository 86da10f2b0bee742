"""Ids handed out: the subscriptions' names as strings, quickly for a handful and for thousands.

A string object per subscription, kept, would take 70 bytes each and lie anywhere: handing many out
waits for memory. The ids stay bytes, in the order of the roots, so that what is found together
lies together; those asked for are copied into one text, which Python cuts into strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tamis.match.kernels.names import copy_names, measure_names

if TYPE_CHECKING:
    from tamis.index.layout import RootArrays

_GAP: Final = "\0"


class Names:
    """The ids of subscriptions by place in `roots.subscriptions`."""

    def __init__(self, ids: pa.StringArray, roots: RootArrays) -> None:
        self.always: list[str] = ids.take(pa.array(roots.always)).to_pylist()
        self._ids = ids.take(pa.array(roots.subscriptions))
        _, starts, texts = self._ids.buffers()
        # A buffer may be longer than what it holds, and absent where it holds nothing.
        self._starts = np.frombuffer(starts, dtype=np.int32)[: len(self._ids) + 1]
        self._bytes = np.frombuffer(texts or b"", dtype=np.uint8)
        self._has_gap = bool((self._bytes == 0).any())

    def at(self, places: np.ndarray) -> list[str]:
        """The ids of those that every event matches, and of those at the places."""
        if self._has_gap:  # an id with the character that we cut at
            return [*self.always, *self._ids.take(pa.array(places)).to_pylist()]
        if not len(places):
            return list(self.always)
        text = np.empty(measure_names(places, self._starts), dtype=np.uint8)
        copy_names(places, self._starts, self._bytes, text)
        found = text[:-1].tobytes().decode().split(_GAP)
        return [*self.always, *found] if self.always else found
