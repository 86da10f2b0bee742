"""Whether a row of subscriptions is valid, computed by Spark; `index.validity` defines the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column


def is_valid(at: datetime) -> Column:
    """Whether a row of subscriptions is valid at a moment."""
    return _has_begun(at) & ~is_expired(at)


def _has_begun(at: datetime) -> Column:
    return F.coalesce(F.col("valid_from") <= F.lit(at), F.lit(True))


def is_expired(at: datetime) -> Column:
    """Whether a row of subscriptions will never be valid again."""
    return F.coalesce(F.col("valid_until") <= F.lit(at), F.lit(False))
