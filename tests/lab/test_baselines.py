"""Every baseline answers as the reference evaluator does."""

from __future__ import annotations

import json
from functools import cache
from random import Random

import numpy as np
import pytest

from benchmarks import geo_events
from benchmarks.baselines import (
    BucketedLambdas,
    Lambdas,
    NumpyScan,
    PlainScan,
    PolarsSelect,
    RuleMatcher,
    Sharing,
)
from benchmarks.baselines.leaves import read_leaf
from tamis.errors import TamisError
from tamis.lab.workloads import (
    AbeGen,
    AbeParams,
    InSets,
    InSetsParams,
    SigmaLike,
    SigmaLikeParams,
)
from tamis.language import Schema, check, parse
from tamis.language.ast import leaves
from tamis.logic.evaluate import evaluate
from tests.effort import examples
from tests.generators import random_condition, random_event, random_schema

BASELINES = {
    "plain scan": PlainScan,
    "scan": lambda conditions: NumpyScan(conditions, Sharing.NOTHING),
    "scan, predicates shared": NumpyScan,
    "scan, nodes shared": lambda conditions: NumpyScan(conditions, Sharing.NODES),
    "lambdas": Lambdas,
    "lambdas in buckets": BucketedLambdas,
    "polars": PolarsSelect,
}
# Few dimensions and values, so that much is defined and much is equal.
WORKLOADS = {
    "abe_gen": AbeGen(AbeParams(200, n_dimensions=25, cardinality=10, event_size=12)),
    "abe_gen, deep": AbeGen(
        AbeParams(20, n_dimensions=12, depth=5, n_xor_children=3, event_size=9)
    ),
    "in_sets": InSets(InSetsParams(300, n_attributes=8, cardinality=9, event_size=6)),
    "sigma_like": SigmaLike(SigmaLikeParams(60, n_patterns=300, planted_share=0.5)),
}


@pytest.fixture(params=BASELINES)
def baseline(request):
    if request.param == "polars":
        pytest.importorskip("polars")
    return BASELINES[request.param]


def expected(conditions, events):
    return [
        [at for at, condition in enumerate(conditions) if evaluate(condition, event) is True]
        for event in events
    ]


def assert_agrees(engine, events, wanted):
    assert [found.tolist() for found in engine.match_batch(events)] == wanted
    for event, positions in zip(events[:5], wanted[:5], strict=True):
        assert engine.match(event).tolist() == positions


@cache
def read_workload(name):
    """Conditions, events and what the reference evaluator says, once for all baselines."""
    workload = WORKLOADS[name]
    schema = Schema.of(workload.schema)
    conditions = [check(parse(text), schema) for text in workload.expressions()]
    events = workload.events(20)
    return conditions, events, expected(conditions, events)


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads(baseline, name):
    conditions, events, wanted = read_workload(name)
    assert any(wanted)
    assert_agrees(baseline(conditions), events, wanted)


MIXED = {"i": "integer", "x": "double", "s": "string", "b": "boolean", "g": {"s": "string"}}
MIXED_TEXTS = [
    "i = 1",
    "1 < i",
    "NOT (i BETWEEN 2 AND 1)",
    "i NOT BETWEEN 1 AND 3",
    "i < 2.5",
    "x > 1 OR x <= 0.5",
    "NOT x >= 1.5",
    "x NOT IN (1, 2)",
    "b",
    "NOT b XOR i > 1",
    "xnor(b, i = 2, x < 1)",
    "xor(b, i = 2, NOT x < 1)",
    "at_least(2, b, i = 2, s = 'a')",
    "NOT at_least(2, b, i = 2, s = 'a')",
    "s IS NULL OR g.s IS NOT NULL",
    "s ILIKE 'A%'",
    "s NOT LIKE '%b'",
    "s LIKE '%a%'",
    "s LIKE 'a'",
    "s ILIKE '%'",
    "s LIKE ''",
    "s LIKE 'a_%c'",
    "s ILIKE 'a%C'",
    "contains(s, 'b') AND startswith(g.s, 'a') OR endswith(s, 'c')",
    "s < 'b' AND s >= 'A'",
    "TRUE",
    "NOT FALSE AND b",
    "FALSE",
]
MIXED_EVENTS = [
    {},
    {"i": 2, "x": 1.0, "s": "abc", "b": True, "g": {"s": "ab"}},
    {"i": 1, "x": float("nan"), "s": "ABC", "b": False, "g": None},
    {"i": None, "x": -0.0, "s": "", "b": None, "g": {"s": None}},
    {"i": "1", "x": True, "s": 5, "b": 1, "g": "s"},
    {"i": 3, "x": float("inf"), "s": "a\nc", "g": {"s": "b"}},
]


