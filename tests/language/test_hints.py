"""What people bring from other languages is answered with what to write, and that works."""

from __future__ import annotations

import pytest

import tamis


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
        ("NOT Exists( host.name )", "host.name IS NOT NULL"),
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
        (
            "tags[0] = 'x'",
            "members of an array cannot be accessed by number; to test whether an array has",
        ),
        ("geo['city'] = 'x'", "an attribute inside another is written geo.city"),
        ("arrays_overlap(a, array['x'])", "a list is written in parentheses: ('x')"),
        ("tolower(name) = tolower(other)", "to compare in any case, write name ILIKE '…'"),
        (r"tolower(name) = 'a\\b'", "to compare in any case, write name ILIKE '…'"),
        ("tolower(name) < 'x'", "to compare in any case, write name ILIKE '…'"),
        ("title:fed", "write title = 'fed', or matches(title, 'fed') to look for words"),
        ("name: ", "write name = …"),
        ("a IN [1, 2]", "a list is written in parentheses: (1, 2)"),
        ("a IN [1, ", "a list is written in parentheses: (…)"),
        ("AND exists", "an attribute of that name is written `exists`"),
        ("initcap(name) = 'x'", "functions of attributes: lower, upper, trim"),
    ],
)
def test_other_hints(text, hint):
    assert refuse(text).startswith(hint)


def test_a_compared_text_is_no_pattern():
    written = refuse("tolower(name) = 'a_b'").rpartition("write ")[2]
    assert tamis.evaluate(written, {"name": "A_B"}) is True
    assert tamis.evaluate(written, {"name": "axb"}) is False


@pytest.mark.parametrize(
    "text", ["a = 1 contains 'x'", "a = 1 b = 2", "(a = 1) contains 'x'", "a = 1 AND : 2"]
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
