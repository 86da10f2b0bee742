"""Files of subscriptions and events, and an index built by the command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cli.shell import run

SUBSCRIPTIONS = [
    ("adult", "age >= 18"),
    ("french", "country = 'FR' AND NOT vip"),
    ("named", "name LIKE 'a%' OR tag = 'x'"),
    ("absent", "country IS NULL"),
]
SCHEMA = "age INT, country STRING, vip BOOLEAN, name STRING, tag STRING"
EVENTS = [
    {"id": "e1", "age": 20, "country": "FR", "vip": False},
    {"id": "e2", "age": 3, "name": "anna"},
    {"id": "e3", "country": "DE"},
]
MATCHES = [["adult", "french"], ["absent", "named"], []]  # sorted: their order is the index's own


def in_order(rows: list[dict[str, Any]]) -> list[list[str]]:
    """The matches of each row of JSON, sorted."""
    return [sorted(row["matches"]) for row in rows]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows as a file, in the format of its name; missing values are empty or NULL."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if path.suffix == ".parquet":
        columns = {name: [row.get(name) for row in rows] for name in names}
        pq.write_table(pa.table(columns), path)
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            for row in rows:
                writer.writerow([_spell(row.get(name)) for name in names])
    else:
        lines = (json.dumps(row) + "\n" for row in rows)
        path.write_text("".join(lines), encoding="utf-8")
    return path


def _spell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def write_subscriptions(path: Path, rows: list[tuple[Any, Any]]) -> Path:
    return write_rows(path, [{"id": name, "expression": text} for name, text in rows])


def build_index(folder: Path, rows: list[tuple[Any, Any]] | None = None, *options: str) -> Path:
    """An index in the folder, built from the rows."""
    source = write_subscriptions(folder / "subs.jsonl", SUBSCRIPTIONS if rows is None else rows)
    schema = ("--schema", SCHEMA) if rows is None else ()
    path = folder / "subs.tamis"
    result = run("build", source, "-o", path, *schema, *options)
    assert result.exit_code == 0, result.output
    return path
