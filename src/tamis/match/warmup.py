"""Cold start: compiles all kernels, or loads them from the cache, with a tiny index and its
events. `python -m tamis.match.warmup` does it for other processes.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tamis.match.index import Index

# Every operator and every kind of column, so that as few kernels as possible are missed.
_SUBSCRIPTIONS: Final = {
    "set": "a IN (1, 2) AND b <> 'x' AND c < 0.5",
    "pattern": "b LIKE '%y%' OR NOT b RLIKE 'z+' OR b ILIKE 'q_r%'",
    "array": "array_contains(t, 'u') AND a IS NOT NULL AND c IS NULL",
    "pair": "a < d OR d = 3",
    "counted": "at_least(2, a = 1, b = 'x', c > 0.5)",
    "parity": "a = 1 XOR b = 'x'",
    "shared": "(a = 1 OR d = 4) AND (m > 1.25 OR e <= DATE '2024-01-01')",
    "words": "matches(b, 'x xy*') OR matches_phrase(b, 'x y') OR near(b, 'x y', 1)",
    "number": "n > 2.5 OR n = 7",
    "always": "TRUE",
}
_SCHEMA: Final = (
    "a INT, b STRING, c DOUBLE, d INT, e DATE, m DECIMAL(9,2), n NUMBER, t ARRAY<STRING>"
)
_EVENTS: Final = (
    {"a": 1, "b": "xyz", "c": 0.25, "d": 3, "e": "2023-05-01", "m": 2, "n": 3, "t": ["u", None]},
    {"b": "x", "t": []},
)
_N_DISTINCT: Final = 4_000  # constants: so many that tables of them grow
_STAMP: Final = "tamis.warm"


def warm_up() -> None:
    """Compile the kernels, or load them from the cache, by building and matching a tiny index."""
    from tamis.match.build import build

    index = build(_SUBSCRIPTIONS, _SCHEMA, weights={"set": 1})
    batch = index.encode(list(_EVENTS))
    index.encode([json.dumps(event) for event in _EVENTS])
    index.match(_EVENTS[0])
    index.match(json.dumps(_EVENTS[0]))
    index.match_batch(batch)
    index.match_batch(batch, subset=["set"])
    index.count_by_subscription(batch)
    index.count_by_event(batch)
    index.summarise_by_subscription(batch)
    index.summarise_by_event(batch)
    index.match_top(batch, 1)
    _warm_up_lines(index)
    _warm_up_arrow(index)
    _warm_up_parts()
    build({f"s{at}": f"a = {at} OR b = 'x{at}'" for at in range(_N_DISTINCT)}, _SCHEMA)
    _warm_up_schedule()


def _warm_up_lines(index: Index) -> None:
    """The same for JSON lines."""
    from tamis.events.json_source import count_lines, split_lines

    lines = "\n".join(map(json.dumps, _EVENTS)).encode()
    count_lines(lines)
    index.match_batch(split_lines(lines, len(lines)).texts)


def _warm_up_arrow(index: Index) -> None:
    """The same for Arrow tables with missing values."""
    import pyarrow as pa

    index.match_batch(pa.table({"a": [1, None], "b": ["x", None], "c": [0.5, None]}))


def _warm_up_parts() -> None:
    """The same for the matches of several parts."""
    import numpy as np

    from tamis.match.batch import Pairs
    from tamis.match.readouts.pairs import join_pairs

    for kind in (np.int32, np.int64):
        pairs = Pairs(0, np.array([0, 1]), np.zeros(1, dtype=kind))
        join_pairs([pairs, pairs])


def _warm_up_schedule() -> None:
    """The same for the kernels that choose calls of operators."""
    from tamis.match.build import build
    from tamis.operators.registry import Registry, operator

    registry = Registry()
    operator("p(?integer)", timeout=None, registry=registry)(lambda event: [1, 2])
    operator("q(integer)", timeout=None, registry=registry)(lambda event, number: number == 1)
    texts = {
        "joined": "p(?x) AND q(1) AND ?x > 1",
        "either": "q(1) AND (q(2) OR NOT q(3))",
        "both": "q(1) AND q(2)",
    }
    index = build(texts, operators=registry)
    index.match({})


def is_warmed_up() -> bool:
    """Whether all of this was compiled on this machine, from the present sources, and stored."""
    found = _find_stamp()
    if found is None:
        return True
    path, text = found
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, ValueError):
        return False


def _find_stamp() -> tuple[Path, str] | None:
    """The file that says so, among the compiled kernels, and its text; None if compilation is
    turned off.
    """
    from numba import __version__ as compiler
    from numba.core.registry import cpu_target

    from tamis.kernels.caching import digest_sources
    from tamis.match.kernels import readout

    cache: Any = getattr(readout.append_runs, "_cache", None)
    if cache is None:
        return None
    version = ".".join(map(str, sys.version_info[:3]))
    machine = cpu_target.target_context.codegen().magic_tuple()
    text = repr((version, compiler, machine, digest_sources()))
    return Path(cache.cache_path) / _STAMP, text


def main() -> None:
    """Compile the kernels, and remember that."""
    from tamis import durable

    warm_up()
    found = _find_stamp()
    if found is not None:
        with suppress(OSError):  # then the next process loads them, and finds out
            durable.replace_file(found[0], [found[1].encode()])


if __name__ == "__main__":
    main()
