"""Named conditions: expanded by the checker, and kept by schemas and indexes."""

from __future__ import annotations

import json

import pytest

import tamis
from tamis.errors import ExpressionError, InputError, LimitError, SchemaError
from tamis.input.subscription_rows import SubscriptionRow
from tamis.language import Schema, check, parse, print_expression, print_for_spark
from tamis.language.ast import Reference
from tamis.language.limits import Limits
from tamis.logic.evaluate import evaluate
from tamis.validate import check_subscriptions

DEFINITIONS = {
    "office_hours": "hour(ts) BETWEEN 8 AND 17",
    "weekend": "dayofweek(ts) IN (1, 7)",
    "working": "@office_hours AND NOT @weekend",
    "vip": "customer IN ('a', 'b') OR total > 1000.0",
}
MONDAY_NOON = "2024-01-15T12:00:00Z"
SUNDAY_NOON = "2024-01-14T12:00:00Z"
EVENTS = [
    {"ts": MONDAY_NOON, "customer": "a"},
    {"ts": SUNDAY_NOON, "customer": "a"},
    {"ts": MONDAY_NOON, "total": 1001},
    {"ts": "2024-01-15T20:00:00Z", "customer": "x", "total": 0},
    {"customer": "b"},
    {},
]
TEXTS = {
    "one": "@working",
    "two": "@vip AND NOT @working",
    "three": "xor(@vip, @weekend)",
    "four": "at_least(2, @vip, @weekend, @office_hours)",
    "five": "NOT @vip",
}


def expanded(text: str) -> str:
    """The text with every definition in parentheses."""
    while "@" in text:
        for name, own in DEFINITIONS.items():
            text = text.replace(f"@{name}", f"({own})")
    return text


@pytest.mark.parametrize("missing", ["undefined", "satisfies_negation"])
def test_a_reference_means_its_condition(tmp_path, missing):
    index = tamis.build(TEXTS, definitions=DEFINITIONS, missing=missing)
    plain = tamis.build({name: expanded(text) for name, text in TEXTS.items()}, missing=missing)
    assert not index.rejects
    index.save(tmp_path / "index")
    opened = tamis.open(tmp_path / "index")
    assert opened.contents.schema.definitions == DEFINITIONS
    for event in EVENTS:
        wanted = sorted(plain.match(event))
        assert sorted(index.match(event)) == sorted(opened.match(event)) == wanted
    found = opened.match_lists(EVENTS).to_pylist()
    assert [sorted(own) for own in found] == [sorted(plain.match(event)) for event in EVENTS]
    assert opened.contents.n_nodes == plain.contents.n_nodes


def test_explain_shows_the_condition():
    index = tamis.build({"a": "@vip"}, definitions=DEFINITIONS)
    explained = str(index.explain("a", {"customer": "x", "total": 5}))
    assert "customer IN ('a', 'b') OR total > 1000" in explained


def test_for_spark_a_reference_is_its_condition():
    schema = Schema.of(
        {"total": "double", "customer": "string", "@definitions": {"vip": DEFINITIONS["vip"]}}
    )
    text = "@vip AND total < 5"
    condition = check(parse(text), schema)
    assert print_for_spark(condition, text) == (
        "(customer IN ('a', 'b') OR total > 1000.0D) AND total < 5"
    )


def test_what_is_printed_reads_back():
    for text in ("@a AND NOT @b_2", "subscription('it\\'s') OR @a"):
        assert print_expression(parse(text)) == text
    assert parse("@a") == Reference("a")
    assert parse("SUBSCRIPTION('x')") == Reference("subscription:x")


def test_one_expression_with_a_schema():
    schema = {"@definitions": DEFINITIONS}
    assert tamis.evaluate("@vip", {"customer": "a"}, schema) is True
    assert tamis.evaluate("@working", {}, schema) is None
    assert tamis.check("@vip AND total > 5", schema) == []
    assert str(tamis.parse("@weekend", schema).operand.type) == "integer"


def test_a_schema_keeps_its_definitions():
    schema = Schema.of({"ts": "timestamp", "@definitions": {"late": "hour(ts) > 20"}})
    assert Schema.of(json.loads(json.dumps(schema.to_json()))) == schema
    assert schema.with_operators(()).definitions == {"late": "hour(ts) > 20"}
    assert schema != schema.with_definitions({})
    assert "late" not in schema.to_ddl()


def test_an_attribute_may_begin_with_an_at():
    index = tamis.build({"a": "`@timestamp` = 'x'"}, {"@timestamp": "string"})
    assert index.match({"@timestamp": "x"}) == ["a"]


# ── subscriptions by name ───────────────────────────────────────────────────────────────────


