"""The workloads are what they say: readable, repeatable, and of the shape that was asked for."""

from __future__ import annotations

from statistics import mean

import pytest

from benchmarks.baselines import NumpyScan
from tamis.errors import TamisError
from tamis.lab.forest import holds
from tamis.lab.workloads import (
    AbeGen,
    AbeParams,
    AdsLike,
    AdsLikeParams,
    Fontoura,
    FontouraParams,
    InSets,
    InSetsParams,
    SigmaLike,
    SigmaLikeParams,
)
from tamis.lab.workloads.abe_forest import PREDICATE_SHARES
from tamis.language import Schema, check, parse
from tamis.language.ast import And, Comparison, In, Like, Not, Or, Xnor, Xor, children, leaves
from tamis.logic.evaluate import evaluate

WORKLOADS = {
    "abe_gen": lambda seed: AbeGen(AbeParams(n_expressions=300, seed=seed)),
    "ads_like": lambda seed: AdsLike(AdsLikeParams(n_expressions=300, seed=seed)),
    "fontoura": lambda seed: Fontoura(FontouraParams(n_expressions=300, seed=seed)),
    "in_sets": lambda seed: InSets(InSetsParams(n_expressions=300, seed=seed)),
    "sigma_like": lambda seed: SigmaLike(SigmaLikeParams(n_expressions=100, seed=seed)),
}


def read(workload, n=None):
    schema = Schema.of(workload.schema)
    return [check(parse(text), schema) for text in workload.expressions(n)]


# ── all of them ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=WORKLOADS, scope="module")
def make(request):
    return WORKLOADS[request.param]


def test_expressions_are_valid(make):
    assert len(read(make(1))) == len(make(1).expressions())
    assert len(make(1).expressions(7)) == 7
    assert make(1).expressions(0) == []


def test_same_seed_same_workload(make):
    assert make(1).expressions() == make(1).expressions()
    assert make(1).events(20) == make(1).events(20)
    assert make(1).expressions() != make(2).expressions()
    assert make(1).events(20) != make(2).events(20)


def test_asking_twice_gives_the_same(make):
    workload = make(1)
    assert workload.events(5) == workload.events(5)
    assert workload.expressions(5) == workload.expressions(5)


def test_table_holds_the_same_events(make):
    workload = make(1)
    table = workload.event_table(30)
    assert table.column_names == list(workload.schema)
    rows = [
        {name: value for name, value in row.items() if value is not None}
        for row in table.to_pylist()
    ]
    assert rows == workload.events(30)
    assert workload.event_table(0).num_rows == len(workload.events(0)) == 0


def test_some_match(make):
    workload = make(1)
    conditions = read(workload)
    events = workload.events(40)
    assert any(evaluate(x, event) for x in conditions for event in events)


# ── ABE-Gen ─────────────────────────────────────────────────────────────────────────────────


def test_defaults_are_those_of_table_3():
    params = AbeParams()
    assert params.n_expressions == 1_000_000
    assert params.operator_shares == (0.40, 0.40, 0.10, 0.05, 0.05)
    assert (params.depth, params.n_children, params.alpha) == (3, 4, 0.6)
    assert (params.n_dimensions, params.cardinality, params.event_size) == (1000, 100, 20)
    assert sum(PREDICATE_SHARES.values()) == pytest.approx(1)


def test_sharing_is_that_of_the_paper():
    levels = AbeGen().sharing(20_000)
    assert levels[0].n_uses / 20_000 == pytest.approx(12.25, rel=0.02)
    ratios = {level.level: level.ratio for level in levels}
    assert ratios[1] == pytest.approx(18.35, rel=0.08)
    assert ratios[2] == pytest.approx(4.33, rel=0.08)


def test_measured_sharing_is_that_of_the_text():
    workload = AbeGen(AbeParams(n_dimensions=30, event_size=10))
    predicates, subexpressions, expressions = workload.sharing(500)
    texts = workload.expressions(500)
    conditions = read(workload, 500)
    found = [leaf for condition in conditions for leaf in leaves(condition)]
    assert (predicates.n_uses, predicates.n_distinct) == (len(found), len(set(found)))
    inner = [below for condition in conditions for below in children(condition)]
    assert (subexpressions.n_uses, subexpressions.n_distinct) == (len(inner), len(set(inner)))
    assert (expressions.n_uses, expressions.n_distinct) == (500, len(set(texts)))


def test_an_event_matches_about_as_many_as_known():
    workload = AbeGen()
    scan = NumpyScan(read(workload, 3_000))
    rate = mean(len(found) for found in scan.match_batch(workload.events(100))) / 3_000
    assert 0.03 < rate < 0.06


