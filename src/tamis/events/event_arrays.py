"""An encoded batch of events, in the form that the kernels use."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.events.kernels.ranks import sort_by_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.kernels.arrays import Int32, Int64, UInt8


class EventArrays(NamedTuple):
    """An encoded batch of events: row by row, one entry for each column that has a code."""

    row_starts: Int64  # [n_rows + 1]
    columns: Int32
    codes: Int32  # a global code; from n_codes on, a text of the batch
    # Texts of pattern columns: the leaves that each distinct one satisfies.
    text_starts: Int64
    text_leaves: Int32
    # A mark means that an array or a text is present (it may be empty), and whether an element is
    # NULL.
    mark_starts: Int64  # [n_rows + 1]
    mark_rows: Int32
    mark_columns: Int32
    mark_has_null: UInt8


class ColumnCodes(NamedTuple):
    """Codes of some columns, in any order."""

    rows: Int32
    columns: Int32
    codes: Int32


_NOTHING = ColumnCodes(*(np.empty(0, np.int32) for _ in range(3)))


class TextLeaves(NamedTuple):
    """The leaves that each distinct text of a batch satisfies."""

    starts: Int64
    leaves: Int32


def assemble(
    n_rows: int, found: Sequence[ColumnCodes], texts: TextLeaves, marks: Sequence[ColumnCodes]
) -> EventArrays:
    """Converts columns to rows; the codes of `marks` state whether an element is NULL."""
    row_starts, columns, codes = _by_row(n_rows, found)
    mark_starts, mark_columns, has_null = _by_row(n_rows, marks)
    return EventArrays(
        row_starts,
        columns,
        codes,
        texts.starts,
        texts.leaves,
        mark_starts,
        np.repeat(np.arange(n_rows, dtype=np.int32), np.diff(mark_starts)),
        mark_columns,
        has_null.astype(np.uint8),
    )


def _by_row(n_rows: int, found: Sequence[ColumnCodes]) -> tuple[Int64, Int32, Int32]:
    row_starts = np.zeros(n_rows + 1, dtype=np.int64)
    rows, columns, codes = map(np.concatenate, zip(*found, _NOTHING, strict=True))
    sorted_columns, sorted_codes = np.empty_like(columns), np.empty_like(codes)
    sort_by_row(rows, columns, codes, row_starts, sorted_columns, sorted_codes)
    return row_starts, sorted_columns, sorted_codes
