"""Lint says what is suspicious, where, and nothing false."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language import Schema, check, parse, print_expression
from tamis.language.ast import And, Condition, Or, attributes
from tamis.logic.evaluate import Missing, attribute_value, evaluate
from tamis.logic.lint import lint
from tests.generators import random_condition, random_event, random_schema

SCHEMA = Schema.of("a int, b int, x double, s string, flag boolean, tags array<string>")

# (text, [(code, the part of the text it points at)])
CASES = [
    ("a = 1 AND s = 'x'", []),
    ("a = 1 OR b = 1 AND NOT flag", []),
    ("a IN (1, 2) AND b BETWEEN 1 AND 2", []),
    ("a = 1 AND a = 2", [("conflict", "a = 2")]),
    ("a = 1 AND b = 2 AND a > 5", [("conflict", "a > 5")]),
    ("flag AND NOT flag", [("conflict", "NOT flag")]),
    ("s LIKE '%x%' AND s NOT LIKE '%x%'", [("conflict", "s NOT LIKE '%x%'")]),
    ("a IS NULL AND a = 1", [("conflict", "a = 1")]),
    ("a = 1 OR a = 1", [("duplicate", "a = 1")]),
    ("a = 1 OR b = 2 OR 1 = a", [("duplicate", "1 = a")]),
    ("a IN (1, 2, 1)", [("duplicate", "a IN (1, 2, 1)")]),
    ("a < 5 OR a < 3", [("redundant", "a < 3")]),
    ("a < 5 AND a < 3", [("redundant", "a < 5")]),
    ("a = 1 AND (a = 1 OR b = 2)", [("redundant", "(a = 1 OR b = 2)")]),
    ("a = 1 AND a IS NOT NULL", [("redundant", "a IS NOT NULL")]),
    ("a = 1 OR a IS NOT NULL", [("redundant", "a = 1")]),
    ("NOT (a = 1 AND a IS NOT NULL)", []),
    ("xor(a = 1 AND a IS NOT NULL, b = 2)", []),
    ("(a = 1 AND a IS NOT NULL) XNOR b = 2", []),
    ("s LIKE ANY ('a%', 'b%', 'a%')", [("duplicate", "s LIKE ANY ('a%', 'b%', 'a%')")]),
    ("s LIKE ALL ('a%', '*b*')", [("literal-pattern", "s LIKE ALL ('a%', '*b*')")]),
    ("lower(s) = 'Ab'", [("never-true", "lower(s) = 'Ab'")]),
    ("'ab' = upper(s) OR a = 1", [("never-true", "'ab' = upper(s)")]),
    ("upper(trim(s)) IN ('a', 'B')", [("redundant", "upper(trim(s)) IN ('a', 'B')")]),
    ("lower(s) <> 'Ab'", []),
    ("lower(s) NOT IN ('A') OR a = 1", []),
    ("lower(s) = 'a' AND lower(s) = 'b'", [("conflict", "lower(s) = 'b'")]),
    ("lower(s) = 'a' AND s IS NOT NULL", [("redundant", "s IS NOT NULL")]),
    ("lower(s) = 'a' AND upper(s) = 'B'", []),
    ("s RLIKE '.*x'", [("redundant", "s RLIKE '.*x'")]),
    ("a <> 1 OR a <> 2", [("always-true", "a <> 2")]),
    ("a < 5 OR a > 3", [("always-true", "a > 3")]),
    ("a IS NULL OR a IS NOT NULL", [("always-true", "a IS NOT NULL")]),
    ("a = 1 OR TRUE", [("always-true", "TRUE")]),
    ("startswith(s, '')", [("always-true", "startswith(s, '')")]),
    ("s > '18'", [("text-order", "'18'")]),
    ("s BETWEEN '2024-01-01' AND '9:00'", [("text-order", "'9:00'")]),
    ("s < '01/02/2024' OR s = '18'", [("text-order", "'01/02/2024'")]),
    ("s >= '10.2.1'", [("text-order", "'10.2.1'")]),
    ("s >= '2024-01-01' AND s < 'm'", []),
    ("a = 1 AND FALSE", [("never-true", "FALSE")]),
    ("a <=> a", [("always-true", "a <=> a")]),
    (r"s = 'C:\temp'", [("control-character", r"'C:\temp'")]),
    (r"endswith(s, '\new.exe')", [("control-character", r"endswith(s, '\new.exe')")]),
    (r"s = r'C:\temp' OR s = 'a:\t b'", []),
    ("a = 1.5 AND b = 1", [("never-true", "a = 1.5"), ("never-true", "a = 1.5")]),
    ("(a = 1 AND a = 2) OR b = 3", [("unreachable", "(a = 1 AND a = 2)"), ("conflict", "a = 2")]),
    ("a BETWEEN 5 AND 1", [("empty-range", "a BETWEEN 5 AND 1")]),
    ("1 = 1", [("constant", "1 = 1")]),
    ("s = 'CA '", [("padded-string", "'CA '")]),
    ("s = '  '", [("padded-string", "'  '")]),
    ("s IN ('a', 'NULL')", [("null-string", "'NULL'")]),
    ("s = 'evil%'", [("literal-pattern", "'evil%'")]),
    ("s IN ('a', '*b*')", [("literal-pattern", "'*b*'")]),
    ("array_contains(tags, '%at')", [("literal-pattern", "'%at'")]),
    ("contains(s, '%e%')", [("literal-pattern", "contains(s, '%e%')")]),
    ("s LIKE '*a_b*'", [("literal-pattern", "s LIKE '*a_b*'")]),
    ("s RLIKE '/foo/i'", [("literal-pattern", "s RLIKE '/foo/i'")]),
    ("s = '10.0.0.0/8'", [("literal-network", "'10.0.0.0/8'")]),
    ("matches(s, 'child% x')", [("literal-pattern", "matches(s, 'child% x')")]),
    ("matches(s, 'child* x')", []),
    ("matches(s, 'oil OR gas')", [("literal-operator", "matches(s, 'oil OR gas')")]),
    ("s LIKE 'abc'", [("no-wildcard", "s LIKE 'abc'")]),
    ("NOT NOT flag", [("double-negation", "NOT NOT flag")]),
    ("a BETWEEN 1 AND 5 AND NOT a BETWEEN 1 AND 5", [("conflict", "NOT a BETWEEN 1 AND 5")]),
    ("a BETWEEN 1 AND 5 OR NOT a BETWEEN 2 AND 4", [("always-true", "NOT a BETWEEN 2 AND 4")]),
    ("a BETWEEN 1 AND 5 AND NOT a BETWEEN 7 AND 9", [("redundant", "NOT a BETWEEN 7 AND 9")]),
    ("a BETWEEN 1 AND 5 AND NOT a BETWEEN 3 AND 9", []),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_findings_and_their_places(text, expected):
    findings = lint(check(parse(text), SCHEMA))
    assert [(found.code, text[slice(*found.span)]) for found in findings] == expected
    assert all(found.message for found in findings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NOT a < 5 AND a IS NULL", []),
        ("a <> 1 AND a IS NULL", []),
        ("a < 5 AND a IS NULL", [("conflict", "a IS NULL")]),
        ("a = 1 AND a = 2 AND NOT b = 3", [("conflict", "a = 2")]),
        ("a = 1 AND a <> 1", [("conflict", "a <> 1")]),
        ("a = 1 OR a <> 1", [("always-true", "a <> 1")]),
        ("a < 5 OR a > 3", [("always-true", "a > 3")]),
        ("a <> 1.5", [("always-true", "a <> 1.5")]),
        ("NOT (a = 1 AND a IS NOT NULL)", [("redundant", "a IS NOT NULL")]),
        ("NOT (a < 5 AND a < 3)", [("redundant", "a < 5")]),
        ("a <> 1 OR b = 2 OR NOT a = 1", [("duplicate", "NOT a = 1")]),
    ],
)
def test_findings_if_a_missing_attribute_satisfies_negation(text, expected):
    findings = lint(check(parse(text), SCHEMA), Missing.SATISFIES_NEGATION)
    assert [(found.code, text[slice(*found.span)]) for found in findings] == expected


# (text, what lint proposes to write)
PROPOSALS = [
    ("s = '*evil*'", "s LIKE '%evil%'"),
    ("'%evil%' = s", "s LIKE '%evil%'"),
    ("s <> 'evil*'", "s NOT LIKE 'evil%'"),
    ("s = '*50%_off'", r"s LIKE '%50\\%\\_off'"),
    ("s = '*.exe'", "s LIKE '%.exe'"),
    (r"s = r'*\a.exe'", r"s LIKE '%\\\\a.exe'"),
    ("s = '.*evil.*'", "s RLIKE 'evil'"),
    ("s = '^a+$'", "s RLIKE '^a+$'"),
    ("s LIKE '.*evil'", "s RLIKE 'evil$'"),
    ("contains(s, '%e%')", "contains(s, 'e')"),
    ("contains(s, '*e*')", "contains(s, 'e')"),
    ("contains(s, '*a*b*')", "s LIKE '%a%b%'"),
    ("startswith(s, 'a*')", "startswith(s, 'a')"),
    ("startswith(s, '*a')", "contains(s, 'a')"),
    ("endswith(s, '%at')", "endswith(s, 'at')"),
    ("s LIKE '*a*'", "s LIKE '%a%'"),
    ("s NOT ILIKE 'a*'", "s NOT ILIKE 'a%'"),
    ("s RLIKE '/foo/i'", "s RLIKE '(?i)foo'"),
    ("s RLIKE '/^foo$/'", "s RLIKE '^foo$'"),
    ("s NOT RLIKE '/foo/g'", "s NOT RLIKE 'foo'"),
    (r"s = r'C:\*\a.exe'", r"s LIKE 'C:\\\\%\\\\a.exe'"),
    ("s = '/api/*/x'", "s LIKE '/api/%/x'"),
]


@pytest.mark.parametrize(("text", "written"), PROPOSALS)
def test_what_lint_proposes_is_not_suspicious(text, written):
    (found,) = lint(check(parse(text), SCHEMA))
    assert found.hint == f"write {written}"
    proposed = check(parse(written), SCHEMA)
    assert lint(proposed) == []
    assert print_expression(proposed) == written


@pytest.mark.parametrize(
    "text",
    [
        "s = '5%'",
        "s = '-2.5%'",
        "s = '*'",
        "s = '%'",
        "s = '* * *'",
        "s = '*/5 * * * *'",
        "s = '0 0 1 1 *'",
        "s = '****1234'",
        "s = '**bold**'",
        "s = '2*3'",
        "s = 'SELECT *'",
        "s = '%Y-%m-%d'",
        r"s = r'%APPDATA%\x.exe'",
        r"s = '50\%'",
        "s > '*a'",
        "contains(s, '50%')",
        "contains(s, '%2e%2E')",
        "contains(s, '%s')",
        "s LIKE '%*a'",
        "s LIKE 'a_'",
        "s RLIKE '/api/'",
        "s RLIKE '/api/v1/x'",
        "s = '10.0.0.1'",
        "s = '10.0.0.1/32'",
        "s = '1/8'",
        "src_net = '10.0.0.0/8'",
        "matches(s, 'rock and roll 50% wi-fi -5')",
        "matches_phrase(s, 'to be OR not')",
    ],
)
def test_plain_texts_are_not_suspicious(text):
    schema = Schema.of("s string, src_net string")
    assert lint(check(parse(text), schema)) == []


def test_of_a_list_each_pattern_is_reported():
    text = "s NOT IN ('*a', 'b', 'c*')"
    found = lint(check(parse(text), SCHEMA))
    assert [one.hint for one in found] == [
        "write s NOT LIKE '%a' for it, joined by AND",
        "write s NOT LIKE 'c%' for it, joined by AND",
    ]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("s = '10.0.0.0/8'", "in_network(s, '10.0.0.0/8')"),
        ("s <> '10.0.0.0/8'", "NOT in_network(s, '10.0.0.0/8')"),
        ("s LIKE '192.168.7.0/24'", "in_network(s, '192.168.7.0/24')"),
        ("s = '172.16.0.0/12'", "in_network(s, '172.16.0.0/12')"),
        ("s = '2001:db8::/32'", "in_network(s, '2001:db8::/32')"),
        ("s NOT IN ('10.0.0.0/8', '10.0.0.1')", "NOT in_network(s, '10.0.0.0/8', '10.0.0.1')"),
    ],
)
def test_networks_are_for_addresses(text, written):
    (found,) = lint(check(parse(text), SCHEMA))
    assert found.code == "literal-network"
    assert found.hint == f"declare s as IP and write {written}"
    assert lint(check(parse(written), Schema.of("s IP"))) == []


def test_networks_in_arrays_are_for_their_elements():
    (found,) = lint(check(parse("array_contains(tags, '10.0.0.0/8')"), SCHEMA))
    assert found.code == "literal-network"
    written = "exists(tags, x -> in_network(x, '10.0.0.0/8'))"
    assert found.hint == f"declare tags as ARRAY<IP> and write {written}"
    assert lint(check(parse(written), Schema.of("tags ARRAY<IP>"))) == []


WIDE = "in_network(ip, '10.0.0.0/8')"
NARROW = "in_network(ip, '10.1.0.0/16')"
FOUR = "in_network(ip, '10.0.0.0/8', '12.0.0.0/8', '14.0.0.0/8', '16.0.0.0/8')"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{WIDE} AND NOT {WIDE}", [("conflict", f"NOT {WIDE}")]),
        (f"{NARROW} AND NOT {WIDE}", [("conflict", f"NOT {WIDE}")]),
        (f"{NARROW} AND NOT {FOUR}", [("conflict", f"NOT {FOUR}")]),
        (f"{FOUR} AND NOT {FOUR}", [("conflict", f"NOT {FOUR}")]),
        (f"{WIDE} AND NOT {NARROW}", []),
        (f"{FOUR} AND NOT {NARROW}", []),
        (f"{WIDE} OR NOT {NARROW}", [("always-true", f"NOT {NARROW}")]),
        ("in_network(ip, '0.0.0.0/0', '::/0')", [("always-true", None)]),
        ("in_network(ip, '::/1', '8000::/1')", [("always-true", None)]),
        ("in_network(ip, '::/8')", [("all-ipv4", None)]),
        ("in_network(ip, '::ffff:0.0.0.0/96')", []),
        ("in_network(ip, '0.0.0.0/0')", []),
        ("in_network(ip, '10.0.0.0/8', '::ffff:10.0.0.0/104')", [("duplicate", None)]),
    ],
)
def test_networks_that_decide_or_repeat(text, expected):
    findings = lint(check(parse(text), Schema.of("ip IP")))
    places = [(found.code, text[slice(*found.span)]) for found in findings]
    assert places == [(code, place or text) for code, place in expected]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("oil OR gas", "OR is a word to look for, not an operator: matches() takes words only"),
        ("oil -gas", "a word after - is not excluded: matches() takes words only"),
        ('"oil gas"', "quotes make no phrase: matches() takes words only"),
        ("child%", "'child%' has no wildcard: matches() looks for whole words"),
        ("a %evil% b", "'%evil%' has no wildcard: matches() looks for whole words"),
    ],
)
def test_queries_of_search_boxes_in_matches(query, message):
    (found,) = lint(check(parse(f"matches(s, '{query}')"), SCHEMA))
    assert found.message == message


def test_wildcards_in_whole_texts():
    schema = Schema.of("s TEXT(keyword)")
    (found,) = lint(check(parse("matches(s, 'AB-*')"), schema))
    assert found.message == "'AB-*' has no wildcard: the analyser keyword compares whole texts"
    assert found.hint == "write s LIKE 'AB-%'"
    assert lint(check(parse("matches(s, 'a ** b')"), schema)) == []


def with_places(condition: Condition, schema: Schema) -> Condition:
    """The condition as the parser makes it, with spans."""
    return check(parse(print_expression(condition)), schema)


@given(seed=st.integers(0, 2**63), missing=st.sampled_from(Missing))
def test_what_lint_calls_never_or_always_true_is_so(seed, missing):
    rng = random.Random(seed)
    schema = random_schema(rng, rng.choice((1, 2)))
    condition = with_places(random_condition(rng, schema, depth=2), schema)
    verdicts = {x.code for x in lint(condition, missing) if x.span == condition.span}
    for _ in range(8):
        event = random_event(rng, schema)
        truth = evaluate(condition, event, missing)
        assert not ("never-true" in verdicts and truth is True)
        assert not ("empty-range" in verdicts and truth is True)
        # True wherever the attributes are present.
        is_whole = all(attribute_value(own, event) is not None for own in attributes(condition))
        if "always-true" in verdicts:
            assert truth is True or not is_whole
            assert truth is not False or missing is Missing.SATISFIES_NEGATION


@given(seed=st.integers(0, 2**63), missing=st.sampled_from(Missing))
def test_a_redundant_operand_has_no_effect(seed, missing):
    rng = random.Random(seed)
    schema = random_schema(rng, 1)
    operands = tuple(random_condition(rng, schema, depth=0) for _ in range(2))
    condition = with_places(rng.choice((And, Or))(operands), schema)
    messages = [found.message for found in lint(condition, missing)]
    if any(message.startswith(("has no effect", "repeated")) for message in messages):
        events = [random_event(rng, schema) for _ in range(8)]
        whole = [evaluate(condition, event, missing) is True for event in events]
        parts = [[evaluate(x, event, missing) is True for event in events] for x in operands]
        assert whole in parts


def test_a_wide_or_is_linted_quickly_enough_to_finish():
    text = " OR ".join(f"a = {n}" for n in range(2000)) + " OR a = 7"
    assert [found.code for found in lint(check(parse(text), SCHEMA))] == ["duplicate"]