def test_subscriptions_by_name(tmp_path):
    texts = {
        "a": "x > 1",
        "b": "y = 'k'",
        "both": "subscription('a') AND NOT subscription('b')",
        "neither": "NOT subscription('both') AND x < 100",
        "loop": "subscription('pool') OR x = 1",
        "pool": "subscription('loop')",
        "lost": "subscription('c')",
        "bad": "x >",
        "of bad": "subscription('bad')",
    }
    index = tamis.build(texts)
    messages = {reject.subscription_id: reject.message for reject in index.rejects}
    assert messages.keys() == {"loop", "pool", "lost", "bad", "of bad"}
    assert "subscription('pool') → subscription('loop') → subscription('pool')" in messages["loop"]
    assert messages["lost"] == "unknown subscription('c')"
    assert messages["of bad"].startswith("subscription('bad') is wrong")
    index.save(tmp_path / "index")
    for own in (index, tamis.open(tmp_path / "index")):
        assert sorted(own.match({"x": 2, "y": "l"})) == ["a", "both"]
        assert sorted(own.match({"x": 2, "y": "k"})) == ["a", "b", "neither"]
        assert "x > 1" in str(own.explain("both", {"x": 2}))


# ── refusals ────────────────────────────────────────────────────────────────────────────────

CYCLE = {"a": "@b AND x = 1", "b": "@c", "c": "NOT @a"}


@pytest.mark.parametrize(
    ("definitions", "message"),
    [
        (CYCLE, "@a refers to itself: @a → @b → @c → @a"),
        ({"a": "@a"}, "@a refers to itself: @a → @a"),
        ({"a": "x >"}, "@a is wrong: expected a condition or a value"),
        ({"a": "@b", "b": "x = 1 AND x = 'k'"}, "@a is wrong: @b is wrong: x is a number"),
        ({"a": "@bb", "bbb": "x = 1"}, "unknown definition @bb; did you mean @bbb?"),
    ],
)
def test_wrong_definitions(definitions, message):
    with pytest.raises(InputError) as caught:
        tamis.build({"s": "x = 1"}, definitions=definitions)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "definitions", [["a"], {"1a": "x = 1"}, {"a b": "x = 1"}, {"a": 5}, {5: "x = 1"}, {"": "x"}]
)
def test_what_are_no_definitions(definitions):
    with pytest.raises(SchemaError):
        tamis.build({"s": "x = 1"}, definitions=definitions)


def test_an_unknown_reference_rejects_one_subscription():
    index = tamis.build(
        {"s": "@offce_hours", "t": "@timestamp = 'x'", "u": "x = 1"}, definitions=DEFINITIONS
    )
    assert {reject.subscription_id: reject.code for reject in index.rejects} == {
        "s": "unknown-definition",
        "t": "not-a-value",
    }
    assert "did you mean @office_hours?" in str(index.rejects[0])
    assert "`@timestamp`" in str(index.rejects[1])


def test_variables_stay_in_the_expression():
    schema = {
        "nearby(?string)": "operator",
        "@definitions": {"near_x": "nearby(?p) AND ?p = 'x'"},
    }
    with pytest.raises(ExpressionError, match="has variables"):
        check(parse("@near_x"), Schema.of(schema))


def test_definitions_count_for_the_limits():
    doubling = {f"d{n}": f"@d{n - 1} AND NOT @d{n - 1}" for n in range(1, 30)} | {"d0": "x = 1"}
    with pytest.raises(ExpressionError, match="more than 4096 predicates"):
        check(parse("@d29"), Schema.of({"x": "integer", "@definitions": doubling}))
    deep = {f"d{n}": f"NOT @d{n - 1}" for n in range(1, 20)} | {"d0": "x = 1"}
    schema = Schema.of({"x": "integer", "@definitions": deep})
    assert check(parse("@d19"), schema)
    with pytest.raises(LimitError, match="levels deep, with its definitions"):
        check(parse("x = 2 AND @d5"), Schema.of(schema.to_json()), Limits(depth=5))


def test_lint_looks_at_the_whole_but_not_into_definitions():
    schema = {"@definitions": {"odd": "name = ' a ' OR x = 1", "big": "x > 5"}}
    assert tamis.check("@odd", schema) == []
    (found,) = tamis.check("@big AND x < 3", schema)
    assert found.reason.code == "conflict"


def test_definitions_are_checked_once_and_by_their_names():
    rows = [SubscriptionRow(1, None, "a", "@odd AND x = 2"), SubscriptionRow(2, None, "b", "@odd")]
    definitions = {"odd": "name = ' a ' OR x = 1", "fine": "x > 5", "wrong": "x >"}
    for schema in ({"@definitions": definitions}, {"@definitions": definitions, "x": "integer"}):
        checked = list(check_subscriptions(rows, Schema.of(schema)))
        found = [(own.row.number, own.row.subscription_id) for own in checked]
        assert found == [(0, "@odd"), (0, "@wrong"), (1, "a"), (2, "b")]
        assert checked[1].problems[0].severity == "error"
    (problem,) = next(check_subscriptions(rows, Schema.of({"@definitions": definitions}))).problems
    assert problem.reason.code == "padded-string"
    assert not any(
        own.row.number for own in check_subscriptions([], Schema.of({"@definitions": definitions}))
    )


def test_references_mean_the_same_in_the_reference_evaluator():
    schema = Schema.of({"@definitions": DEFINITIONS})
    for text in TEXTS.values():
        one = tamis.parse(text, schema)
        other = tamis.parse(expanded(text))
        for event in EVENTS:
            assert evaluate(one, event) is evaluate(other, event)
