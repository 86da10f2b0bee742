"""What people bring from other languages is answered with what to write, and that works."""

from __future__ import annotations

import pytest

import tamis
from tamis.errors import ParseError
from tamis.language import parse


def refuse(text: str) -> str:
    with pytest.raises(tamis.ExpressionError) as raised:
        tamis.parse(text)
    return raised.value.hint or ""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Image |contains 'x'", "contains(Image, 'x')"),
        ("Image|endswith 'x'", "endswith(Image, 'x')"),
        ("a = 1 AND Image | re 'x+'", "Image RLIKE 'x+'"),
        ('`Image-1`|startswith "x"', "startswith(`Image-1`, 'x')"),
        ("CommandLine contains 'x'", "contains(CommandLine, 'x')"),
        ("a = 1 OR host.name startswith 'it''s'", "startswith(host.name, 'it''s')"),
        ("body matches 'x y'", "matches(body, 'x y')"),
        ("body matches_phrase 'x y'", "matches_phrase(body, 'x y')"),
        ("name matches '.*a'", "name RLIKE '.*a'"),
        (r"name not matches r'\d+'", r"NOT name RLIKE r'\d+'"),
        ("name matches '^a|b$'", "name RLIKE '^a|b$'"),
        ("name starts_with 'a'", "startswith(name, 'a')"),
        ("contains('y', name)", "contains(name, 'y')"),
        ("a = 1 AND matches( 'x y' , host.name )", "matches(host.name, 'x y')"),
        ("array_contains(5, ports)", "array_contains(ports, 5)"),
        ("'vip' IN tags", "array_contains(tags, 'vip')"),
        ("'vip' NOT IN (tags)", "NOT array_contains(tags, 'vip')"),
        ("'a%' LIKE name", "name LIKE 'a%'"),
        ("tolower(name) IN ('x')", "name ILIKE 'x'"),
        ("tolower(name) IN ('a_b', 'it''s')", r"(name ILIKE 'a\_b' OR name ILIKE 'it''s')"),
        ("toupper(name) NOT IN ('A', 'B')", "(name NOT ILIKE 'A' AND name NOT ILIKE 'B')"),
        ("tolower(name) RLIKE 'x+'", "name RLIKE '(?i)x+'"),
        ("tolower(name) NOT RLIKE r'x+'", "name NOT RLIKE r'(?i)x+'"),
        ("contains(tolower(name), 'x_')", r"name ILIKE '%x\_%'"),
        ("startswith(toupper(name), 'X')", "name ILIKE 'X%'"),
        ("exists(User)", "User IS NOT NULL"),
        ("NOT Exists( host.name )", "host.name IS NULL"),
        ("exists User", "User IS NOT NULL"),
        ("not exists User", "User IS NULL"),
        ("a = 1 AND not exists host.name", "host.name IS NULL"),
        ("CommandLine=*x*", "contains(CommandLine, 'x')"),
        ("a = 1 AND CommandLine != *x* AND b = 1", "NOT contains(CommandLine, 'x')"),
        ("CommandLine=x*", "startswith(CommandLine, 'x')"),
        (r"a = 1 AND Image=*\cmd.exe", r"endswith(Image, r'\cmd.exe')"),
        ("CommandLine == *a_b*c*", r"CommandLine LIKE r'%a\_b%c%'"),
        ("User=*", "User IS NOT NULL"),
        ("User <> *", "User IS NULL"),
        ("ip in 10.0.0.0/8", "in_network(ip, '10.0.0.0/8')"),
        ("ip NOT IN (10.0.0.0/8, 10.1.0.0/16)", "NOT in_network(ip, '10.0.0.0/8', '10.1.0.0/16')"),
        ("a = 1 AND ip = 10.0.0.1", "ip = '10.0.0.1'"),
        ("ip <> 10.0.0.1", "ip <> '10.0.0.1'"),
        ("ip not in (10.0.0.1, 10.0.0.2)", "ip NOT IN ('10.0.0.1', '10.0.0.2')"),
        ("tolower(name) = 'x'", "name ILIKE 'x'"),
        ("'X' = TOUPPER(name)", "name ILIKE 'X'"),
        ("tolower(name) = 'a_b%'", r"name ILIKE 'a\_b\%'"),
        ("toupper(name) <> 'X'", "name NOT ILIKE 'X'"),
        ("tolower(name) LIKE '%x_'", "name ILIKE '%x_'"),
        ("a = 1 AND tolower(name) NOT LIKE 'x%'", "name NOT ILIKE 'x%'"),
        ("name not contains 'x'", "NOT contains(name, 'x')"),
        ("a = 1 AND NOT name contains 'x'", "contains(name, 'x')"),
        ("Image|contains|all: 'x'", "contains(Image, 'x')"),
        ('Image|contains: "it\'s"', "contains(Image, 'it''s')"),
        ("User exists", "User IS NOT NULL"),
        ("a = 1 AND host.name EXISTS", "host.name IS NOT NULL"),
        ("isnull(User)", "User IS NULL"),
        ("is_not_null(User)", "User IS NOT NULL"),
        ("Image: 'x'", "Image = 'x'"),
        ('Image : "x"', "Image = 'x'"),
        ("level: 5", "level = 5"),
        ("name ~ 'x+'", "name RLIKE 'x+'"),
        ("name =~ 'x+'", "name RLIKE 'x+'"),
        ("age eq 3", "age = 3"),
        ("a = 1 and age GTE -3.5", "age >= -3.5"),
        ("name ne 'x'", "name <> 'x'"),
    ],
)
def test_the_hint_is_an_expression(text, written):
    assert refuse(text).endswith(f"write {written}")
    tamis.parse(written)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('name = "cmd"', "write strings in single quotes: 'cmd'"),
        ('name = "it\'s"', "write strings in single quotes: 'it''s'"),
        ('name = "cmd', "write strings in quotes: 'text'"),
        ("a = 1 || b = 2", "write OR"),
        ("a = 1 | b = 2", "write OR"),
        ("|contains 'x'", "write OR"),
        ("EXISTS (SELECT 1)", "subqueries are not supported"),
        ("exists = 1", "an attribute of that name is written `exists`"),
        (
            "tolower(a) IN ('b', 'c', 'd', 'e')",
            "to compare in any case, write (a ILIKE 'b' OR a ILIKE 'c' OR a ILIKE 'd' OR …)",
        ),
        (r"tolower(name) IN ('a\\b')", "to compare in any case, write name ILIKE '…'"),
        (
            "matches(tolower(body), 'x')",
            "words are found regardless of case: write matches(body, …)",
        ),
        ("contains('y', 'z')", "contains(attribute, 'text')"),
        ("matches_at_least(2, 'a b', x)", "matches_at_least(k, attribute, 'k of these words')"),
        ("a = 'x' OR 'y'", "compare it with something, such as = or <; one of several is name IN"),
        ("tags[i] = 'x'", "an element at a constant position is written element_at(tags, 1)"),
        ("a || b = 'xy'", "write OR; to join texts, write concat(a, b)"),
        ("left(a, 3) = 'abc'", "write substring(a, 1, 3)"),
        ("contains(right(a, 3), 'x')", "write substring(a, -3)"),
        ("if(a = 1, b, c)", "write (condition AND test) OR (NOT condition AND other_test)"),
        ("filter(tags, t -> t = 'x')", "only exists(), forall() and any_attribute() take"),
        ("age lt other", "write age < …"),
        ("regexp_like(name, 'x')", "write a RLIKE 'regex'"),
        ("rlike(name, 'x')", "the attribute comes first: write name RLIKE 'pattern'"),
        ("NOT like(name, 'x%')", "the attribute comes first: write name LIKE 'pattern'"),
        ("nvl(a, 1) = 1", "write coalesce(a, 0)"),
        ("instr(name, 'x') > 0", "write contains(a, 'text')"),
        ("name IN 'x'", "write the list in parentheses: ('x')"),
        ("a NOT IN 1, 2", "write the list in parentheses: (1)"),
        ("geo['city'] = 'x'", "an attribute inside another is written geo.city"),
        ("arrays_overlap(a, array['x'])", "a list is written in parentheses: ('x')"),
        ("tolower(name) = tolower(other)", "to compare in any case, write name ILIKE '…'"),
        (r"tolower(name) = 'a\\b'", "to compare in any case, write name ILIKE '…'"),
        ("tolower(name) < 'x'", "to compare in any case, write name ILIKE '…'"),
        ("title:fed", "write title = 'fed', or matches(title, 'fed') to look for words"),
        ("name: ", "write name = …"),
        ("at_least(3, 2: p, q)", "a condition that is listed twice counts twice"),
        ("at_least(3, p, 2 : q)", "a condition that is listed twice counts twice"),
        ("a IN [1, 2]", "a list is written in parentheses: (1, 2)"),
        ("a IN [1, ", "a list is written in parentheses: (…)"),
        ("AND exists", "an attribute of that name is written `exists`"),
        ("ts > now()", "an expression has no clock: write the moment, as in ts > TIMESTAMP"),
        ("ts = CURRENT_DATE()", "an expression has no clock: write the moment"),
        ("ts BETWEEN now() AND x", "an expression has no clock: write the moment"),
        ("price > $10", "write the number alone: 10"),
        ("price > $ 1,000.50", "write the number alone: 1000.50"),
        ("price > €10", "write the number alone: 10"),
        ("a > 1,000", "a number has no commas between its digits: 1000"),
        ("a > 1,000,000.5 AND b = 1", "a number has no commas between its digits: 1000000.5"),
        ("a BETWEEN 1,000 AND 2,000", "a number has no commas between its digits: 1000"),
        ("10.0.0.1 = ip", "an address is written in quotes: '10.0.0.1'"),
        ("where a = 1", "leave out WHERE: an expression is the condition alone"),
        ("WHERE (a) AND b = 1", "leave out WHERE: an expression is the condition alone"),
        ("WHERE NOT a = 1", "leave out WHERE: an expression is the condition alone"),
        ("ts > foo()", "functions of attributes: lower"),
        ("initcap(name) = 'x'", "functions of attributes: lower, upper, trim"),
    ],
)
def test_other_hints(text, hint):
    assert refuse(text).startswith(hint)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tags[0] = 'x'", "element_at(tags, 1)"),
        ("tags[ -1 ] = 'x'", "element_at(tags, -1)"),
        ("age::int = 5", "cast(age AS INT)"),
        ("nvl(a, 0) = 0", "coalesce(a, 0)"),
        ("if_null(a, 0) > 0", "coalesce(a, 0)"),
        ("to_int(a) IN (0)", "cast(a AS BIGINT)"),
    ],
)
def test_the_hint_is_a_value(text, value):
    assert refuse(text) == f"write {value}"
    tamis.parse(f"{value} = 'x'" if "tags" in text else f"{value} = 0")


