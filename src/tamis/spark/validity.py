"""From when and until when a subscription answers.

A subscription is valid at a moment when `valid_from <= moment < valid_until`; what is not given
does not limit. A job asks of one moment, and what is not valid then is hidden in the parts.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyspark.sql import functions as F

from tamis.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

    Moments = npt.NDArray[np.datetime64]


class Validity(NamedTuple):
    """The subscriptions of one part whose validity is limited."""

    ids: pa.Array
    starts: Moments  # the first moment where none is given
    ends: Moments  # the last one
    changes: Moments  # all starts and ends, rising: between two of them nothing changes

    def period(self, at: datetime) -> int:
        """The number of the time between two changes; equal numbers, equal answers."""
        return int(np.searchsorted(self.changes, to_moment(at), side="right"))

    def asleep(self, at: datetime) -> pa.Array:
        """The ids that are not valid at a moment."""
        moment = to_moment(at)
        return self.ids.filter((self.starts > moment) | (self.ends <= moment))


def read_validity(details: pa.Table) -> Validity:
    """What a part's details say."""
    starts, ends = (
        details[name].to_numpy().astype("datetime64[us]") for name in ("valid_from", "valid_until")
    )
    is_timed = ~(np.isnat(starts) & np.isnat(ends))
    starts, ends = starts[is_timed], ends[is_timed]
    changes = np.unique(np.concatenate((starts[~np.isnat(starts)], ends[~np.isnat(ends)])))
    starts[np.isnat(starts)] = np.datetime64(-(2**63) + 1, "us")
    ends[np.isnat(ends)] = np.datetime64(2**63 - 1, "us")
    ids = details["subscription_id"].combine_chunks().filter(is_timed)
    return Validity(ids, starts, ends, changes)


def to_moment(at: datetime) -> np.datetime64:
    """The moment as NumPy has it."""
    return np.datetime64(at.astimezone(UTC).replace(tzinfo=None), "us")


def read_at(at: Any) -> datetime:
    """The moment that a caller names; now, if none."""
    if at is None:
        return datetime.now(UTC)
    found = at
    if isinstance(at, str):
        try:
            found = datetime.fromisoformat(at)
        except ValueError:
            found = None
    elif isinstance(at, date) and not isinstance(at, datetime):
        found = datetime(at.year, at.month, at.day)
    if not isinstance(found, datetime):
        raise InputError(f"{at!r} is no moment", hint="write 2030-01-31T12:00:00, in UTC")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def is_valid(at: datetime) -> Column:
    """Whether a row of subscriptions answers at a moment."""
    return _has_begun(at) & ~is_expired(at)


def _has_begun(at: datetime) -> Column:
    return F.coalesce(F.col("valid_from") <= F.lit(at), F.lit(True))


def is_expired(at: datetime) -> Column:
    """Whether a row of subscriptions will never answer again."""
    return F.coalesce(F.col("valid_until") <= F.lit(at), F.lit(False))