def test_every_form_of_leaf(baseline):
    schema = Schema.of(MIXED)
    conditions = [check(parse(text), schema) for text in MIXED_TEXTS]
    assert_agrees(baseline(conditions), MIXED_EVENTS, expected(conditions, MIXED_EVENTS))


@pytest.mark.parametrize("name", [name for name in BASELINES if name != "polars"])
def test_random_conditions(name, seed):
    """All types; Polars is left out, which has no values of the wrong type and no such decimals."""
    rng = Random(seed)
    for _ in range(examples(20)):
        schema = random_schema(rng)
        drawn = [random_condition(rng, schema) for _ in range(60)]
        conditions = [condition for condition in drawn if is_known(condition)]
        events = [random_event(rng, schema, wrong_types=True) for _ in range(15)]
        assert_agrees(BASELINES[name](conditions), events, expected(conditions, events))


def is_known(condition):
    try:
        for leaf in leaves(condition):
            read_leaf(leaf)
    except TamisError:
        return False
    return True


def test_unknown_leaves_are_refused(baseline):
    condition = check(parse("s RLIKE 'a+'"), Schema.of(MIXED))
    with pytest.raises(TamisError, match="no baseline for"):
        baseline([condition])


def test_no_conditions(baseline):
    engine = baseline([])
    assert [found.tolist() for found in engine.match_batch([{}, {"i": 1}])] == [[], []]
    assert isinstance(engine.match({}), np.ndarray)


def test_sharing_saves_nodes():
    conditions, _, _ = read_workload("abe_gen")
    none, predicates, nodes = (NumpyScan(conditions, sharing) for sharing in Sharing)
    assert none.n_predicates > predicates.n_predicates == nodes.n_predicates
    assert none.n_nodes > predicates.n_nodes > nodes.n_nodes


# ── rules over JSON texts ───────────────────────────────────────────────────────────────────

RULES = {"s": "string", "t": "string", "g": {"s": "string"}}
RULE_TEXTS = [
    "s = 'a'",
    "s = 'a' AND t = 'b'",
    "s = 'a' AND t IN ('b', 'c') AND NOT g.s IN ('x', 'y')",
    "s IN ('a', 'b', 'a')",
    "s LIKE 'ab%'",
    "s LIKE 'ab%' AND s <> 'abc'",
    "NOT s LIKE 'ab%'",
    "NOT NOT s <> 'a'",
    "t NOT IN ('b') AND s NOT LIKE 'b%'",
    "s = 'a' AND s = 'b'",
    "s = 'a' AND s = 'a'",
    "s LIKE ''",
    "g.s LIKE 'x%' AND g.s LIKE 'xy%'",
]
RULE_EVENTS = [
    {},
    {"s": None, "t": "b"},
    {"s": 5, "t": ["b"], "g": "s"},
    *({"s": s, "t": t} for s in ("a", "ab", "abc", "b", "", "é") for t in ("b", "c", "")),
    *({"s": "a", "t": "b", "g": {"s": s}} for s in ("x", "xy", "xyz", None)),
]


def test_rule_matcher():
    conditions = [check(parse(text), Schema.of(RULES)) for text in RULE_TEXTS]
    matcher = RuleMatcher(conditions)
    wanted = expected(conditions, RULE_EVENTS)
    assert [sorted(matcher.match_text(json.dumps(own).encode())) for own in RULE_EVENTS] == wanted
    assert {rule for found in wanted for rule in found} >= {*range(len(conditions))} - {9}


def test_rule_matcher_of_many_rules():
    """States with many edges are searched."""
    rules = geo_events.draw_rules(300 * examples(1))
    schema = Schema.of(geo_events.SCHEMA)
    conditions = [check(parse(text), schema) for text in rules.values()]
    lines = geo_events.write_events(60).splitlines()
    matcher = RuleMatcher(conditions)
    wanted = expected(conditions, map(json.loads, lines))
    assert [sorted(matcher.match_text(line)) for line in lines] == wanted
    assert any(wanted)


@pytest.mark.parametrize("text", ["s = 'a' OR t = 'b'", "NOT (s = 'a' AND t = 'b')", "s < 'b'"])
def test_rule_matcher_refuses_what_it_does_not_know(text):
    with pytest.raises(TamisError, match="no baseline for"):
        RuleMatcher([check(parse(text), Schema.of(RULES))])


def test_rule_matcher_without_rules():
    assert RuleMatcher([]).match_text(b'{"s": "a"}') == []