ARRAYS = (
    "tags ARRAY<STRING>, ports ARRAY<INT>, ips ARRAY<IP>, items ARRAY<STRUCT<tags: ARRAY<STRING>>>"
)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("tags LIKE '%a%'", "exists(tags, x -> x LIKE '…')"),
        ("tags NOT ILIKE ANY ('a', 'b')", "exists(tags, x -> x ILIKE '…')"),
        ("tags RLIKE 'a'", "exists(tags, x -> x RLIKE '…')"),
        ("endswith(tags, 'a')", "exists(tags, x -> endswith(x, '…'))"),
        ("in_network(ips, '10.0.0.0/8')", "exists(ips, x -> in_network(x, '…'))"),
        ("array_contains(items.tags, 'a')", "exists(items, x -> array_contains(x.tags, …))"),
        ("exists(items.tags, t -> t = 'a')", "exists(items, x -> exists(x.tags, …))"),
        ("forall(items.tags, t -> t = 'a')", "exists(items, x -> forall(x.tags, …))"),
    ],
)
def test_a_test_of_an_array_as_one_of_its_elements(text, written):
    with pytest.raises(tamis.ExpressionError) as raised:
        tamis.parse(text, ARRAYS)
    assert raised.value.hint.endswith(f"write {written}")


def test_an_ordered_array_is_one_of_its_elements():
    with pytest.raises(tamis.ExpressionError) as raised:
        tamis.parse("ports > 1024", ARRAYS)
    assert "exists(ports, x -> x > …)" in raised.value.hint


