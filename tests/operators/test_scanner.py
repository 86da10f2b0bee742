"""The scanner finds and captures, and refuses what is no expression."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tamis.errors import InputError
from tamis.match.build import build
from tamis.operators.registry import Registry
from tamis.operators.scanner import Scanner

BODY = Scanner("body")


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("see CVE-2024-3094 now", r"CVE-\d{4}-\d+", True),
        ("see cve-2024-3094 now", r"CVE-\d{4}-\d+", False),
        ("see cve-2024-3094 now", r"(?i)CVE-\d{4}-\d+", True),
        ("", "^$", True),
        ("naïve café", "caf.$", True),
        (None, "a", None),
    ],
)
def test_found(text, pattern, expected):
    assert BODY.found({"body": text}, pattern) is expected
    assert BODY.found_batch(pa.table({"body": [text]}), pattern).to_pylist() == [expected]


def test_missing_attribute_is_no_answer():
    assert BODY.found({}, "a") is None
    assert BODY.captured({}, "(a)") is None


def test_captured_gives_each_binding_once():
    text = "ann@home bob@work ann@home"
    assert BODY.captured({"body": text}, r"(\w+)@(\w+)") == [("ann", "home"), ("bob", "work")]
    assert BODY.captured({"body": "none"}, r"(\d+)") == []
    assert BODY.captured({"body": "ab"}, r"(a)|(b)") == [("a", ""), ("", "b")]


@pytest.mark.parametrize("pattern", ["(", "a{2000}{2000}", "(?<=a)b"])
def test_other_expressions_are_refused(pattern):
    with pytest.raises(InputError, match="is invalid: "):
        BODY.found({"body": "a"}, pattern)


def test_capturing_needs_a_group():
    with pytest.raises(InputError, match="no group"):
        BODY.captured({"body": "a"}, "a")


def test_time_is_linear():
    """An expression that a backtracking engine would not finish."""
    assert BODY.found({"body": "a" * 5_000}, "(a*)*b") is False


@pytest.mark.parametrize("attribute", ["doc.body", "`user-id`", "user-id"])
@pytest.mark.parametrize("batch", [False, True])
def test_attributes_with_paths_and_quotes(attribute, batch):
    registry = Registry()
    Scanner(attribute).register("has(string)", batch=batch, registry=registry)
    Scanner(attribute).register("part(string, ?string)", registry=registry)
    index = build({"h": "has('b+')", "p": "part('(b+)', ?x)"}, operators=registry)
    event = {"doc": {"body": "abbc"}, "user-id": "abbc"}
    assert index.match_bindings(event) == {"h": {}, "p": {"x": "bb"}}
    assert index.match_lists([event, {}]).to_pylist() == [["h", "p"], []]
    assert not index.operators.faults
