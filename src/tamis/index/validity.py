"""The time limits of subscriptions.

A subscription is valid at a moment if `valid_from <= moment < valid_until`; a limit that is not
given does not apply. A subscription that is not valid at the moment of a question matches nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.index.layout import freeze
from tamis.language.types.moments import to_microseconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tamis.kernels.arrays import Int32, Int64

    Limits = tuple[datetime | None, datetime | None]  # valid_from, valid_until

MOMENT: Final = pa.timestamp("us", "UTC")
NO_START: Final = -(2**63) + 1  # before every moment: no start is given
NO_END: Final = 2**63 - 1  # after every moment: no end is given


class ValidityArrays(NamedTuple):
    """The subscriptions whose validity is limited; the others are always valid."""

    ordinals: Int32  # ascending
    starts: Int64  # microseconds since 1970, or NO_START
    ends: Int64  # the same, or NO_END


NO_VALIDITY: Final = freeze(
    ValidityArrays(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64))
)


def make_validity(ids: Sequence[str], limits: Mapping[str, Limits]) -> ValidityArrays:
    """The validity of these subscriptions."""
    found = [(at, *limits[one]) for at, one in enumerate(ids) if one in limits] if limits else []
    timed = [(at, start, end) for at, start, end in found if start or end]
    return freeze(
        ValidityArrays(
            np.array([at for at, _, _ in timed], dtype=np.int32),
            np.array(
                [NO_START if s is None else to_microseconds(s) for _, s, _ in timed], dtype=np.int64
            ),
            np.array(
                [NO_END if e is None else to_microseconds(e) for _, _, e in timed], dtype=np.int64
            ),
        )
    )


class Validity:
    """The subscriptions that are valid at a moment."""

    def __init__(self, arrays: ValidityArrays) -> None:
        self._arrays = arrays

    def __len__(self) -> int:
        """The number of subscriptions with a limited validity."""
        return len(self._arrays.ordinals)

    @cached_property
    def _changes(self) -> Int64:
        """All starts and ends, ascending: between two of them nothing changes."""
        return np.unique(np.concatenate((self._arrays.starts, self._arrays.ends)))

    def period(self, at: datetime) -> int:
        """The number of the period between two changes; equal numbers mean equal answers."""
        return int(np.searchsorted(self._changes, to_microseconds(at), side="right"))

    def asleep(self, at: datetime) -> Int32:
        """The ordinals of the subscriptions that are not valid at a moment."""
        moment = to_microseconds(at)
        is_asleep = (self._arrays.starts > moment) | (self._arrays.ends <= moment)
        found: Int32 = self._arrays.ordinals[is_asleep]
        return found


def limits_columns(arrays: ValidityArrays, n_subscriptions: int) -> tuple[pa.Array, pa.Array]:
    """valid_from and valid_until of all subscriptions, by ordinal; NULL if not given."""
    return (
        _column(arrays.ordinals, arrays.starts, NO_START, n_subscriptions),
        _column(arrays.ordinals, arrays.ends, NO_END, n_subscriptions),
    )


def _column(ordinals: Int32, moments: Int64, none: int, n_subscriptions: int) -> pa.Array:
    values = np.zeros(n_subscriptions, dtype=np.int64)
    is_null = np.ones(n_subscriptions, dtype=np.bool_)
    given = moments != none
    values[ordinals[given]] = moments[given]
    is_null[ordinals[given]] = False
    return pa.array(values, mask=is_null).cast(MOMENT)
