"""How fast is text read? Parse, type check and canonical form, by predicates per expression.

The baseline is CPython's own parser (written in C) on the same conditions in Python's spelling: a
yardstick for the machine, in the same run.
"""

from __future__ import annotations

import ast
import gc
import random
import time
from typing import TYPE_CHECKING, Any

from tamis.language import check, infer_schema, parse
from tamis.logic.canonical import canonicalize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TITLE = "reading expressions, thousands per second of CPU on one core"
SEED = 1
N_PREDICATES_READ = 40_000  # per size, so that all sizes take about as long
LEAST = {4: 20.0}  # the target, thousands per second, by the number of predicates


def run() -> list[dict[str, Any]]:
    """One row per size of expression."""
    return [_measure(n_predicates) for n_predicates in (1, 4, 16, 56)]


def _measure(n_predicates: int) -> dict[str, Any]:
    rng = random.Random(SEED)
    texts = [_random_text(rng, n_predicates) for _ in range(N_PREDICATES_READ // n_predicates)]
    python_texts = [_spell_as_python(text) for text in texts]
    conditions = [parse(text) for text in texts]
    schema = infer_schema(conditions)
    typed = [check(condition, schema) for condition in conditions]
    parse_rate = _rate(parse, texts)
    python_rate = _rate(lambda text: ast.parse(text, mode="eval"), python_texts)
    return {
        "predicates": n_predicates,
        "parse": round(parse_rate / 1e3, 2),
        "check": round(_rate(lambda x: check(x, schema), conditions) / 1e3, 2),
        "canonicalize": round(_rate(canonicalize, typed) / 1e3, 2),
        "CPython's parser": round(python_rate / 1e3, 2),
        "parse / CPython": round(parse_rate / python_rate, 2),
        "parse at least": LEAST.get(n_predicates),
        "met": parse_rate / 1e3 >= LEAST[n_predicates] if n_predicates in LEAST else None,
    }


def _random_text(rng: random.Random, n_predicates: int) -> str:
    predicates = [
        rng.choice(
            (
                f"country = 'c{rng.randrange(200)}'",
                f"age >= {rng.randrange(100)}",
                f"price < {rng.randrange(10_000) / 100}",
                f"category IN ('c{rng.randrange(50)}', 'c{rng.randrange(50)}')",
            )
        )
        for _ in range(n_predicates)
    ]
    text = predicates[0]
    for predicate in predicates[1:]:
        text += f" {rng.choice(('AND', 'OR'))} {predicate}"
        if rng.random() < 0.2:
            text = f"({text})" if text.count("(") < 30 else text
    return text


def _spell_as_python(text: str) -> str:
    spelled = text.replace(" = ", " == ")
    return spelled.replace("AND", "and").replace("OR", "or").replace("IN", "in")


def _rate(function: Callable[[Any], Any], inputs: Sequence[Any], n_repeats: int = 3) -> float:
    """Calls per second of CPU, the best of a few passes.

    Without garbage collection, as `parse_many` reads: trees hold no cycles.
    """
    best = 0.0
    gc.disable()
    for _ in range(n_repeats):
        start = time.process_time()
        for item in inputs:
            function(item)
        best = max(best, len(inputs) / (time.process_time() - start))
    gc.enable()
    return best
