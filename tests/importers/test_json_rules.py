"""Rules in JSON: types that constants elect, names of elements, states, and notes."""

from __future__ import annotations

import json

import pytest

from tamis import build
from tamis.importers import Settings, import_rules
from tamis.language.schema import Schema


def read(rule_format, content):
    return import_rules(rule_format, [json.dumps(content).encode()])


def test_elected_strings_are_read_from_numbers_and_booleans():
    imported = read("elasticsearch", {"query": {"term": {"status": "5"}}})
    assert imported.schema.to_json()["status"] == "string from number or boolean"
    index = build(imported.to_rows(), imported.schema)
    assert [bool(index.match(own)) for own in ({"status": "5"}, {"status": 5})] == [True, True]


EVENT_PATTERN = {"source": ["aws.ec2"]}


@pytest.mark.parametrize(
    ("rule", "code", "message"),
    [
        ({"State": "DISABLED", "EventPattern": EVENT_PATTERN}, "disabled", "switched off"),
        ({"EventPattern": {}}, "bad-rule", "EventPattern of the rule is {}; an object with"),
        ({"EventPattern": "{}"}, "bad-rule", "EventPattern of the rule is {}; an object with"),
        ({"ScheduleExpression": "rate(1 day)"}, "not-expressible", "has a schedule and no Event"),
        ({"State": "ENABLED"}, "bad-rule", "the rule has no EventPattern"),
        ({"EventPattern": {"s": []}}, "bad-rule", "s is an empty list; one or more values"),
        ({"EventPattern": {"d": {"s": []}}}, "bad-rule", "d.s is an empty list; one or more"),
    ],
)
def test_eventbridge_rules_that_match_no_events_are_refused(rule, code, message):
    good = {"Name": "11", "State": "ENABLED", "EventPattern": json.dumps(EVENT_PATTERN)}
    bad, other = read("eventbridge", {"Rules": [{"Name": "10", **rule}, good]}).rules
    assert bad.error is not None, bad.expression
    assert (bad.rule_id, bad.error.code) == ("10", code)
    assert message in bad.error.message
    assert other.expression == "source = 'aws.ec2'"


def test_a_pattern_may_test_fields_that_rules_have_too():
    (rule,) = read("eventbridge", {"Name": ["a"], "State": [{"prefix": "x"}]}).rules
    assert rule.expression == "Name = 'a' AND State LIKE 'x%'"


def test_a_constant_of_another_type_is_noted():
    queries = [{"id": n, "query": {"term": {"n": own}}} for n, own in enumerate((1, 2, True))]
    imported = read("elasticsearch", queries)
    assert [own.expression for own in imported.rules] == ["n = 1", "n = 2", "FALSE"]
    (note,) = [own for own in imported.notes if "never" in own]
    assert note.startswith("n has values of type number, which never are true: the test is always")


def test_places_name_the_element(tmp_path):
    file = tmp_path / "q.json"
    file.write_text(json.dumps([{"id": n, "query": {"term": {"a": "b"}}} for n in (1, 2, 2)]))
    imported = import_rules("elasticsearch", [file])
    assert [own.place for own in imported.rules] == [f"{file}:1, element {n}" for n in (1, 2, 3)]
    assert imported.refused[0].error.message == f"the id was already given in {file}:1, element 2"
    assert f"such as {file}:1, element 1)" in imported.notes[0]


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ({"term": {"a": "x"}}, "a term is compared with the whole value"),
        ({"prefix": {"a": "x"}}, "a term is compared with the whole value"),
        ({"wildcard": {"a": "x*"}}, "a term is compared with the whole value"),
        ({"regexp": {"a": "x.*"}}, "a term is compared with the whole value"),
        ({"regexp": {"a.keyword": "^x"}}, "^ and $ are plain characters"),
        ({"regexp": {"a.keyword": "x$"}}, "^ and $ are plain characters"),
        ({"range": {"a": {"gte": "2024-01-31"}}}, "a date is compared as text"),
        ({"exists": {"field": "a"}}, "exists is also true for an empty list or object"),
    ],
)
def test_what_undeclared_fields_may_mean_is_noted(query, note):
    (found,) = read("elasticsearch", {"query": query}).notes
    assert found.startswith(note)


@pytest.mark.parametrize(
    ("schema", "is_noted"), [("a STRING", False), ("a TEXT(english)", True), ("a BIGINT", False)]
)
def test_terms_are_noted_for_declared_fields_with_an_analyser_only(schema, is_noted):
    settings = Settings(Schema.of(schema))
    queries = ({"terms": {"a": ["5"]}}, {"term": {"a.keyword": "5"}}, {"term": {"n": 5}})
    content = [json.dumps({"id": n, "query": own}).encode() for n, own in enumerate(queries)]
    imported = import_rules("elasticsearch", [b"\n".join(content)], settings)
    assert [bool(own.notes) for own in imported.rules] == [is_noted, False, False]


def test_parameters_that_change_answers_are_refused_by_name():
    query = {"query_string": {"query": "title:oil", "minimum_should_match": 2}}
    (rule,) = read("elasticsearch", {"query": query}).rules
    assert rule.error.message == "query_string with minimum_should_match 2"
    (rule,) = read("elasticsearch", {"query": {"match": {"a": {"query": "b", "slop": 1}}}}).rules
    assert rule.error.message == "a: match with slop 1"


@pytest.mark.parametrize(
    ("pattern", "note"),
    [
        ({"a": [300]}, "a number also fits its other spellings, such as 300.0"),
        ({"a": [{"exists": True}]}, "exists of a field that no rule compares is also true for an"),
    ],
)
def test_what_eventbridge_compares_otherwise_is_noted(pattern, note):
    (found,) = read("eventbridge", pattern).notes
    assert found.startswith(note)


def test_declared_resources_have_their_own_type():
    settings = Settings(Schema.of("resources STRING"))
    (rule,) = import_rules("eventbridge", [b'{"resources": ["x"]}'], settings).rules
    assert rule.expression == "resources = 'x'"


def test_a_value_of_another_type_is_noted_in_patterns():
    imported = read("eventbridge", {"a": ["x", "y", 5], "b": [{"numeric": [">", 5]}]})
    assert imported.rules[0].expression == "a IN ('x', 'y') AND b > 5"
    (note,) = [own for own in imported.notes if "never fits" in own]
    assert note.startswith("a is of type string here and never fits 5: declare its type")


def test_a_long_list_has_many_rules_of_which_one_is_too_large():
    queries = [
        {"id": str(number), "query": {"term": {"a": "x"}}, "remarks": "x" * 300_000 * number}
        for number in range(1, 6)
    ]
    imported = read("elasticsearch", queries)
    assert [own.rule_id for own in imported.accepted] == ["1", "2", "3"]
    assert {own.error.code for own in imported.refused} == {"rule-too-large"}
    assert imported.refused[0].place == "stdin:1, element 4"


def test_a_key_that_is_given_twice_is_an_error_of_its_rule():
    text = (
        b'[{"id": "1", "query": {"term": {"a": "x", "a": "y"}}}, {"query": {"term": {"b": "z"}}}]'
    )
    first, second = import_rules("elasticsearch", [text]).rules
    assert first.error.message == 'the key "a" is given twice in one object'
    assert second.expression == "b = 'z'"
