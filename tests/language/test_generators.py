"""The generators draw all that they promise, and the same for the same seed."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from itertools import product
from random import Random

from tamis.language import print_expression
from tamis.language.ast import (
    NARY,
    Attribute,
    Between,
    Comparison,
    IsNull,
    Like,
    Literal,
    Not,
    children,
    leaves,
)
from tamis.logic.evaluate import evaluate
from tests.generators import (
    random_condition,
    random_event,
    random_schema,
    random_untyped_condition,
)
from tests.generators.conditions import OPERATORS
from tests.waiting import HANG_SECONDS

SHOW = """
from random import Random
from tests.generators import *
rng = Random(5)
for _ in range(20):
    schema = random_schema(rng)
    print(ascii((schema, random_condition(rng, schema), random_event(rng, schema))))
    print(ascii(random_untyped_condition(rng)))
"""


def inner_nodes(condition):
    if children(condition):
        yield condition
    for child in children(condition):
        yield from inner_nodes(child)


def draw(n_conditions):
    for seed in range(n_conditions):
        rng = Random(seed)
        schema = random_schema(rng)
        yield schema, random_condition(rng, schema), random_event(rng, schema)


def traits(leaf):
    """What makes this leaf another case than its class alone."""
    if hasattr(leaf, "negated"):
        yield f"{type(leaf).__name__} {'NOT' if leaf.negated else ''}"
    match leaf:
        case Comparison(operator, left, right):
            yield f"{type(left).__name__} {operator} {type(right).__name__}"
            if isinstance(left, Attribute) and isinstance(right, Attribute):
                yield "same types" if left.type == right.type else "mixed types"
        case Between(_, Literal() as low, Literal() as high) if low.value > high.value:
            yield "empty range"
        case Between(operand, low, high):
            yield " ".join(type(value).__name__ for value in (operand, low, high))
        case Like():
            yield f"ILIKE {leaf.ignores_case} {'escape' if leaf.escape != chr(92) else ''}"
        case IsNull():
            pass
        case _:
            yield getattr(leaf, "function", type(leaf).__name__)


def test_every_operator_is_drawn():
    seen = Counter()
    for _, condition, _ in draw(800):
        seen.update(type(node).__name__ for node in inner_nodes(condition))
        for leaf in leaves(condition):
            seen.update(traits(leaf))
    sides = product(("Attribute", "Literal"), OPERATORS, ("Attribute", "Literal"))
    signed = product(("In", "Between", "IsNull", "Like", "Rlike"), ("", "NOT"))
    likes = product(("ILIKE True", "ILIKE False"), ("", "escape"))
    expected = {" ".join(map(str, words)) for words in (*sides, *signed, *likes)}
    expected |= {node.__name__ for node in (*NARY, Not)}
    expected |= {"same types", "mixed types", "empty range", "Literal", "Attribute", "Rlike"}
    expected |= {"Attribute Attribute Literal", "Attribute Literal Attribute"}
    expected |= {"Literal Attribute Attribute", "Literal Attribute Literal"}
    expected |= {"startswith", "endswith", "contains", "array_contains", "arrays_overlap"}
    expected |= {"InNetwork"}
    assert expected - seen.keys() == set()


def test_every_type_and_every_truth_is_drawn():
    types, truths, floats = Counter(), Counter(), []
    for schema, condition, event in draw(800):
        types.update(schema[path].name for path in schema)
        truths[evaluate(condition, event)] += 1
        floats += [value for value in event.values() if isinstance(value, float)]
    scalars = {"boolean", "integer", "float", "double", "decimal", "number"}
    scalars |= {"string", "date", "timestamp", "ip"}
    assert types.keys() == scalars | {"array"}
    # Each of the three truths is common: no property holds for want of examples.
    assert min(truths[truth] for truth in (True, False, None)) > 160
    assert any(map(math.isnan, floats))
    assert any(map(math.isinf, floats))
    assert any(value == 0 and math.copysign(1, value) < 0 for value in floats)


def test_the_same_seed_gives_the_same_in_every_process():
    """Whatever the seed of Python's own hashes."""
    shown = [
        subprocess.run(
            [sys.executable, "-c", SHOW],
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG_SECONDS,
        ).stdout
        for seed in ("1", "2")
    ]
    assert shown[0] == shown[1]
    assert len(shown[0]) > 1000


def test_the_grammar_is_drawn_whole():
    words = Counter()
    for seed in range(300):
        words.update(print_expression(random_untyped_condition(Random(seed))).split())
    for word in (
        "matches_at_least(1,",
        "XNOR",
        "+",
        "/",
        "?people",
        "ESCAPE",
        "RLIKE",
        "TIMESTAMP",
    ):
        assert words[word], word
