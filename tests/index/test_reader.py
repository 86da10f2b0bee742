"""The fast reader: what it reads is what the parser reads; what it cannot, it leaves."""

from __future__ import annotations

import pytest

from tamis.errors import TamisError
from tamis.index.build import CHUNK, build_contents
from tamis.index.kernels import bases, lexer
from tamis.index.reader import Reader
from tamis.language.comparators import Comparator
from tamis.language.limits import DEFAULT_LIMITS
from tamis.language.schema import Schema
from tamis.logic.evaluate import Missing
from tamis.match.build import build

SCHEMA = Schema.of(
    "a INT, s STRING, t STRING, d DOUBLE, `and` INT, `user-id` INT, `Straße und mehr` STRING, "
    "`p.q`.`r s` STRING, p.r INT"
)

READ = [
    "s LIKE 'x%'",
    "s LIKE '%x%'",
    "s LIKE '%x'",
    "s LIKE 'x'",
    "s LIKE 'x_y%%z'",
    r"s LIKE '100\\%'",
    r"s LIKE '100\%'",
    "s LIKE 'it''s%'",
    r"s NOT LIKE '\'%'",
    "s ILIKE '%PowerShell%'",
    r"s ILIKE '%\\\\cmd.exe'",
    "s not ilike 'Ä%ß'",
    "s RLIKE 'a+b'",
    r"s RLIKE r'\d+\.exe'",
    r"s RLIKE R'\d'",
    r"s NOT RLIKE '\\d+'",
    "startswith(s, 'x')",
    "STARTSWITH ( s , 'x' )",
    "EndsWith(s, 'it''s')",
    r"contains(s, '\u00e4\n')",
    "NOT contains(s, 'x') AND NOT (startswith(t, 'y') OR a = 1)",
    "s = 'it''s' OR t IN ('a''b', r'c\\d', '\\t')",
    r"s < '\\' AND s >= '\''",
    "xor(s LIKE 'x%', contains(t, 'y'))",
    "at_least(2, s LIKE 'x%', contains(t, 'y'), a = 1)",
    "`s` LIKE 'x%' OR `a` = 1",
    "`a`=1 AND `a`IN(1,2)OR`t`<'x'",
    "startswith(`s`, 'x') AND `s` IS NOT NULL",
    "`and` = 5 OR `user-id` BETWEEN 1 AND 2",
    "`Straße und mehr` ILIKE '%x%'",
    "`p.q`.`r s` = 'x' AND p.r NOT IN (1, 2)",
    "p.`r` = 1 AND `p`.r = 1",
    "xor(`a` = 1, at_least(1, NOT `and` > 2, (`user-id` = 3)))",
]


@pytest.mark.parametrize("missing", Missing)
@pytest.mark.parametrize("text", READ)
def test_the_parser_reads_the_same(text, missing):
    assert not is_left(text)
    index = build({"read": text, "parsed": f"({text}) AND TRUE"}, SCHEMA, missing=missing)
    assert is_left(f"({text}) AND TRUE")
    assert index.rejects == []
    assert len(index.contents.roots.nodes) == 1, "both stand at one node"


def is_left(text: str) -> bool:
    return bool(Reader(DEFAULT_LIMITS).read([text]).scanned.is_left[0])


@pytest.mark.parametrize(
    "text",
    [
        r"s = '\q'",
        r"s LIKE 'x\q' AND a = 1",
        r"s LIKE '\ud800'",
        "s LIKE 'x' ESCAPE '!'",
        "s LIKE 5",
        "s LIKE 'x' 'y'",
        "s RLIKE r'x''y'",
        "s RLIKE 'open",
        "s RLIKE r'open",
        "startswith(s)",
        "startswith(s, 'x'",
        "startswith(s, 5)",
        "startswith(not, 'x')",
        "startswith('x', s)",
        "starts_with(s, 'x')",
        "s LIKE 'tab\t'",
        "s IS LIKE 'x'",
        "s NOT 'x'",
        "s NOT = 'x'",
        "s NOT IS NULL",
        "`a``b` = 1",  # a backtick in a name
        "`a",
        "`` = 1",
        "`a\tb` = 1",
        "`a` `b` = 1",
        "`a`b = 1",
        "`a`.`` = 1",
        "`lower`(s) = 'x'",
        "startswith(`s, 'x')",
        "p.and = 1",
        "p.null = 1",
        "p.select = 1",
        "contains(p.and, 'x')",
        "contains(`p`.or, 'x')",
        ".".join("a" * 100) + " = 1",
    ],
)
def test_what_is_left_to_the_parser(text):
    assert is_left(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (r"s = '\q'", "bad-escape"),
        (r"a = 1 OR contains(s, '\q')", "bad-escape"),
        (r"s LIKE '\\q'", "bad-pattern"),
        ("s RLIKE '('", "bad-pattern"),
        (f"s RLIKE '{'x' * (DEFAULT_LIMITS.regex_length + 1)}'", "regex-too-long"),
        ("a LIKE 'x'", "type-mismatch"),
        ("nowhere LIKE 'x'", "unknown-attribute"),
        ("startswith(a, 'x')", "type-mismatch"),
        ("p.and = 1", "unexpected-token"),
        ("`a` = 'x'", "type-mismatch"),
        ("`nowhere` = 'x'", "unknown-attribute"),
        ("`a = 1", "bad-name"),
    ],
)
def test_errors_are_the_parsers(text, code):
    index = build({"good": "s LIKE 'x%'", "bad": text, "also good": "contains(s, 'y')"}, SCHEMA)
    assert [(one.subscription_id, one.code) for one in index.rejects] == [("bad", code)]
    assert index.match({"s": "xy"}) == ["good", "also good"]


