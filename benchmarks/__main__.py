"""Run benchmarks by name, show each as a table and keep its rows as JSON."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import platform
import sys
import time
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from rich.console import Console
from rich.table import Table

import benchmarks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PREFIX = "bench_"
RESULTS = Path(__file__).with_name("results")
WIDE = 240  # columns of text

Row = dict[str, Any]


def find_benchmarks() -> list[str]:
    """The names of all benchmarks, sorted."""
    modules = pkgutil.iter_modules(benchmarks.__path__)
    return sorted(
        module.name.removeprefix(PREFIX) for module in modules if module.name.startswith(PREFIX)
    )


def load_benchmark(name: str) -> ModuleType:
    """The module of one benchmark."""
    return importlib.import_module(f"benchmarks.{PREFIX}{name}")


def build_table(title: str, rows: Sequence[Row]) -> Table:
    """The rows as a table; a column per key, in order of first appearance."""
    table = Table(title=title, title_justify="left")
    columns = list(dict.fromkeys(key for row in rows for key in row))
    numeric = {
        column
        for column in columns
        if all(isinstance(row[column], Real) for row in rows if column in row)
    }
    for column in columns:
        table.add_column(column, justify="right" if column in numeric else "left")
    for row in rows:
        table.add_row(*(format_cell(row.get(column)) for column in columns))
    return table


def format_cell(value: object) -> str:
    """A value as a table shows it: numbers to four significant digits or in full groups."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        number = float(value)
        return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
    return str(value)


def write_result(name: str, title: str, rows: Sequence[Row], seconds: float) -> Path:
    """Keep one run, with what is needed to compare it with another."""
    result = {
        "benchmark": name,
        "title": title,
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "tamis": version("tamis"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "n_cores": os.cpu_count(),
        "rows": list(rows),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY
    path.write_bytes(orjson.dumps(result, option=options))
    return path


def run_benchmark(name: str, console: Console) -> None:
    """Run one benchmark, show it and keep its result."""
    module = load_benchmark(name)
    start = time.perf_counter()
    rows: list[Row] = []
    try:
        for row in module.run():  # some yield each row when it is measured
            rows.append(row)
            _show_progress(row, time.perf_counter() - start)
    except BaseException:
        if rows:
            console.print(build_table(f"{module.TITLE} (did not finish)", rows))
        raise
    seconds = time.perf_counter() - start
    console.print(build_table(module.TITLE, rows))
    path = write_result(name, module.TITLE, rows, seconds)
    console.print(f"{name}: {seconds:.1f} s, rows in {os.path.relpath(path)}\n", style="dim")


def _show_progress(row: Row, seconds: float) -> None:
    cells = (format_cell(cell) for cell in row.values())
    line = " ".join(cell for cell in cells if cell)
    print(f"{seconds:7.1f} s  {line}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments name; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which to run (default: all)")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and stop")
    options = parser.parse_args(arguments)
    known = find_benchmarks()
    console = Console()
    if not console.is_terminal:
        console.width = WIDE  # a file has room for all columns
    if options.list:
        for name in known:
            console.print(f"{name:20} {load_benchmark(name).TITLE}")
        return 0
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"unknown benchmark {unknown[0]!r}; known are: {', '.join(known) or 'none'}")
    if not known:
        console.print(f"no benchmarks: there is no {PREFIX}*.py in {benchmarks.__name__}/")
    # Drawn events are few, of many attributes.
    warnings.filterwarnings("ignore", ".*missing in every event")
    for name in options.names or known:
        run_benchmark(name, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
