"""`to_dot`: a picture that Graphviz reads, with the nodes and who shares them."""

from __future__ import annotations

import re

import pytest

from tamis.index.dot import MAX_DRAWN, to_dot
from tamis.match.build import build

SUBSCRIPTIONS = {
    "one": "a = 1 AND (b = 2 OR c = 3)",
    "two": "b = 2 OR c = 3",
    "three": "a = 1 AND d = 4",
    "odd": "a = 1 XOR b = 2",
    "always": "TRUE",
    "never": "a = 1 AND FALSE",
}


@pytest.fixture(scope="module")
def index():
    return build(SUBSCRIPTIONS)


def draw(index, subscription_id, depth=None):
    return to_dot(index.contents, index.ordinal(subscription_id), depth)


def labels(picture):
    return re.findall(r'label="((?:[^"\\]|\\.)*)"', picture)


def test_nodes_and_edges(index):
    picture = draw(index, "one")
    assert picture.startswith("digraph subscription {\n")
    assert picture.endswith("}\n")
    assert {"one", "AND", "OR", "a = 1", "b = 2", "c = 3"} <= set(labels(picture))
    nodes = set(re.findall(r"^  (\w+) \[", picture, re.MULTILINE))
    edges = set(re.findall(r"^  (\w+) -> (\w+)", picture, re.MULTILINE))
    assert {end for edge in edges for end in edge} <= nodes


def test_who_shares_a_node(index):
    shown = labels(draw(index, "one"))
    assert "also in three, odd" in shown  # a = 1
    assert "also in two" in shown  # b = 2 OR c = 3
    assert "also in two, odd" in shown  # b = 2, by way of the OR and of itself


def test_depth_limits(index):
    assert "2 below" in labels(draw(index, "one", 0))
    assert "b = 2" not in labels(draw(index, "one", 1))
    assert draw(index, "one", 9) == draw(index, "one")


def test_sides_of_xor_are_told_apart(index):
    shown = labels(draw(index, "odd"))
    assert shown.count("is true") == shown.count("is false") == 2


def test_constants(index):
    assert "TRUE: every event matches" in labels(draw(index, "always"))
    assert "FALSE: no event can match" in labels(draw(index, "never"))


def test_many_sharers_are_counted():
    index = build({f"s{n}": "a = 1" for n in range(10)})
    assert "also in s1, s2, s3, 6 more" in labels(draw(index, "s0"))


def test_names_cannot_break_the_text():
    index = build({'q"uo\\te\n': "a = 'x\"y\\\\z'"})
    picture = to_dot(index.contents, 0)
    assert 'label="q\\"uo\\\\te "' in picture
    assert all(line.count('"') % 2 == 0 for line in picture.replace('\\"', "").splitlines())


def test_a_wide_expression_is_cut():
    wide = " OR ".join(f"(a = {n} AND b = {n})" for n in range(2 * MAX_DRAWN))
    picture = to_dot(build({"wide": wide}).contents, 0)
    assert "2 below" in labels(picture)
