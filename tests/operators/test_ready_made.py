"""Operators that come with the package, called by expressions."""

from __future__ import annotations

import sqlite3
import sys
import types

import pytest

from tamis.match.build import build
from tamis.operators.classifier import Classifier
from tamis.operators.lookup import SqlLookup
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


def test_each_is_registered_by_one_call():
    registry = Registry()
    topics = Classifier.train(["goal match", "vote law"], ["sport", "state"], attribute="body")
    accounts = sqlite3.connect(":memory:", check_same_thread=False)
    accounts.execute("CREATE TABLE account AS SELECT 7 AS id, 'ann' AS name")
    owners = SqlLookup(lambda: accounts, "SELECT name FROM account WHERE id = ?", ["account"])
    for made_by, signature in [
        (Scanner("body"), "has(string)"),
        (Scanner("body"), "mail(string, ?string, ?string)"),
        (topics, "topic(?string)"),
        (topics, "is_about(string)"),
        (owners, "owner(?string)"),
        (owners, "is_owned()"),
    ]:
        made_by.register(signature, registry=registry)
    texts = {
        "has": "has('CVE-[0-9]+') AND is_owned()",
        "own": r"mail('(\\w+)@(\\w+)', ?user, ?host) AND owner(?user)",
        "topic": "is_about('state') AND topic(?topic)",
        "none": "NOT is_owned()",
    }
    index = build(texts, operators=registry)
    event = {"body": "ann@home: vote on CVE-2024", "account": 7}
    found = {
        "has": {},
        "own": {"user": "ann", "host": "home"},
        "topic": {"topic": "state"},
    }
    assert index.match_bindings(event) == found
    assert index.match_bindings({"body": "ann@home", "account": 8}) == {"none": {}}
    # Without what they look at, they cannot say.
    assert index.match_bindings({}) == {}
    assert index.operators.faults == []
    assert index.match_bindings(event) == found


def test_a_registered_method_is_found_in_its_module(monkeypatch):
    module = types.ModuleType("own_operators")
    module.has = Scanner("body").register("has_here(string)", registry=Registry())
    monkeypatch.setitem(sys.modules, "own_operators", module)
    for path in ("own_operators", "own_operators:has"):
        registry = Registry().load(path)
        assert [str(own) for own in registry.signatures] == ["has_here(string)"]
        assert build({"a": "has_here('b')"}, operators=registry).match({"body": "abc"}) == ["a"]
