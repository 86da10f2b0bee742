"""Checks of the arrays of an index, and the error if one fails.

The error is a `MisfitError`, which `index.artefact` converts to one that names the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.index.carriers import texts_of

if TYPE_CHECKING:
    import numpy as np


class MisfitError(ValueError):
    """A part of an index is inconsistent with the rest."""


def expect(is_right: bool | np.bool_, what: str) -> None:
    """Raise an error unless the condition is true."""
    if not is_right:
        raise MisfitError(what)


def expect_length(array: np.ndarray, n: int, what: str) -> None:
    """Raise an error unless the array has n entries."""
    expect(len(array) == n, f"{what} has {len(array)} entries instead of {n}")


def expect_within(array: np.ndarray, low: int, end: int, what: str) -> None:
    """Raise an error unless all values are at least `low` and below `end`."""
    if array.size:
        is_right = low <= int(array.min()) and int(array.max()) < end
        expect(is_right, f"{what} has a value outside {low} to {end - 1}")


def expect_starts(starts: np.ndarray, n_runs: int, end: int, what: str) -> None:
    """Raise an error unless these are valid starts of runs, with the end of the last one."""
    expect_length(starts, n_runs + 1, what)
    expect(starts[0] == 0 and starts[-1] == end, f"{what} does not go from 0 to {end}")
    expect((starts[1:] >= starts[:-1]).all(), f"{what} is not ascending")


def expect_texts(offsets: np.ndarray, data: np.ndarray, n: int, what: str) -> pa.Array:
    """The n texts; raises an error unless they are UTF-8 and fill the data."""
    expect_starts(offsets, n, len(data), what)
    texts = texts_of(offsets, data)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise MisfitError(f"{what} holds bytes that are not UTF-8") from None
    return texts
