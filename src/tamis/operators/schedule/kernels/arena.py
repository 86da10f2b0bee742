"""Many arrays in one, so that a kernel called at every step takes few arguments.

Numba needs a quarter of a microsecond for each array argument, so the twenty arrays of a step would
cost more than the step. An arena begins with the offsets of its sections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.errors import TamisError
from tamis.kernels.compiled import kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_WORDS = 2**31 - 1


def pack(sections: Sequence[np.ndarray | int]) -> np.ndarray:
    """An int32 arena of arrays, with zeros for a section given only by its length."""
    lengths = [each if isinstance(each, int) else len(each) for each in sections]
    ends = np.cumsum([len(sections) + 1, *lengths], dtype=np.int64)
    if ends[-1] > MAX_WORDS:
        raise TamisError(f"a schedule of {ends[-1]:,} numbers; at most {MAX_WORDS:,}")
    arena = np.zeros(ends[-1], dtype=np.int32)
    arena[: len(ends)] = ends
    for begin, each in zip(ends, sections, strict=False):
        if not isinstance(each, int):
            arena[begin : begin + len(each)] = each
    return arena


@kernel(inline="always")
def section(arena, number):
    """One of the arrays of an arena, to read and write."""
    return arena[arena[number] : arena[number + 1]]
