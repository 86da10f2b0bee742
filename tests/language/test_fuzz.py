"""Whatever text comes in, only our own error comes out, and soon."""

from __future__ import annotations

import pickle
import re
import signal
from collections import Counter
from contextlib import contextmanager
from random import Random

import pytest

from tamis.errors import ExpressionError
from tamis.language import (
    DEFAULT_LIMITS,
    Limits,
    Schema,
    check,
    infer_schema,
    parse,
    parse_many,
    print_expression,
    print_for_spark,
)
from tamis.language.ast import Matches, leaves
from tamis.logic.evaluate import evaluate
from tests.effort import examples
from tests.generators import random_condition, random_event, random_untyped_condition
from tests.waiting import HANG_SECONDS

SCHEMA = Schema.of(
    "a BOOLEAN, b BOOLEAN, c BOOLEAN, i BIGINT, d DOUBLE, f FLOAT, m DECIMAL(10,2), s STRING, "
    "dt DATE, ts TIMESTAMP, tags ARRAY<STRING>, geo.lat DOUBLE, `user-id` BIGINT"
)
LARGE = Limits(text_length=10**7, predicates=10**6, in_list=10**6, regex_length=10**5)


@contextmanager
def hang_guard(text):
    """Fail, naming the text, when the block does not end."""

    def interrupt(signum, frame):
        raise TimeoutError(f"still busy after {HANG_SECONDS} s: {text[:500]!r}")

    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def run_through(text, rng, limits=DEFAULT_LIMITS):
    """Everything that is done with a text; returns how far it came: an error's code or "ok"."""
    with hang_guard(text):
        try:
            condition = parse(text, limits)
            assert parse(print_expression(condition), limits) == condition
        except ExpressionError as error:
            return inspect(error, text)
        outcomes = []
        for schema in (infer_schema([condition]), SCHEMA):
            try:
                typed = check(condition, schema, limits, text)
            except ExpressionError as error:
                outcomes.append(inspect(error, text))
                continue
            outcomes.append("ok")
            if not any(isinstance(leaf, Matches) for leaf in leaves(typed)):
                assert isinstance(print_for_spark(typed), str)
            for wrong_types in (False, True):
                event = random_event(rng, schema, wrong_types=wrong_types)
                assert evaluate(typed, event) in (True, False, None)
        return "ok" if "ok" in outcomes else outcomes[0]


def inspect(error, text):
    """The error's code, once its place and its pictures are sane."""
    start, end = error.span
    assert 0 <= start <= end <= len(text) + 1
    assert error.line == text.count("\n", 0, start) + 1
    assert "^" in str(error)
    assert len(str(error)) < 2000
    assert error.to_dict()["code"] == error.code
    assert pickle.loads(pickle.dumps(error)).to_dict() == error.to_dict()
    return error.code


def survive(texts, rng):
    """Run all texts through; returns how often each outcome was met."""
    outcomes = Counter()
    for text in texts:
        try:
            outcomes[run_through(text, rng)] += 1
        except Exception as error:
            error.add_note(f"on the text {text!r}")
            raise
    return outcomes


# ── what comes in ───────────────────────────────────────────────────────────────────────────

SPELLINGS = r"""
( ( ) ) , . = <> < <= > >= <=> == != + - * / AND OR NOT XOR XNOR IN IS NULL BETWEEN LIKE ILIKE RLIKE
TRUE FALSE ESCAPE DATE TIMESTAMP array xor xnor at_least contains startswith endswith array_contains
arrays_overlap matches matches_any matches_phrase matches_at_least loc_in select exists case cast
regexp interval a b i d s dt ts tags geo.lat `user-id` `and` ?x 0 1 -1 2.5 1e3 1.5F 2D 3L 4BD
9223372036854775808 1e999 0x1F 1.2.3 'x' '' 'it''s' r'\d' '\n' '\q' '2024-01-15' '2024-13-01' 'a%'
'a\\%' '(' '[a-' '%' ; -- /* */ ${ ! & | ^ "x" ‘x’ ` ' ? % é 日
"""
TOKENS = (
    *SPELLINGS.split(),
    *("\x00", "\ud800", "\u00a0", "\ufeff", "\U0001f600", "\n", "\t", "\r\n"),
    *("IN ()", "= NULL", "1 = 1", "IS NOT NULL", "NOT IN ('x')", "BETWEEN 1 AND 2"),
)


