"""An index in which some subscriptions match nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tamis.index.layout import RootArrays, freeze, run_starts

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from tamis.index.contents import Contents


def find_hidden(contents: Contents, ids: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """By ordinal, whether the subscription is one of those with these ids."""
    import pyarrow.compute as pc  # slow to load, and matching a saved index does not need it

    found: npt.NDArray[np.bool_] = pc.is_in(contents.ids, ids).to_numpy(zero_copy_only=False)
    return found


def hide(contents: Contents, is_hidden: npt.NDArray[np.bool_]) -> Contents:
    """The same index, in which these subscriptions, by ordinal, match nothing."""
    return replace(contents, roots=keep_roots(contents.roots, ~is_hidden))


def keep_roots(roots: RootArrays, is_kept: npt.NDArray[np.bool_]) -> RootArrays:
    """The roots of the subscriptions that are kept; `is_kept` is by ordinal."""
    kept = is_kept[roots.subscriptions]
    counts = kept.view(np.uint8)
    if len(roots.nodes) != len(roots.subscriptions):  # a root has at least one subscription
        counts = np.add.reduceat(counts, roots.subscription_starts[:-1], dtype=np.int32)
    has_any = counts > 0
    return freeze(
        RootArrays(
            roots.nodes[has_any],
            run_starts(counts[has_any]),
            roots.subscriptions[kept],
            roots.always[is_kept[roots.always]],
        )
    )
