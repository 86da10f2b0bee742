"""Tables that commands of `tamis spark` read and write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, rows: list[dict]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def rows_of(path: Path) -> list[tuple]:
    """The rows of a table, sorted."""
    return sorted(tuple(row.values()) for row in pq.read_table(path).to_pylist())
