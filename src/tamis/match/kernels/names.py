"""Copy names from all over into one text."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.kernels.prefetch import prefetch_row

AHEAD = 16  # names; what is asked for then is there when its turn comes


@kernel
def measure_names(places, starts):
    """The bytes that the names at these places take, each with one more after it."""
    n_bytes = np.int64(0)
    for at in range(len(places)):
        if at + AHEAD < len(places):
            prefetch_row(starts, places[at + AHEAD])
        place = places[at]
        n_bytes += starts[place + 1] - starts[place] + 1
    return n_bytes


@kernel
def copy_names(places, starts, names, text):
    """Write the names at these places, each with a zero after it."""
    end = 0
    for at in range(len(places)):
        if at + AHEAD < len(places):
            prefetch_row(names, starts[places[at + AHEAD]])
        place = places[at]
        for byte in range(starts[place], starts[place + 1]):
            text[end] = names[byte]
            end += 1
        text[end] = 0
        end += 1
