"""The elements of arrays of structs: what their fields are read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence


class Objects(NamedTuple):
    """Some values of several sources, each an array of Python objects or an Arrow array.

    The structs of two attributes have different Arrow types, so they cannot be joined to one array.
    """

    sources: tuple[Any, ...]
    numbers: np.ndarray  # int32[n], the source of each
    places: np.ndarray  # int64[n], … and its place there

    @classmethod
    def of(cls, source: Any) -> Objects:
        """All values of one source."""
        n_values = len(source)
        return cls((source,), np.zeros(n_values, dtype=np.int32), np.arange(n_values))

    def pick(self, wanted: np.ndarray) -> Objects:
        """Those at some places, or where a mask is true."""
        return self._replace(numbers=self.numbers[wanted], places=self.places[wanted])

    def collect(self) -> Any:
        """All of them as one array; the sources are of the same kind."""
        used = np.unique(self.numbers).tolist()
        if len(used) == 1:
            return _take(self.sources[used[0]], self.places)
        pieces = [_take(self.sources[own], self.places[self.numbers == own]) for own in used]
        order = np.argsort(np.argsort(self.numbers, kind="stable"), kind="stable")
        joined = pa.concat_arrays(pieces) if isinstance(pieces[0], pa.Array) else _stack(pieces)
        return _take(joined, order)


def join_objects(pieces: Sequence[Objects]) -> Objects:
    """The values of several, one after another."""
    counts = np.cumsum([0, *(len(own.sources) for own in pieces)])
    return Objects(
        tuple(source for own in pieces for source in own.sources),
        np.concatenate(
            [own.numbers + np.int32(first) for own, first in zip(pieces, counts, strict=False)]
        ),
        np.concatenate([own.places for own in pieces]),
    )


def _take(source: Any, places: np.ndarray) -> Any:
    return source.take(pa.array(places)) if isinstance(source, pa.Array) else source[places]


def _stack(pieces: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=object)
