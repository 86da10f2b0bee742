"""The traps of SQL's expressions, each with the rule we took: refused early, and said clearly."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tamis.errors import ExpressionError
from tamis.language import Schema, check, parse
from tamis.logic.evaluate import evaluate

SCHEMA = Schema.of(
    "i BIGINT, f FLOAT, d DOUBLE, m DECIMAL(10,2), s STRING, b BOOLEAN, dt DATE, ts TIMESTAMP, "
    "tags ARRAY<STRING>, n ARRAY<BIGINT>, a.b BIGINT, `a.b` STRING, country STRING, "
    "items ARRAY<STRUCT<price: DOUBLE, sku: STRING, tags: ARRAY<STRING>>>"
)


def refusal(text):
    """The error that the text is refused with."""
    with pytest.raises(ExpressionError) as caught:
        check(parse(text), SCHEMA, text=text)
    return caught.value


# text, code, what the carets underline, a part of the message, a part of the hint
REFUSED = [
    # No coercion between strings, numbers and Booleans.
    (
        "i = 'x'",
        "type-mismatch",
        "'x'",
        "i is an integer, compared with a string",
        "without quotes",
    ),
    ("i IN (5, 'x')", "type-mismatch", "'x'", "compared with a string", "without quotes"),
    ("'x' < i", "type-mismatch", "'x'", "compared with a string", "without quotes"),
    ("i BETWEEN 1 AND 'x'", "type-mismatch", "'x'", "compared with a string", "without quotes"),
    ("s = 5", "type-mismatch", "5", "s is a string, compared with an integer", "'5'"),
    ("s IN ('a', 5)", "type-mismatch", "5", "s is a string, compared with an integer", "'5'"),
    ("b = 1", "type-mismatch", "1", "b is a boolean, compared with an integer", None),
    ("i = TRUE", "type-mismatch", "TRUE", "i is an integer, compared with a boolean", None),
    ("s = b", "type-mismatch", "s = b", "they cannot be compared", None),
    ("dt = ts", "type-mismatch", "dt = ts", "they cannot be compared", None),
    ("array_contains(n, 'x')", "type-mismatch", "'x'", "compared with a string", "without quotes"),
    ("1 = 'x'", "type-mismatch", "1 = 'x'", "cannot be compared", None),
    # NULL is no value.
    ("i = NULL", "null-literal", "NULL", "never be true", "IS NULL"),
    ("NULL = i", "null-literal", "NULL", "never be true", "IS NULL"),
    ("i <> NULL", "null-literal", "NULL", "never be true", "IS NULL"),
    ("i <=> NULL", "null-literal", "NULL", "never be true", "IS NULL"),
    ("i IN (1, NULL)", "null-literal", "NULL", "never be true", "IS NULL"),
    ("i NOT IN (NULL)", "null-literal", "NULL", "never be true", "IS NULL"),
    ("i BETWEEN NULL AND 5", "null-literal", "NULL", "never be true", "IS NULL"),
    ("i NOT BETWEEN 5 AND NULL", "null-literal", "NULL", "never be true", "IS NULL"),
    ("array_contains(tags, NULL)", "null-literal", "NULL", "never be true", "IS NULL"),
    ("arrays_overlap(tags, array('a', NULL))", "null-literal", "NULL", "never", "IS NULL"),
    ("s LIKE NULL", "null-literal", "NULL", "never be true", "IS NULL"),
    ("NULL", "null-literal", "NULL", "never be true", "IS NULL"),
    ("NULL AND b", "null-literal", "NULL", "never be true", "IS NULL"),
    # Integers are exact: no doubles, nothing outside 64 bits.
    ("i = 9007199254740992D", "type-mismatch", "9007199254740992D", "a double", "plain number"),
    ("i = 1e3", "type-mismatch", "1e3", "compared with a double", "1000"),
    ("i = 1.5F", "type-mismatch", "1.5F", "compared with a float", "1.5"),
    ("i = 9223372036854775808", "bad-number", "9223372036854775808", "64 bits", "1e30"),
    ("i < -9223372036854775809.5", "type-mismatch", "-9223372036854775809.5", "64 bits", None),
    ("m = 1.5D", "type-mismatch", "1.5D", "m is a decimal(10,2)", "plain number: 1.5"),
    ("f = 0.1D", "type-mismatch", "0.1D", "f is a float, compared with a double", "0.1F"),
    ("f = 1e39BD", "bad-number", "1e39BD", "more than 38 digits", "write a double as"),
    ("f < 340282350000000000000000000000000000000.0", "bad-number", None, "more than 38", None),
    ("m = 0.0000000000000000000000000000001", "type-mismatch", None, "more than 38 digits", None),
    ("m IN (1e29BD, 0.0000000001)", "type-mismatch", None, "the list together need", None),
    ("1e-38BD = 0BD", "type-mismatch", "1e-38BD = 0BD", "more than 38 digits", None),
    ("5 BETWEEN i AND d", "type-mismatch", None, "of different types", "two comparisons"),
    ("'2024-01-15' BETWEEN dt AND ts", "type-mismatch", None, "of different types", None),
    # Dates and timestamps are strict.
    ("dt = '2024-01-15 10:00:00'", "type-mismatch", "'2024-01-15 10:00:00'", "not a date", None),
    ("dt = '2024-02-30'", "type-mismatch", "'2024-02-30'", "not a date of the calendar", None),
    ("dt = 20240115", "type-mismatch", "20240115", "compared with an integer", "DATE '"),
    ("dt = TIMESTAMP '2024-01-15'", "type-mismatch", None, "compared with a timestamp", "DATE '"),
    ("dt = DATE '2024-1-5'", "bad-literal", "DATE '2024-1-5'", "write YYYY-MM-DD", None),
    ("ts = '2024-01-15 10:00:00.1234567'", "type-mismatch", None, "six fractional digits", None),
    ("ts = '2024-01-15T10:00:00+19:00'", "type-mismatch", None, "not an instant", None),
    ("ts = 'noon'", "type-mismatch", "'noon'", "not a timestamp", None),
    # Names are case-sensitive, and known.
    ("COUNTRY = 'FR'", "unknown-attribute", "COUNTRY", 'did you mean "country"?', None),
    ("contry = 'FR'", "unknown-attribute", "contry", 'did you mean "country"?', None),
    ("zzz = 1", "unknown-attribute", "zzz", 'unknown attribute "zzz"', None),
    ("user-id = 5", "unknown-attribute", "user", "unknown attribute", "`user-id`"),
    # Arithmetic is exact, or refused.
    ("m / 2 > 1", "type-mismatch", "m / 2", "rounded in Spark", "cast(a AS DOUBLE) / b"),
    ("i / 1.5 > 1", "type-mismatch", "i / 1.5", "rounded in Spark", "cast(a AS DOUBLE) / b"),
    (
        "m * 0.00000000000000000000000000000000001 > 1",
        "type-mismatch",
        None,
        "would round",
        "DOUBLE",
    ),
    (
        "m % 0.00000000000000000000000000000000001 > 1",
        "type-mismatch",
        None,
        "Spark fails for more than 38",
        "DOUBLE",
    ),
    ("i + s > 1", "type-mismatch", "s", "s is a string; + takes numbers", "number + number"),
    ("ts + 1 > ts", "type-mismatch", "ts", "a timestamp; + takes numbers", None),
    ("abs(s) = 1", "type-mismatch", "s", "abs() takes numbers", "abs(number)"),
    ("i > 2 * 3", "type-mismatch", "2 * 3", "is a constant", "write its value: 6"),
    ("i > 1 / 0", "type-mismatch", "1 / 0", "is a constant", None),
    ("round(d, -1) = 1", "type-mismatch", "-1", "0 to 38 digits", None),
    ("round(d, i) = 1", "type-mismatch", "i", "must be a constant", None),
    ("coalesce(i, s) = 1", "type-mismatch", None, "no common type: an integer, a string", None),
    ("coalesce(5, i) = 1", "type-mismatch", None, "is always 5", None),
    ("cast(d AS INT) = 1", "type-mismatch", None, "from double to integer is not exact", "floor()"),
    ("cast(s AS DECIMAL(5,2)) = 1", "type-mismatch", None, "is not exact", None),
    ("cast(i AS NUMERAL) = 1", "bad-type", "NUMERAL", 'unknown type "NUMERAL"', "allowed"),
    ("cast(i DOUBLE) = 1", "unexpected-token", "DOUBLE", "expected AS and a type", None),
    ("cast(i AS 5) = 1", "unexpected-token", "5", "expected the name of a type", None),
    ("date_trunc('decade', ts) = ts", "type-mismatch", "'decade'", "does not know the unit", None),
    ("date_diff(ts, '2024-01-01') = 1", "type-mismatch", None, "a timestamp or a date", None),
    ("-?x > 1", "unexpected-token", None, "expected an attribute after '-'", "0 - ?x"),
    # Strings.
    (
        "s = 'a' 'b'",
        "unexpected-token",
        "'b'",
        "expected AND, OR or the end",
        "are not joined",
    ),
    ('s = "a"', "bad-character", '"', "double quotes", "single quotes: 'a'"),
    ("s = 'a", "unterminated-string", "'a", "not closed", "''"),
    ("s RLIKE '\\d'", "bad-escape", "\\d", "is not an escape", "r'…'"),
    ("s = '\\q'", "bad-escape", "\\q", "is not an escape", "\\\\"),
    ("s = '\\ud800'", "bad-escape", "\\ud800", "is not a character", None),
    # Patterns are read at once.
    ("s LIKE 'a\\\\b'", "bad-pattern", "s LIKE 'a\\\\b'", "comes before 'b'", None),
    ("s LIKE 'a\\\\'", "bad-pattern", "s LIKE 'a\\\\'", "ends in the escape character", None),
    ("s LIKE 'a!b' ESCAPE '!'", "bad-pattern", None, "comes before 'b'", None),
    ("s LIKE 'a' ESCAPE 'ab'", "bad-pattern", "'ab'", "cannot be the escape character", "one"),
    ("s LIKE 'a' ESCAPE ''", "bad-pattern", "''", "cannot be the escape character", "one"),
    ("s LIKE 'a' ESCAPE '%'", "bad-pattern", "'%'", "cannot be the escape character", None),
    ("s LIKE 'a' ESCAPE '_'", "bad-pattern", "'_'", "cannot be the escape character", None),
    ("s LIKE 'a' ESCAPE '😀'", "bad-pattern", "'😀'", "cannot be the escape character", "U+FFFF"),
    ("s LIKE 'aAb' ESCAPE 'A'", "bad-pattern", None, "comes before 'b'", None),
    ("s ILIKE 'a' ESCAPE 'A'", "bad-pattern", "'A'", "of ILIKE", "lower case"),
    ("s ILIKE 'a' ESCAPE 'é'", "bad-pattern", "'é'", "of ILIKE", "lower case"),
    ("s RLIKE '('", "bad-pattern", "s RLIKE '('", "not an RE2 regular expression", None),
    ("s RLIKE r'(a)\\1'", "bad-pattern", None, "not an RE2 regular expression", None),
    ("s RLIKE '(?=a)'", "bad-pattern", None, "not an RE2 regular expression", None),
    ("i LIKE '5%'", "type-mismatch", "i", "i is an integer; LIKE tests a string", None),
    ("contains(tags, 'a')", "type-mismatch", "tags", "contains() tests a string", None),
    # Comparisons do not chain.
    ("i = 5 <> s = 'x'", "chained-comparison", "<>", "cannot be chained", "parentheses"),
    ("1 < i < 5", "chained-comparison", "<", "cannot be chained", "join them with AND"),
    ("i = 5 IS NULL", "chained-comparison", "IS", "cannot be chained", None),
    # Arrays are not compared.
    ("tags = 'a'", "type-mismatch", "tags", "arrays are compared with", "array_contains(tags"),
    ("tags IN ('a')", "type-mismatch", "tags", "arrays are compared with", "array_contains"),
    ("array_contains(s, 'a')", "type-mismatch", "s", "array_contains() tests an array", "s IN"),
    # Conditions are no values, and the other way round.
    ("i", "type-mismatch", "i", "i is an integer, not a condition", "i = …"),
    ("5", "not-a-condition", "5", "found the value 5", "compare it"),
    ("NOT 5", "not-a-condition", "5", "found the value 5", "compare it"),
    ("(i = 1) < (s = 'x')", "not-a-value", None, "compares values, not conditions", "(p) = (q)"),
    ("i IN (s)", "unexpected-token", "s", "expected a constant in the IN list", None),
    ("5 IN (5)", "not-an-attribute", "5", "IN tests an attribute, not 5", None),
    ("(i = 1) IS NULL", "not-an-attribute", "(i = 1)", "IS NULL tests an attribute", None),
    ("b IS TRUE", "unsupported-syntax", "TRUE", "IS TRUE is not supported", "alone"),
    # SQL that is not in the language.
    ("i IN ()", "unexpected-token", ")", "expected a constant in the IN list", None),
    ("i = 5 AND", "unexpected-token", None, "found the end", None),
    ("i = 5 x", "unexpected-token", "x", "expected AND, OR or the end", None),
    ("i = 5 ANDD b", "unexpected-token", "ANDD", "did you mean AND?", None),
    ("b -- comment", "unsupported-syntax", "--", "comments", None),
    ("b /* comment */", "unsupported-syntax", "/*", "comments", None),
    ("b; DROP TABLE x", "unsupported-syntax", ";", "one expression only", None),
    ("i IN (SELECT 1)", "unsupported-syntax", "SELECT", "subqueries", "`SELECT`"),
    ("exists(b)", "unsupported-syntax", "exists", "EXISTS is not", "b IS NOT NULL"),
    ("EXISTS (SELECT 1)", "unsupported-syntax", "EXISTS", "EXISTS is not", "subqueries"),
    ("items.sku = 'x'", "type-mismatch", "items.sku", "is an array of structs", "exists(items"),
    ("items.skv = 'x'", "unknown-attribute", "items.skv", "no field skv", "known: price, sku"),
    ("exists(items, i -> i.skv = 'x')", "unknown-attribute", "i.skv", "i.skv", None),
    ("exists(items, i -> i = 'x')", "unknown-attribute", "i", "contains i.", None),
    ("array_contains(items, 'x')", "type-mismatch", None, "struct", None),
    ("element_at(items, 1) = 'x'", "type-mismatch", None, "element_at", None),
    (
        "items.tags IS NULL AND array_contains(items.tags, 'x')",
        "type-mismatch",
        "items.tags",
        "array of arrays",
        "exists(items, x -> array_contains(x.tags, …))",
    ),
    ("size(i) = 1", "type-mismatch", "i", "size() takes an array", "ARRAY<STRING>"),
    ("element_at(tags, 0) = 'a'", "type-mismatch", "0", "count from 1", None),
    ("element_at(tags, i) = 'a'", "type-mismatch", "i", "must be a constant", "element_at(array"),
    ("element_at(tags, 1) = 5", "type-mismatch", "5", "is a string", None),
    ("exists(tags, t = 'x')", "unexpected-token", "=", "expected '->'", "exists(attribute"),
    ("exists(tags, 5)", "unexpected-token", "5", "expected a name and ->", "exists(attribute"),
    ("exists(tags, in -> b)", "unexpected-token", "in", "expected a name before ->", "`in`"),
    ("exists(tags, t -> 5)", "not-a-condition", "5", "expected a condition", None),
    ("exists(i, t -> t = 1)", "type-mismatch", "i", "exists() tests an array", None),
    ("forall(tags, t -> t = 5)", "type-mismatch", "5", "t is a string", None),
    ("exists(tags, t -> t = s)", "type-mismatch", "s", "only use the element, t", "outside"),
    ("exists(tags, t -> t.u = 'x')", "unknown-attribute", "t.u", "lies inside t", None),
    ("exists(tags, t -> @a)", "type-mismatch", "@a", "only use the element", "outside"),
    ("exists(tags, t -> f(t))", "type-mismatch", "f(t)", "only use the element", "outside"),
    ("exists(tags, t -> ?x = t)", "type-mismatch", "?x", "only use the element", "outside"),
    ("exists(tags, t -> t = 'x') IS NULL", "not-an-attribute", None, "IS NULL tests", None),
    ("b = array(1, 2)", "type-mismatch", "array(1, 2)", "with an array", None),
    ("lower(i) = 'a'", "type-mismatch", "i", "lower() takes a string", "i string"),
    ("length(length(s)) = 1", "type-mismatch", "length(s)", "is an integer", None),
    ("hour(s) = 1", "type-mismatch", "s", "hour() takes a timestamp", "s timestamp"),
    ("year(i) = 1", "type-mismatch", "i", "takes a timestamp or a date", None),
    ("substring(s, i) = 'a'", "type-mismatch", "i", "must be a constant", "substring(string"),
    ("substring(s, 'x') = 'a'", "type-mismatch", "'x'", "takes an integer", "substring(string"),
    ("substring(s, 3000000000) = 'a'", "type-mismatch", "3000000000", "too large", None),
    ("split_part(s, ',', 0) = 'a'", "type-mismatch", "0", "counts from 1", None),
    ("concat(s) = 'a'", "wrong-arity", None, "does not take 1 argument", "concat(string"),
    ("concat(s, i) = 'a'", "type-mismatch", "i", "concat() takes a string", None),
    ("lower('A') = s", "type-mismatch", "lower('A')", "is a constant", "'a'"),
    ("lower(s, 1) = 'a'", "wrong-arity", None, "does not take 2 arguments", "lower(string)"),
    ("lower() = 'a'", "unexpected-token", ")", "expected", "lower(string)"),
    ("lower(s = 'a') = 'a'", "not-an-attribute", None, "lower() tests an attribute", None),
    ("lower(s)", "type-mismatch", "lower(s)", "not a condition", None),
    ("lower(s) = 5", "type-mismatch", "5", "lower(s) is a string", None),
    ("length(s) = 'x'", "type-mismatch", "'x'", "length(s) is an integer", None),
    ("array_contains(lower(s), 'a')", "type-mismatch", None, "tests an array", None),
    ("zzz = 'a' AND lower(zzy) = 'a'", "unknown-attribute", "zzz", "unknown", None),
    ("s = 'a' AND lower(zzy) = 'a'", "unknown-attribute", "zzy", "unknown", None),
    ("s LIKE ('a', 'b')", "unexpected-token", "(", "pattern in quotes", "LIKE ANY"),
    ("s LIKE ANY 'a'", "unexpected-token", "'a'", "expected '('", None),
    ("s LIKE ANY ()", "unexpected-token", ")", "pattern in quotes", None),
    ("s LIKE ANY ('a', 5)", "unexpected-token", "5", "pattern in quotes", None),
    ("s LIKE ANY ('a') ESCAPE '!'", "unsupported-syntax", "ESCAPE", "ESCAPE", "backslash"),
    ("s RLIKE ALL ('a', '(')", "bad-pattern", None, "RE2", None),
    ("i LIKE ANY ('a')", "type-mismatch", "i", "LIKE tests a string", None),
    ("b = (1, 2)", "unexpected-token", ",", "after IN", "name IN ('a', 'b')"),
    ("CASE WHEN b THEN b END", "unsupported-syntax", "CASE", "CASE is not supported", None),
    ("cast = 5", "unsupported-syntax", "cast", "CAST is followed by a value", "`cast`"),
    ("s REGEXP 'a'", "unsupported-syntax", "REGEXP", "write RLIKE", None),
    ("s = '${x}' AND ${y}", "unsupported-syntax", "${", "substitution", None),
    ("!b", "bad-character", "!", "not an operator", "write NOT"),
    ("b && b", "bad-character", "&", "not an operator", "write AND"),
    ("b || b", "bad-character", "|", "not an operator", "write OR"),
    ("b XOR b XNOR b", "ambiguous", None, "cannot be mixed", "xnor(p, q, r)"),
    ("b XNOR b XNOR b", "ambiguous", None, "XNOR chained", "xnor(p, q, r)"),
    ("xor(b)", "wrong-arity", "xor(b)", "two conditions or more", "xor(condition"),
    ("at_least(3, b, b)", "bad-count", "3", "k must be 1 to their number", None),
    ("at_least(0, b, b)", "bad-count", "0", "k must be 1 to", None),
    ("at_least(1.5, b, b)", "bad-count", "1.5", "a whole number", None),
    ("at_least(b, b)", "unexpected-token", "b", "expected a whole number, the count", "at_least(k"),
    ("contains(s, s)", "unexpected-token", "s", "expected text in quotes", "contains(attribute"),
    ("startwith(s, 'a')", "unknown-function", "startwith(s, 'a')", "startswith", "startswith("),
    ("java_method('a', 'b')", "unknown-function", None, "unknown function", "tamis.operator"),
    ("matches(s, '...')", "no-words", "matches(s, '...')", "has no word", "standard"),
    ("matches_phrase(s, '')", "no-words", "matches_phrase(s, '')", "has no word", None),
    ("matches_at_least(3, s, 'a b A')", "bad-count", None, "of 2 words", "count once"),
    ("matches_at_least(2, s, 'a A')", "bad-count", None, "of 1 word;", "count once"),
    ("matches(i, 'a')", "type-mismatch", "i", "matches() searches strings", None),
    ("?x > 5", "unbound-variable", "?x", "no operator binds ?x", "p(?x) AND"),
    ("and = 5", "unexpected-token", "and", "expected a condition or a value", None),
    ("a.and = 5", "unexpected-token", "and", "expected a name", "`and`"),
    ("0x1F = i", "bad-number", "0x1F", "is not a number", None),
    ("1.2.3 = m", "bad-number", "1.2.3", "is not a number", None),
]


@pytest.mark.parametrize(
    ("text", "code", "underlined", "message", "hint"), REFUSED, ids=[case[0] for case in REFUSED]
)
def test_refused(text, code, underlined, message, hint):
    error = refusal(text)
    assert error.code == code
    assert message in error.message
    if underlined is not None:
        assert text[slice(*error.span)] == underlined
    if hint is not None:
        assert hint in error.hint


# text, an event, what it means
ACCEPTED = [
    # NaN equals itself and is above everything: NOT (x < 1) is x >= 1.
    ("d > 1e308", {"d": float("nan")}, True),
    ("NOT d < 1", {"d": float("nan")}, True),
    ("d <> 5", {"d": float("nan")}, True),
    ("d = 0", {"d": -0.0}, True),
    ("d >= 0", {"d": -0.0}, True),
    ("d IN (0.0)", {"d": -0.0}, True),
    # A constant takes the attribute's type.
    ("d = 1.5", {"d": 1.5}, True),
    ("d = 5", {"d": 5.0}, True),
    ("f = 0.1", {"f": 0.1}, True),
    ("f = 0.1F", {"f": 0.1}, True),
    ("d = 0.1F", {"d": 0.1}, False),
    ("m = 1.5", {"m": 1.5}, True),
    ("i < 4.5", {"i": 4}, True),
    ("i = 4.0", {"i": 4}, True),
    ("i = 9007199254740993", {"i": 9007199254740992}, False),
    ("dt = '2024-01-15'", {"dt": "2024-01-15"}, True),
    ("ts = '2024-01-15 10:00:00'", {"ts": "2024-01-15T12:00:00+02:00"}, True),
    ("ts >= DATE '2024-01-15'", {"ts": "2024-01-15T00:00:00Z"}, True),
    # A path and a name with a dot in it are two things.
    ("a.b = 1", {"a": {"b": 1}}, True),
    ("`a.b` = '1'", {"a.b": "1"}, True),
    ("a.b = 1", {"a.b": 1}, None),
    # Strings compare by code point, and every space counts.
    ("s = 'CA'", {"s": "CA "}, False),
    ("s < 'a'", {"s": "Z"}, True),
    ("s < '\\U0001F600'", {"s": "\uffff"}, True),
    ("s = 'it''s'", {"s": "it's"}, True),
    ("s = r'\\d'", {"s": "\\d"}, True),
    ("s RLIKE r'\\d'", {"s": "7"}, True),
    ("s RLIKE '\\\\d'", {"s": "7"}, True),
    ("s LIKE 'a\\%b'", {"s": "a%b"}, True),
    ("s LIKE 'a\\%b'", {"s": "axb"}, False),
    ("s LIKE 'a\\\\\\\\b'", {"s": "a\\b"}, True),
    ("s = 'a\\%b'", {"s": "a\\%b"}, True),
    ("s LIKE 'CA'", {"s": "CA "}, False),
    # Arrays with NULLs in them.
    ("array_contains(tags, 'z')", {"tags": ["a", None]}, None),
    ("array_contains(tags, 'a')", {"tags": ["a", None]}, True),
    ("array_contains(tags, 'z')", {"tags": []}, False),
    # A value of the wrong type is no value.
    ("i = 5", {"i": "5"}, None),
    ("i IS NULL", {"i": "5"}, True),
    ("s = '5'", {"s": 5}, None),
    # Declared but absent.
    ("i = 5", {}, None),
    ("i IS NULL", {}, True),
    ("NOT i = 5", {}, None),
]


@pytest.mark.parametrize(("text", "event", "truth"), ACCEPTED, ids=[case[0] for case in ACCEPTED])
def test_accepted(text, event, truth):
    assert evaluate(check(parse(text), SCHEMA), event) is truth


@pytest.mark.parametrize(
    ("one", "other", "constant", "n_digits"),
    [
        ((38, 0), (38, 0), "1" * 38 + "BD", 38),
        ((30, 8), (30, 0), "1" * 30 + "BD", 38),
        ((30, 8), (31, 0), "1" * 31 + "BD", 39),
        ((10, 2), (38, 35), "0." + "1" * 31, 39),
        ((38, 37), (1, 0), "1.1", 38),
    ],
)
def test_decimals_that_meet_have_38_digits_together(one, other, constant, n_digits):
    """Spark would round where there are more."""
    schema = Schema.of(f"m DECIMAL{one}, n DECIMAL{other}")
    texts = ["m = n", "n < m", f"m = {constant}"]
    for text in texts if n_digits > 38 else ():
        with pytest.raises(ExpressionError, match="more than 38 digits"):
            check(parse(text), schema)
    for text in texts if n_digits <= 38 else ():
        check(parse(text), schema)


def test_remainders_of_decimals_whose_quotient_has_38_digits():
    """Spark raises an error in the query if the quotient has more."""
    schema = Schema.of("m DECIMAL(38, 4), n DECIMAL(18, 4), o DECIMAL(18, 5)")
    typed = check(parse("m % n = 0.0001"), schema)
    largest = Decimal("9" * 34 + ".9999")
    assert evaluate(typed, {"m": largest, "n": Decimal("0.0007")}) is True  # 10^38 % 7 is 2
    with pytest.raises(ExpressionError, match="up to 39 digits"):
        check(parse("m % o = 0"), schema)
