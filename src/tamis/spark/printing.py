"""DataFrames as short tables of text, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.versions.printing import format_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN: Final = 20  # rows of a DataFrame


def format_frame(frame: DataFrame) -> str:
    """The first rows of a DataFrame; this computes them."""
    rows = frame.limit(SHOWN + 1).collect()
    table = format_table(frame.columns, rows[:SHOWN])
    return table if len(rows) <= SHOWN else f"{table}\n… and more"
