"""Ids handed out: the subscriptions' names as strings, quickly for a handful and for thousands.

Making strings costs more than matching, so they are kept, in the order of the roots: what is found
together lies together. Of many subscriptions they would lie too far apart, and each would be waited
for; there the ids stay bytes, those asked for are copied into one text, and Python cuts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tamis.match.kernels.names import copy_names, measure_names

if TYPE_CHECKING:
    from tamis.index.layout import RootArrays

MOST_KEPT: Final = 250_000  # strings of about 70 bytes, half of the last cache
_GAP: Final = "\0"


class Names:
    """The ids of subscriptions by place in `roots.subscriptions`."""

    def __init__(self, ids: pa.StringArray, roots: RootArrays) -> None:
        self.always: list[str] = ids.take(pa.array(roots.always)).to_pylist()
        in_order = ids.take(pa.array(roots.subscriptions))
        _, starts, texts = in_order.buffers()
        # A buffer may be longer than what it holds, and absent where it holds nothing.
        self._starts = np.frombuffer(starts, dtype=np.int32)[: len(in_order) + 1]
        self._bytes = np.frombuffer(texts or b"", dtype=np.uint8)
        self._kept: np.ndarray | None = None
        if len(in_order) <= MOST_KEPT or (self._bytes == 0).any():
            # Few, or one has the character that we would cut at.
            self._kept = in_order.to_numpy(zero_copy_only=False)

    def at(self, places: np.ndarray) -> list[str]:
        """The ids of those that every event matches, and of those at the places."""
        if self._kept is not None:
            return [*self.always, *self._kept[places].tolist()]
        return [*self.always, *self._cut(places)]

    def _cut(self, places: np.ndarray) -> list[str]:
        if not len(places):
            return []
        text = np.empty(measure_names(places, self._starts), dtype=np.uint8)
        copy_names(places, self._starts, self._bytes, text)
        return text[:-1].tobytes().decode().split(_GAP)