@pytest.mark.parametrize("text", ["startswith(s, '')", "s LIKE '%'", "NOT contains(s, '')"])
@pytest.mark.parametrize("missing", Missing)
def test_patterns_that_all_texts_fit(text, missing):
    index = build({"s": text}, SCHEMA, missing=missing)
    is_negated = text.startswith("NOT")
    assert bool(index.match({"s": "x"})) == (not is_negated)
    assert bool(index.match({})) == (is_negated and missing is Missing.SATISFIES_NEGATION)


def test_names_in_backticks_are_the_attributes():
    texts = {"1": "`a``b` = 1", "2": "`a b`.c > 1", "3": "x = 1", "4": "`x` = 1", "5": "`x` = 'y'"}
    index = build(texts)
    assert [one.subscription_id for one in index.rejects] == ["5"], "one attribute, one type"
    assert index.match({"a`b": 1, "a b": {"c": 2}, "x": 1}) == ["2", "3", "4", "1"]
    assert len(index.contents.schema) == 3


def test_types_are_inferred_from_patterns():
    index = build({"one": r"s LIKE '\\\\%'", "two": "contains(t, 'x')", "bad": r"u LIKE '\q'"})
    assert str(index.contents.schema.get(("s",))) == "string"
    assert str(index.contents.schema.get(("t",))) == "string"
    assert index.contents.schema.get(("u",)) is None, "what cannot be read has no vote"


def test_rejects_are_in_input_order():
    rows = [
        (7, "a = 1"),
        ("good", "a = 1"),
        ("bad", "a ="),
        ("good", "a = 2"),
        ("worse", "= a"),
        ("fine", "a = 3"),
        ("fine", "a = "),
        ("last", "("),
    ]
    index = build(rows, SCHEMA)
    assert [one.subscription_id for one in index.rejects] == [
        "7",
        "bad",
        "good",
        "worse",
        "fine",
        "last",
    ]
    assert index.contents.ids.to_pylist() == ["good", "fine"]
    assert index.contents.texts.to_pylist() == ["a = 1", "a = 3"]


def test_progress_is_told():
    n_texts = 2 * CHUNK + 5
    collected: list[tuple[int, int | None]] = []
    texts = {str(at): f"a = {at}" for at in range(n_texts)}
    built = build_contents(
        texts, SCHEMA, progress=lambda *so_far: collected.append(so_far), statistics={"events": 5}
    )
    assert collected == [(CHUNK, n_texts), (2 * CHUNK, n_texts), (n_texts, n_texts)]
    assert built.contents.statistics == {"events": 5}


def test_every_code_of_a_test_has_a_form():
    found = {comparator: bases.find_form(comparator.code) for comparator in Comparator}
    assert found == {
        Comparator.EQUAL: (bases.ONE_OF, False),
        Comparator.NOT_EQUAL: (bases.ONE_OF, True),
        Comparator.BELOW: (bases.BELOW, False),
        Comparator.AT_LEAST: (bases.BELOW, True),
        Comparator.AT_MOST: (bases.AT_MOST, False),
        Comparator.ABOVE: (bases.AT_MOST, True),
        Comparator.SAME: (bases.UNREAD, False),
    }
    assert bases.find_form(lexer.NOT_IN_LIST) == (bases.ONE_OF, True)
    assert bases.find_form(lexer.IS_NULL) == (bases.PRESENT, True)
    assert bases.find_form(lexer.CONTAINS) == (bases.MEETS_PATTERN, False)


@pytest.mark.parametrize("code", [-1, lexer.N_TEST_CODES, 255])
def test_an_unknown_code_of_a_test_is_an_error(code):
    with pytest.raises(TamisError, match=f"a test has the code {code}; 0 to"):
        bases.find_form(code)
