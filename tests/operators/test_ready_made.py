"""Operators that come with the package, called by expressions."""

from __future__ import annotations

import pytest

from tamis.match.index import build
from tamis.operators.registry import Registry, operator
from tamis.operators.scanner import Scanner

YANKEE_STADIUM = {"lat": 40.8296, "lon": -73.9262, "kind": "game"}
CITY_HALL = {"lat": 40.7128, "lon": -74.0060, "kind": "vote"}


@pytest.fixture(scope="module")
def spatial():
    pytest.importorskip("shapely")
    return Registry().load("tamis.operators.spatial")


def test_real_boroughs(spatial):
    texts = {
        "in": "loc_in('Bronx') AND kind = 'game'",
        "out": "kind = 'game' AND NOT loc_in('Manhattan')",
        "near": "loc_within('Bronx', 20000)",
        "far": "distance_from('Bronx', ?m) AND ?m > 5000 AND region_at(?name)",
    }
    index = build(texts, operators=spatial)
    assert not index.rejects
    found = index.match_bindings(YANKEE_STADIUM)
    assert found == {"near": {}, "in": {}, "out": {}}
    found = index.match_bindings(CITY_HALL)
    assert set(found) == {"near", "far"}
    assert found["far"]["name"] == "Manhattan"
    assert 5_000 < found["far"]["m"] < 20_000
    assert index.match({"kind": "game"}) == []
    assert index.operators.faults == []


def test_what_an_expression_captures_is_joined():
    registry = Registry()
    scanner = Scanner("body")
    operator("captured(string, ?string, ?string)", registry=registry)(scanner.captured)
    operator("found(string)", batch=True, registry=registry)(scanner.found_batch)
    texts = {"same": r"captured(r'(\w+)@(\w+)', ?x, ?x)", "any": "found('@') AND NOT found('@x')"}
    index = build(texts, operators=registry)
    assert index.match_bindings({"body": "a@b c@c"}) == {"same": {"x": "c"}, "any": {}}
    assert index.match_bindings({"body": "a@b a@x"}) == {}
