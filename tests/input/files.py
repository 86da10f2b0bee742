"""One table written as a file of each format."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

NAMES = ("x.jsonl", "x.json", "x.csv", "x.tsv", "x.parquet", "x.arrow", "x.arrows", "lines.json")


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write the rows as the path's ending says; `x.json` is an array, `lines.json` is lines."""
    table = pa.Table.from_pylist(rows)
    if path.name == "x.json":
        path.write_text(json.dumps(rows, indent=1))
    elif path.suffix in (".jsonl", ".json"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="") as stream:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            writer = csv.DictWriter(stream, list(table.column_names), delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        new = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
        with new(str(path), table.schema) as writer:
            writer.write_table(table)
    return path
