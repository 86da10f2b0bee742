"""An index in which some subscriptions match nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.index.layout import RootArrays, freeze, run_starts

if TYPE_CHECKING:
    import numpy.typing as npt


def keep_roots(roots: RootArrays, is_kept: npt.NDArray[np.bool_]) -> RootArrays:
    """The roots of those subscriptions that are kept, by ordinal."""
    kept = is_kept[roots.subscriptions]
    owners = np.repeat(np.arange(len(roots.nodes)), np.diff(roots.subscription_starts))
    counts = np.bincount(owners[kept], minlength=len(roots.nodes))
    return freeze(
        RootArrays(
            roots.nodes[counts > 0],
            run_starts(counts[counts > 0]),
            roots.subscriptions[kept],
            roots.always[is_kept[roots.always]],
        )
    )
