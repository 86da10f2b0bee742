"""What a check of an index expects of its arrays, and the error where it is not so.

The error is a `MisfitError`, which `index.artefact` turns into one that names the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.index.carriers import texts_of

if TYPE_CHECKING:
    import numpy as np


class MisfitError(ValueError):
    """Something in an index does not fit the rest of it."""


def expect(is_right: bool | np.bool_, what: str) -> None:
    """Raise unless it is right."""
    if not is_right:
        raise MisfitError(what)


def expect_length(array: np.ndarray, n: int, what: str) -> None:
    """Raise unless there are n."""
    expect(len(array) == n, f"{what} has {len(array)} entries instead of {n}")


def expect_within(array: np.ndarray, low: int, end: int, what: str) -> None:
    """Raise unless all are from `low` to below `end`."""
    if array.size:
        is_right = low <= int(array.min()) and int(array.max()) < end
        expect(is_right, f"{what} has a value outside {low} to {end - 1}")


def expect_starts(starts: np.ndarray, n_runs: int, end: int, what: str) -> None:
    """Raise unless these are where runs begin and the last one ends."""
    expect_length(starts, n_runs + 1, what)
    expect(starts[0] == 0 and starts[-1] == end, f"{what} does not go from 0 to {end}")
    expect((starts[1:] >= starts[:-1]).all(), f"{what} falls")


def expect_texts(offsets: np.ndarray, data: np.ndarray, n: int, what: str) -> pa.Array:
    """The n texts; raises unless they are UTF-8 and fill the data."""
    expect_starts(offsets, n, len(data), what)
    texts = texts_of(offsets, data)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise MisfitError(f"{what} holds bytes that are not UTF-8") from None
    return texts
