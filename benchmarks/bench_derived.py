"""What do derived values, counted words and tests of any attribute cost?

The same 100,000 conditions over 50 derived values, over 50 plain attributes that have these values
already, and the time to derive them. Then the share of real detection rules that the fast reader of
a build accepts; the parser reads the others.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any, Final

import pyarrow as pa

import tamis
from benchmarks import sigma_rules
from benchmarks.measuring import time_in_turn
from tamis.importers import import_rules
from tamis.index.reader import Reader
from tamis.language.limits import Limits

TITLE = "derived values: microseconds of CPU per event, against plain attributes"
N_EVENTS: Final = 8_192
N_VALUES: Final = 50
N_WORDS: Final = 2_000
MOST: Final = 1.5  # times as much as plain attributes, without deriving
_IS_TINY: Final = os.environ.get("TAMIS_BENCH_SIZE") == "tiny"


def run() -> list[dict[str, Any]]:
    """Derived values, then real rules."""
    n_subscriptions, n_events = (200, 100) if _IS_TINY else (100_000, N_EVENTS)
    rows = [_measure(n_subscriptions, n_events), _measure_any(n_subscriptions // 100, n_events)]
    if not _IS_TINY and sigma_rules.find_data():
        rows += _measure_rules()
    return rows


def _measure(n_subscriptions: int, n_events: int) -> dict[str, Any]:
    rng = Random(7)
    names = [f"a{at}" for at in range(N_VALUES)]
    words = [f"word-{number}" for number in range(N_WORDS)]
    tests = {}
    for at in range(n_subscriptions):
        chosen = rng.sample(names, 3)
        tests[str(at)] = " AND ".join(f"{{{name}}} = '{rng.choice(words)}'" for name in chosen)
    derived = {name: f"lower({name})" for name in names}
    schema = ", ".join(f"{name} STRING" for name in names)
    plain = tamis.build(
        {at: text.format(**dict(zip(names, names, strict=True))) for at, text in tests.items()},
        schema,
    )
    computed = tamis.build({at: text.format(**derived) for at, text in tests.items()}, schema)
    lower = pa.table({name: rng.choices(words, k=n_events) for name in names})
    upper = pa.table({name: [own.upper() for own in lower[name].to_pylist()] for name in names})
    ready, derivable = plain.encode(lower), computed.encode(upper)
    assert plain.count_by_event(ready).tolist() == computed.count_by_event(derivable).tolist()
    times = time_in_turn(
        {
            "plain, matched": lambda: plain.count_by_event(ready),
            "derived, matched": lambda: computed.count_by_event(derivable),
            "plain, read": lambda: plain.encode(lower),
            "derived, read": lambda: computed.encode(upper),
        },
        n_events,
    )
    row: dict[str, Any] = {"of": f"{n_subscriptions:,} subscriptions, {N_VALUES} values"}
    row |= {way: round(own, 2) for way, own in times.items()}
    ratio = times["derived, matched"] / times["plain, matched"]
    return row | {"times as much": round(ratio, 2), "at most": MOST, "met": _judge(ratio)}


def _judge(ratio: float) -> bool | None:
    """Whether the target is met; None at a size that says nothing about it."""
    return None if _IS_TINY else ratio <= MOST


def _measure_any(n_subscriptions: int, n_events: int) -> dict[str, Any]:
    """Patterns over one attribute, and over any of ten."""
    rng = Random(7)
    words = [f"word-{number}-" for number in range(N_WORDS)]
    patterns = [f"ILIKE '%{rng.choice(words)}%'" for _ in range(n_subscriptions)]
    one = tamis.build({str(at): f"a0 {own}" for at, own in enumerate(patterns)}, "a0 STRING")
    anywhere = tamis.build(
        {str(at): f"any_attribute(v -> v {own})" for at, own in enumerate(patterns)}
    )
    table = pa.table({f"a{at}": rng.choices(words, k=n_events) for at in range(10)})
    times = time_in_turn(
        {
            "plain, matched": lambda: one.count_by_event(table),
            "derived, matched": lambda: anywhere.count_by_event(table),
        },
        n_events,
    )
    row: dict[str, Any] = {"of": f"{n_subscriptions:,} patterns, any of 10 attributes"}
    row |= {way: round(own, 2) for way, own in times.items()}
    return row | {"times as much": round(times["derived, matched"] / times["plain, matched"], 2)}


def _measure_rules() -> list[dict[str, Any]]:
    """The shares of Sigma's rules that the fast reader accepts: converted to plain tests of names
    in backticks, and as `tamis import` writes them, with lower(…) and lists of patterns.
    """
    imported = import_rules("sigma", [sigma_rules.DATA / "sigma-rules"]).accepted
    return [
        _measure_share("plain tests", list(sigma_rules.read_rules().values())),
        _measure_share("as imported", [rule.to_dict()["expression"] for rule in imported]),
    ]


def _measure_share(spelling: str, texts: list[str]) -> dict[str, Any]:
    n_fast = len(texts) - int(Reader(Limits()).read(texts).scanned.is_left.sum())
    share = round(100 * n_fast / len(texts), 1)
    return {"of": f"{len(texts):,} rules of Sigma, {spelling}", "fast reader, percent": share}
