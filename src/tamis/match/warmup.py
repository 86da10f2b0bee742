"""Cold start: compiles all kernels, or loads them from the cache, with a tiny index and its
events.
"""

from __future__ import annotations

import json
from typing import Final

# Every operator and every kind of column, so that as few kernels as possible are missed.
_SUBSCRIPTIONS: Final = {
    "set": "a IN (1, 2) AND b <> 'x' AND c < 0.5",
    "pattern": "b LIKE '%y%' OR NOT b RLIKE 'z+' OR b ILIKE 'q_r%'",
    "array": "array_contains(t, 'u') AND a IS NOT NULL AND c IS NULL",
    "pair": "a < d OR d = 3",
    "counted": "at_least(2, a = 1, b = 'x', c > 0.5)",
    "parity": "a = 1 XOR b = 'x'",
    "shared": "(a = 1 OR d = 4) AND (m > 1.25 OR e <= DATE '2024-01-01')",
    "words": "matches(b, 'x') OR matches_phrase(b, 'x y')",
    "always": "TRUE",
}
_SCHEMA: Final = "a INT, b STRING, c DOUBLE, d INT, e DATE, m DECIMAL(9,2), t ARRAY<STRING>"
_EVENTS: Final = (
    {"a": 1, "b": "xyz", "c": 0.25, "d": 3, "e": "2023-05-01", "m": 2, "t": ["u", None]},
    {"b": "x", "t": []},
)


def warm_up() -> None:
    """Compile the kernels, or load them from the cache, by building and matching a tiny index."""
    from tamis.match.build import build

    index = build(_SUBSCRIPTIONS, _SCHEMA, weights={"set": 1})
    batch = index.encode(list(_EVENTS))
    index.encode([json.dumps(event) for event in _EVENTS])
    index.match(_EVENTS[0])
    index.match_batch(batch)
    index.match_batch(batch, subset=["set"])
    index.count_by_subscription(batch)
    index.count_by_event(batch)
    index.summarise_by_subscription(batch)
    index.summarise_by_event(batch)
    index.match_top(batch, 1)
    _warm_up_schedule()


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