@pytest.mark.parametrize("depth", [1, 3, 4])
def test_conditions_are_those_of_the_text(depth):
    workload = AbeGen(AbeParams(depth=depth, n_dimensions=50))
    assert workload.conditions(100) == read(workload, 100)


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("n_children", [2, 6])
def test_depth_and_children(depth, n_children):
    params = AbeParams(depth=depth, n_children=n_children, n_xor_children=3)
    conditions = read(AbeGen(params), 60)

    def depth_of(condition):
        return 1 + max(map(depth_of, children(condition)), default=0)

    def nodes_of(condition):
        yield condition
        for below in children(condition):
            yield from nodes_of(below)

    if depth <= 2:
        assert {depth_of(condition) for condition in conditions} == {depth}
    for node in (node for condition in conditions for node in nodes_of(condition)):
        if isinstance(node, And | Or):
            # The parser may join what is nested: operands of operands.
            assert len(node.operands) >= n_children
        elif isinstance(node, Xor | Xnor):
            assert len(node.operands) == 3


def test_operators_are_drawn_by_their_shares():
    params = AbeParams(operator_shares=(0, 0, 0, 0.5, 0.5), depth=2)
    assert {type(x) for x in read(AbeGen(params), 100)} == {Xor, Xnor}
    params = AbeParams(operator_shares=(0, 0, 1, 0, 0), depth=2)
    assert {type(x) for x in read(AbeGen(params), 100)} == {Not}


def test_alpha_0_shares_nothing_on_purpose():
    (predicates, *_) = AbeGen(AbeParams(alpha=0, cardinality=1000)).sharing(500)
    assert predicates.ratio < 1.1
    ratios = [AbeGen(AbeParams(alpha=alpha)).sharing(2_000)[1].ratio for alpha in (0, 0.2, 0.6, 1)]
    assert ratios == sorted(ratios)


@pytest.mark.parametrize("cardinality", [1, 2, 3, 1000])
def test_values_stay_in_their_domain(cardinality):
    params = AbeParams(cardinality=cardinality, n_dimensions=30, event_size=30)
    workload = AbeGen(params)
    assert read(workload, 50)
    values = {value for event in workload.events(40) for value in event.values()}
    assert values <= set(range(cardinality))
    assert {len(event) for event in workload.events(40)} == {30}


@pytest.mark.parametrize(
    "wrong",
    [
        {"depth": 0},
        {"n_children": 1},
        {"alpha": -0.1},
        {"event_size": 1001},
        {"operator_shares": (1, 1, 0, 0, 0)},
        {"cardinality": 0},
    ],
)
def test_impossible_parameters_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(TamisError, match=name):
        AbeParams(**wrong)


# ── Ads-like ────────────────────────────────────────────────────────────────────────────────


def test_ads_like_has_the_sharing_of_figure_7():
    workload = AdsLike()
    levels = workload.sharing(20_000)
    for level, published in zip(levels, workload.params.sharing, strict=True):
        assert level.ratio == pytest.approx(published, rel=0.05), level
    assert levels[0].ratio == pytest.approx(68.76, rel=0.05)
    assert levels[8].ratio == pytest.approx(2.88, rel=0.05)


def test_ads_like_has_the_shape_of_section_6_2():
    workload = AdsLike()
    conditions = read(workload, 3_000)

    def depth_of(condition):
        below = [depth_of(child) for child in children(condition)]
        return max(below, default=0) + (not isinstance(condition, Not))

    assert {depth_of(condition) for condition in conditions} == set(range(1, 10))
    sizes = [len(list(leaves(condition))) for condition in conditions]
    assert min(sizes) == 1
    assert 30 < max(sizes) <= 56
    assert len(workload.schema) == 122
    events = workload.events(200)
    assert mean(map(len, events)) == pytest.approx(20, abs=0.7)
    scan = NumpyScan(conditions)
    rate = mean(len(found) for found in scan.match_batch(events)) / len(conditions)
    assert 0.001 < rate < 0.2


@pytest.mark.parametrize("wrong", [{"event_size": 110}, {"sharing": (0.5,)}, {"alpha": -1}])
def test_impossible_ads_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(TamisError, match=name):
        AdsLikeParams(**wrong)


# ── the others ──────────────────────────────────────────────────────────────────────────────


def test_in_sets_are_conjunctions_of_sets():
    conditions = read(WORKLOADS["in_sets"](1))
    assert all(isinstance(condition, And) for condition in conditions)
    assert {len(condition.operands) for condition in conditions} == {2, 3, 4, 5}
    found = [leaf for condition in conditions for leaf in leaves(condition)]
    assert all(isinstance(leaf, In) for leaf in found)
    assert {len(leaf.values) for leaf in found} == set(range(1, 9))
    with pytest.raises(TamisError, match="n_sets"):
        InSetsParams(n_attributes=3)