def random_bytes(rng):
    raw = rng.randbytes(rng.randint(0, 60))
    return raw.decode("latin-1") if rng.random() < 0.5 else raw.decode("utf-8", "surrogateescape")


def random_tokens(rng):
    separator = rng.choice((" ", " ", ""))
    return separator.join(rng.choices(TOKENS, k=rng.randint(1, 25)))


def mutated(rng):
    """A valid text with a few things deleted, swapped, doubled or put in."""
    is_typed = rng.random() < 0.5
    text = print_expression(
        random_condition(rng, SCHEMA, 2) if is_typed else random_untyped_condition(rng, 2)
    )
    pieces = list(text) if rng.random() < 0.5 else re.findall(r"\w+|\s+|'[^']*'|.", text, re.DOTALL)
    for _ in range(rng.randint(1, 4)):
        at, other = (rng.randrange(len(pieces) + 1) for _ in range(2))
        match rng.choice(("delete", "swap", "double", "insert", "cut")):
            case "delete":
                del pieces[at : at + rng.randint(1, 3)]
            case "swap" if at < len(pieces) and other < len(pieces):
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case "double":
                pieces[at:at] = pieces[at : at + 4]
            case "insert":
                pieces.insert(at, rng.choice(TOKENS))
            case "cut" if rng.random() < 0.2:
                del pieces[at:]
    return "".join(pieces)


def random_texts(rng, n_texts):
    for _ in range(n_texts):
        yield rng.choice((random_bytes, random_tokens, mutated, mutated))(rng)


def test_random_texts(seed):
    rng = Random(seed)
    outcomes = survive(random_texts(rng, examples(2_000)), rng)
    # The texts are neither all nonsense nor all fine.
    assert outcomes["ok"] > 50
    assert outcomes["unexpected-token"] > 100
    assert len(outcomes) > 12


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_random_texts(seed, part):
    rng = Random(f"{seed}-{part}")
    outcomes = survive(random_texts(rng, 10_000), rng)
    assert outcomes["ok"] > 300


# ── what is made to hurt ────────────────────────────────────────────────────────────────────


def nested(pattern, depth, core="a"):
    """`pattern` put into itself `depth` times."""
    before, after = pattern.split("{}")
    return before * depth + core + after * depth


PATHOLOGICAL = {
    "parentheses": "(" * 10_000 + "a" + ")" * 10_000,
    "open parentheses": "(" * 10_000,
    "closed parentheses": "a" + ")" * 10_000,
    "NOTs": "NOT " * 10_000 + "a",
    "100,000-way OR": " OR ".join(["a"] * 100_000),
    "100,000-way AND of comparisons": " AND ".join(["i = 1"] * 100_000),
    "10,000-term sum": "1 + " * 10_000 + "1 > 2",
    "10,000-term product to the right": nested("(2 * {})", 10_000, "1") + " > 2",
    "sums of sums to the left": nested("({} + 1 + 1) * 2 + 1", 60, "1") + " > 2",
    "1 MB name": "a" * 1_000_000,
    "1 MB string": "s = '" + "x" * 1_000_000 + "'",
    "1 MB of spaces": " " * 1_000_000 + "a",
    "1 MB of line feeds": "\n" * 1_000_000 + "a =",
    "1 MB of quotes": "s = '" + "''" * 500_000,
    "deep at_least": nested("at_least(1, {})", 10_000),
    "deep xor": nested("xor(b, {})", 10_000),
    "deep XNOR by =": nested("(b = {})", 10_000, "(a = b)"),
    "XOR chain": " XOR ".join(["a"] * 10_000),
    "deepest allowed at_least": nested("at_least(1, {})", 63),
    "all connectives to the right": nested("at_least(1, a OR b XOR c AND {})", 60),
    "all connectives to the left": nested("({} AND b XOR c OR b)", 60),
    "= of xor": nested("xor(a, {}) = b", 60),
    "operators in operators": nested("f({})", 60, "1"),
    "giant IN list": "i IN (" + ", ".join(map(str, range(200_000))) + ")",
    "giant array": "arrays_overlap(tags, array(" + ", ".join(["'x'"] * 200_000) + "))",
    "long integer": "i = " + "9" * 60_000,
    "leading zeros": "i = " + "0" * 60_000 + "1",
    "leading zeros, long": "i = -" + "0" * 60_000 + "1L",
    "long decimal": "m = 0." + "1" * 60_000,
    "trailing zeros": "m = 1." + "0" * 60_000,
    "long exponent": "d = 1e" + "9" * 60_000,
    "long decimal exponent": "m = 1e" + "9" * 30 + "BD",
    "long negative exponent": "m = 1e-" + "9" * 30 + "BD",
    "long name": "`" + "x" * 60_000 + "` = 1",
    "backticks": "`" * 60_001,
    "many names": "a" + ".b" * 30_000 + " = 1",
    "backslashes": "s = '" + "\\" * 60_001,
    "minuses": "i = " + "-" * 10_000 + "1",
    "spaced minuses": "i = " + "- " * 10_000 + "1",
    "BETWEENs": "i BETWEEN " * 5_000 + "1",
    "wildcards": "s LIKE '" + "%a" * 30_000 + "'",
    "nested repetition": "s RLIKE '" + "(a+)+" * 100 + "$'",
    "repeated repetition": "s RLIKE '((a{100}){100}){100}'",
    "open groups": "s RLIKE '" + "(" * 1_000 + "'",
    "nested groups": "s RLIKE '" + "(" * 500 + ")" * 500 + "'",
    "long regular expression": "s RLIKE '" + "a" * 50_000 + "'",
}


