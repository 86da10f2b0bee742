"""`compute_stats`: the numbers are those of what was put in."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tamis.index.graph import Graph
from tamis.index.stats import compute_sharing, compute_stats, estimate_rates
from tamis.match.build import build
from tamis.match.index import Index

SCHEMA = "a INT, b INT, c INT, name STRING, tags ARRAY<STRING>"
SUBSCRIPTIONS = {
    "one": "a = 1 AND b = 2",
    "same": "b = 2 AND a = 1",
    "inside": "(a = 1 AND b = 2) OR c = 3",
    "leaf": "a = 1",
    "pattern": "name LIKE '%x%' OR name RLIKE '.'",
    "negated": "NOT a = 7",
    "pair": "a < b",
    "array": "array_contains(tags, 'q')",
    "absent": "c IS NULL",
    "always": "TRUE",
    "never": "a = 1 AND FALSE",
    "bad": "a = ",
}


@pytest.fixture(scope="module")
def index():
    return build(SUBSCRIPTIONS, SCHEMA)


@pytest.fixture(scope="module")
def stats(index):
    return compute_stats(index.contents, top=100)


def test_counts(stats):
    counts = stats.counts
    assert counts.subscriptions == len(SUBSCRIPTIONS) - 1
    assert counts.distinct_expressions == counts.subscriptions - 3  # same, always, never
    assert counts.attributes == 5
    assert counts.inner_nodes == 3
    assert counts.links == 6
    assert counts.depth == 2
    assert stats.missing == "undefined"


def test_constants_are_named(stats):
    assert (stats.always_true.count, stats.always_true.ids) == (1, ["always"])
    assert (stats.never_true.count, stats.never_true.ids) == (1, ["never"])


def test_levels_before_and_after_sharing(stats):
    by_level = {level.level: level for level in stats.levels}
    # a = 1 AND b = 2 stands there three times, and name LIKE … OR … once.
    assert (by_level[1].nodes, by_level[1].uses) == (2, 4)
    assert (by_level[1].links, by_level[1].link_uses) == (4, 8)
    assert (by_level[2].nodes, by_level[2].uses) == (1, 1)
    # a = 1: three times in a conjunction and once alone.
    most_used = {use.text: use for use in stats.most_used}
    assert most_used["a = 1"].uses == 4
    assert (most_used["a = 1"].parents, most_used["a = 1"].subscriptions) == (1, 1)
    conjunction = next(use for use in stats.most_used if " AND " in use.text)
    assert (conjunction.parents, conjunction.subscriptions, conjunction.uses) == (1, 2, 3)


def test_sharing_is_uses_by_nodes(index, stats):
    nodes = sum(level.nodes for level in stats.levels)
    uses = sum(level.uses for level in stats.levels)
    assert stats.sharing == compute_sharing(index.contents) == round(uses / nodes, 3)


def test_columns(stats):
    kinds = {kind.kind: kind for kind in stats.column_kinds}
    assert set(kinds) == {"scalar", "array", "pattern", "pair"}
    assert (kinds["pattern"].patterns, kinds["array"].constants) == (2, 1)
    assert sum(kind.columns for kind in stats.column_kinds) == stats.counts.columns
    sizes = [column.constants + column.patterns for column in stats.columns]
    assert sizes == sorted(sizes, reverse=True)


def test_what_is_always_evaluated_has_a_reason(stats):
    found = {always.what: always for always in stats.always_evaluated}
    assert found["patterns on name"].examples == ["."]
    assert "tests for a missing attribute" in found
    assert all(always.reason and always.count for always in stats.always_evaluated)


def test_what_is_computed_for_each_event_is_listed():
    texts = {
        "derived": "lower(trim(name)) = 'x' AND regexp_count(name, 'a+') > 1",
        "same": "trim(name) = 'y'",
        "pair": "lower(name) = other OR tags = more",
        "elements": "exists(tags, t -> length(t) > 2)",
        "anywhere": "any_attribute(v -> v LIKE '%x%')",
    }
    index = build(texts, "name STRING, other STRING, tags ARRAY<STRING>, more ARRAY<STRING>")
    found = {always.what: always for always in compute_stats(index.contents).always_evaluated}
    derived = found["derived values"]
    assert set(derived.examples) == {
        *("lower(trim(name))", "trim(name)", "regexp_count(name, 'a+')", "lower(name)"),
        "tags: length(x)",
    }
    assert derived.count == 5
    assert found["pairs of attributes"].examples == ["lower(name) and other", "more and tags"]
    assert found["conditions on any attribute"].examples == ["x LIKE '%x%'"]


def test_negations_that_hold_without_the_attribute_are_always_evaluated():
    index = build(SUBSCRIPTIONS, SCHEMA, missing="satisfies_negation")
    found = {always.what: always for always in compute_stats(index.contents).always_evaluated}
    assert found["negated tests"].examples == ["NOT a = 7"]


def test_bytes_of_files(index, stats, tmp_path):
    index.save(tmp_path / "i")
    saved = compute_stats(Index.open(tmp_path / "i").contents, tmp_path / "i")
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "i").iterdir()}
    assert {part.name: part.bytes for part in saved.parts} == sizes
    assert saved.bytes == sum(sizes.values())
    assert stats.bytes == sum(part.bytes for part in stats.parts) > 0
    assert saved.counts == stats.counts
    assert saved.levels == stats.levels


def test_selectivity(stats):
    selectivity = stats.selectivity
    assert selectivity.ands == 1
    assert 0 < selectivity.lowest <= selectivity.median <= selectivity.highest < 1
    assert selectivity.looks_per_event > 0


def test_rates_of_gates():
    index = build(
        {"a": "x = 1 AND y = 1", "o": "x = 1 OR y = 1", "k": "at_least(2, x = 1, y = 1, z = 1)"}
    )
    graph = Graph(index.contents)
    rates = estimate_rates(graph)
    leaf = rates[graph.children(graph.root_of(0))[0]]
    roots = [rates[graph.root_of(ordinal)] for ordinal in range(3)]
    assert np.allclose(roots, [leaf**2, 1 - (1 - leaf) ** 2, leaf], atol=1e-6)


def test_ready_for_json(stats):
    assert json.loads(json.dumps(stats.to_dict()))["counts"]["subscriptions"] == 11


@pytest.mark.parametrize("subscriptions", [{}, {"a": "TRUE"}, {"a": "x = 1"}, {"a": "x = "}])
def test_small_indexes(subscriptions):
    stats = compute_stats(build(subscriptions).contents)
    assert stats.selectivity is None
    assert stats.sharing == 1
    assert stats.counts.depth == 0


def test_top_limits_what_is_listed(index):
    stats = compute_stats(index.contents, top=1)
    assert len(stats.most_used) == len(stats.columns) == len(stats.most_children) == 1
    assert compute_stats(index.contents, top=0).most_used == []