def test_sigma_like_has_the_shape_of_sigma():
    workload = SigmaLike()
    conditions = read(workload)
    found = [leaf for condition in conditions for leaf in leaves(condition)]
    assert len(conditions) == 4000
    assert mean(len(list(leaves(x))) for x in conditions) == pytest.approx(12, rel=0.1)
    patterns = [leaf for leaf in found if isinstance(leaf, Like)]
    assert len(patterns) / len(found) == pytest.approx(0.8, abs=0.05)
    assert all(leaf.ignores_case for leaf in patterns)
    searched = {
        leaf.pattern.lower()
        for leaf in patterns
        if leaf.operand.path == ("CommandLine",) and leaf.pattern[0] == "%"
    }
    assert len(searched) == pytest.approx(15_000, rel=0.01)
    assert any(isinstance(leaf, Comparison) for leaf in found)
    lengths = [len(event["CommandLine"]) for event in workload.events(300)]
    assert min(lengths) >= 100
    assert mean(length <= 300 for length in lengths) > 0.95


def test_planted_events_match():
    params = SigmaLikeParams(n_expressions=40, n_patterns=300, planted_share=1)
    workload = SigmaLike(params)
    conditions = read(workload)
    events = workload.events(60)
    assert mean(any(evaluate(x, event) for x in conditions) for event in events) > 0.9


# ── Fontoura ────────────────────────────────────────────────────────────────────────────────


def depth_of(tree):
    """Levels above conjunctions."""
    if all(isinstance(child, int) for child in tree.children):
        return 0
    return 1 + max(map(depth_of, tree.children))


def test_trees_alternate_below_an_and():
    def check_below(node, operator):
        if not all(isinstance(child, int) for child in node.children):
            assert node.operator == operator
            for child in node.children:
                check_below(child, 1 - operator)

    for depth in (1, 2, 3, 4):
        trees = Fontoura(FontouraParams(max_depth=depth)).trees(50)
        assert {depth_of(tree) for tree in trees} == {depth}
        for tree in trees:
            check_below(tree, 0)


def test_shapes_are_those_of_the_paper():
    trees = Fontoura(FontouraParams(max_depth=1)).trees(4_000)
    n_children = [len(tree.children) for tree in trees]
    shares = [n_children.count(n) / len(trees) for n in (1, 2, 3, 4)]
    assert shares == pytest.approx([0.05, 0.7, 0.2, 0.05], abs=0.03)
    sizes = [len(conjunction.children) for tree in trees for conjunction in tree.children]
    assert sizes.count(1) / len(sizes) == pytest.approx(0.7, abs=0.03)
    attributes = [{leaf // 51 for leaf in one.children} for tree in trees for one in tree.children]
    assert [len(own) for own in attributes] == sizes  # without replacement


def test_depth_is_between_its_bounds():
    params = FontouraParams(min_depth=2, max_depth=4, child_shares=(0.5, 0, 0.5))
    assert {depth_of(tree) for tree in Fontoura(params).trees(200)} == {2, 3, 4}


def test_trees_and_leaves_are_the_texts_and_the_events():
    params = FontouraParams(n_expressions=60, max_depth=3, selectivity=0.05, n_queries=30)
    workload = Fontoura(params)
    trees, conditions = workload.trees(), read(workload)
    satisfied = workload.leaves(30)
    for row, event in enumerate(workload.events(30)):
        leaves = set(satisfied[row].tolist())
        for tree, condition in zip(trees, conditions, strict=True):
            assert holds(tree, leaves) == (evaluate(condition, event) is True)


def test_selectivity_is_what_was_asked_for():
    params = FontouraParams(n_expressions=1_000, selectivity=0.3, n_queries=50)
    workload = Fontoura(params)
    trees, satisfied = workload.trees(), workload.leaves(50)
    found = [holds(tree, set(satisfied[row].tolist())) for tree in trees for row in range(50)]
    assert mean(found) == pytest.approx(0.3, abs=0.002)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"min_depth": 3}, "depth is 3 to 2; allowed: 1 or more, rising"),
        ({"child_shares": (0.5, 0.6)}, "child_shares is .* shares that sum to 1"),
        ({"event_size": 21}, "event_size is 21; allowed: 0 to n_attributes"),
        ({"selectivity": 1.5}, "selectivity is 1.5; allowed: 0 to 1, or none"),
        ({"n_attributes": 2, "event_size": 1}, "size_shares has 3 sizes; allowed: up to"),
    ],
)
def test_fontoura_refuses(wrong, message):
    with pytest.raises(TamisError, match=message):
        FontouraParams(**wrong)


def test_more_than_is_drawn_cannot_match():
    workload = Fontoura(FontouraParams(n_expressions=100, selectivity=0.9, n_queries=20))
    with pytest.raises(TamisError, match=r"selectivity is 90.0%; allowed: up to"):
        workload.expressions()