@pytest.mark.parametrize("text", PATHOLOGICAL.values(), ids=PATHOLOGICAL)
def test_pathological_text(text):
    is_too_long = len(text) > DEFAULT_LIMITS.text_length
    assert (run_through(text, Random(0)) == "text-too-long") == is_too_long


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name, marks=[pytest.mark.slow] if len(text) > 150_000 else [])
        for name, text in PATHOLOGICAL.items()
    ],
)
def test_pathological_text_with_large_limits(text):
    """Where only the depth is limited, as for rule sets known to be large."""
    assert run_through(text, Random(0), LARGE) != "text-too-long"


def test_patterns_stay_fast_on_hostile_values():
    """The value and the pattern that together make a backtracking matcher exponential."""
    value = "a" * 30_000
    for text in (
        "s LIKE '" + "%a" * 200 + "%b'",
        "s ILIKE '" + "_%" * 200 + "b'",
        "s RLIKE '^(a+)+$b'",
        "s RLIKE '(a|aa)+$b'",
        "s RLIKE '^(a?){500}(a){500}b'",
    ):
        with hang_guard(text):
            assert evaluate(check(parse(text), SCHEMA), {"s": value}) is False


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\x00", "bad-character"),
        ("`a\x07` = 1", "bad-character"),
        ("a = '\x07'\x07", "bad-character"),
        ("s = '\ud800'", "bad-character"),
        ("s = ‘x’", "bad-character"),
        ("s = “x”", "bad-character"),
        ('s = "x"', "bad-character"),
        ("a -- comment", "unsupported-syntax"),
        ("a /* comment */", "unsupported-syntax"),
        ("a; DROP TABLE x", "unsupported-syntax"),
        ("i IN (SELECT 1)", "unsupported-syntax"),
        ("EXISTS (SELECT 1)", "unsupported-syntax"),
        ("s = ${env:HOME}", "unsupported-syntax"),
        ("a\u00a0= 1", "bad-character"),
        ("i = \u0661", "bad-character"),
        ("", "empty"),
        (" \n", "empty"),
    ],
)
def test_hostile_character(text, code):
    assert run_through(text, Random(0)) == code


def test_hostile_rows_fail_no_batch(seed):
    rng = Random(seed)
    texts = list(random_texts(rng, 300))
    rows = [(str(number), text) for number, text in enumerate([*texts, None, 5, b"a", ["a"], "a"])]
    parsed = parse_many(rows)
    assert [row.subscription_id for row in parsed] == [row[0] for row in rows]
    assert all((row.condition is None) != (row.error is None) for row in parsed)
    assert [row.error.code for row in parsed[-5:-1]] == ["not-text"] * 4