def test_a_compared_text_is_no_pattern():
    written = refuse("tolower(name) = 'a_b'").rpartition("write ")[2]
    assert tamis.evaluate(written, {"name": "A_B"}) is True
    assert tamis.evaluate(written, {"name": "axb"}) is False


@pytest.mark.parametrize(
    "text",
    [
        *("a = 1 contains 'x'", "a = 1 b = 2", "(a = 1) contains 'x'", "a = 1 AND : 2"),
        *("a > 1,00", "price > $x", "a = 10.0.0", "a * > 2", "a = 1 AND *"),
    ],
)
def test_no_hint_where_none_fits(text):
    assert refuse(text) == ""


def test_an_operator_of_a_similar_name_is_not_what_was_meant():
    with pytest.raises(tamis.ExpressionError) as raised:
        tamis.parse(
            "tolower(name) = tolower(other)",
            "name STRING, other STRING, owner(STRING) OPERATOR(name)",
        )
    assert "did you mean" not in raised.value.message
    assert raised.value.hint == "to compare in any case, write name ILIKE '…'"


@pytest.mark.parametrize(
    "text",
    [
        "EXISTS (SELECT 1)",
        "a = 1 AND NOT exists((SELECT * FROM t))",
        "EXISTS(WITH x AS (SELECT 1) SELECT 1)",
        "EXISTS (VALUES (1))",
    ],
)
def test_subqueries_are_refused(text):
    with pytest.raises(ParseError, match="EXISTS is not supported") as raised:
        parse(text)
    assert "subqueries are not supported" in raised.value.hint
