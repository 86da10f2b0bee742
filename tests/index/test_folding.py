"""The index folds as the canonical form does: the same verdicts, the same sharing."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.language import Schema, check, parse
from tamis.logic.canonical import canonicalize
from tamis.logic.evaluate import Missing, evaluate
from tamis.logic.leaves import FALSE, TRUE
from tamis.match.build import build
from tamis.match.index import Index
from tests.effort import examples

SCHEMA = Schema.of(
    "a BIGINT, x DOUBLE, s STRING, b BOOLEAN, "
    "d DATE, t TIMESTAMP, m DECIMAL(9,2), f FLOAT, c BIGINT"
)
# The parser reads all of them, the fast reader only these.
PLAIN = {"a": 4, "x": 3, "s": 3, "b": 1}
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
ALL = PLAIN | {"b": 2, "d": 3, "t": 2, "m": 3, "f": 2, "c": 1}
SEEDS = st.integers(0, 2**40)


def verdicts(index: Index) -> tuple[list[int], list[int]]:
    """The ordinals of the subscriptions that are never true, and of those that always are."""
    return index.contents.never.tolist(), sorted(index.contents.roots.always.tolist())


def canonical_verdicts(texts: list[str], missing: Missing) -> tuple[list[int], list[int]]:
    """The same, as the canonical forms say."""
    forms = [canonicalize(check(parse(text), SCHEMA), missing) for text in texts]
    never = [at for at, form in enumerate(forms) if form == FALSE]
    return never, [at for at, form in enumerate(forms) if form == TRUE]


# ── random conditions ───────────────────────────────────────────────────────────────────────


def random_constant(rng: Random, name: str) -> str:
    number = rng.randint(-2, 3)
    match name:
        case "s":
            return f"'{'abcdef'[number + 2]}'"
        case "b":
            return rng.choice(("TRUE", "FALSE"))
        case "d":
            return f"DATE '2024-01-0{number + 3}'"
        case "t":
            return f"TIMESTAMP '2024-01-01 00:00:00.00000{number + 3}'"
        case "m":
            return rng.choice((f"{number}", f"{number}.5", f"{7 * number}.25", "-0.05", "100"))
        case "a" | "c":
            return str(number)
        case _:
            return str(number) if rng.random() < 0.5 else f"{number}.5"


def random_leaf(rng: Random, names: dict[str, int] = PLAIN) -> str:
    name = rng.choices(list(names), list(names.values()))[0]
    if (name == "b" and names is PLAIN) or rng.random() < 0.15:
        return f"{name} IS {rng.choice(('', 'NOT '))}NULL"
    if name == "c":
        return f"{rng.choice('ac')} {rng.choice(OPERATORS)} {rng.choice('ac')}"

    def constant() -> str:
        return random_constant(rng, name)

    match rng.randrange(5 if name == "s" else 4):
        case 0 | 1:
            return f"{name} {rng.choice(OPERATORS)} {constant()}"
        case 2:
            members = ", ".join(constant() for _ in range(rng.randint(1, 4)))
            return f"{name} {rng.choice(('', 'NOT '))}IN ({members})"
        case 3:
            return f"{name} {rng.choice(('', 'NOT '))}BETWEEN {constant()} AND {constant()}"
        case _:
            function = rng.choice(("startswith", "contains", "endswith"))
            return f"{rng.choice(('', 'NOT '))}{function}(s, {constant()})"


def random_text(rng: Random, depth: int, names: dict[str, int] = PLAIN) -> str:
    if depth == 0 or rng.random() < 0.1:
        return random_leaf(rng, names)
    operands = [f"({random_text(rng, depth - 1, names)})" for _ in range(rng.randint(2, 4))]
    match rng.randrange(12):
        case 0:
            return f"at_least({rng.randint(1, len(operands))}, {', '.join(operands)})"
        case 1:
            return f"xor({', '.join(operands)})"
        case 2:
            return f"NOT {operands[0]}"
        case number:
            return (" AND " if number % 2 else " OR ").join(operands)


@pytest.mark.parametrize("missing", Missing)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("names", [PLAIN, ALL])
@given(seed=SEEDS)
@settings(max_examples=examples(8))
def test_verdicts_are_the_canonical_ones(missing, depth, names, seed):
    rng = Random(seed)
    texts = [random_text(rng, depth, names) for _ in range(80)]
    index = build(dict(enumerate_ids(texts)), SCHEMA, missing=missing)
    assert not index.rejects
    found, canonical = verdicts(index), canonical_verdicts(texts, missing)
    for own, known, verdict in zip(found, canonical, (False, True), strict=True):
        assert set(known) <= set(own)
        for at in set(own) - set(known):
            # The index folds each side of XOR by itself, where only TRUE counts.
            assert "xor" in texts[at], texts[at]
            assert_verdict(texts[at], missing, verdict, rng)


def assert_verdict(text: str, missing: Missing, is_always: bool, rng: Random) -> None:
    """The reference evaluator agrees that a condition is always true, or never."""
    condition = check(parse(text), SCHEMA)
    events = [{}, *(random_event(rng) for _ in range(300))]
    answers = {evaluate(condition, event, missing) is True for event in events}
    assert answers == {is_always}, text


@pytest.mark.parametrize("missing", Missing)
@given(seed=SEEDS)
@settings(max_examples=examples(8))
def test_both_readers_share_nodes(missing, seed):
    """A condition of AND and OR read by both ways is one node."""
    rng = Random(seed)
    texts = []
    while len(texts) < 60:
        text = random_text(rng, 2)
        if "xor" not in text:
            texts.append(text)
    # A comparison of constants is the parser's: it takes the second half.
    left = [f"({text}) AND 1 = 1" for text in texts]
    index = build(dict(enumerate_ids(texts + left)), SCHEMA, missing=missing)
    roots, n_texts = index.contents.roots, len(texts)
    node_of = {}
    for at, node in enumerate(roots.nodes.tolist()):
        for ordinal in roots.subscriptions[
            roots.subscription_starts[at] : roots.subscription_starts[at + 1]
        ].tolist():
            node_of[ordinal] = node
    for at in range(n_texts):
        assert node_of.get(at) == node_of.get(at + n_texts), texts[at]


@pytest.mark.parametrize("missing", Missing)
@pytest.mark.parametrize("names", [PLAIN, ALL])
@given(seed=SEEDS)
@settings(max_examples=examples(8))
def test_answers_are_the_reference_ones(missing, names, seed):
    rng = Random(seed)
    texts = [random_text(rng, rng.randint(1, 3), names) for _ in range(80)]
    index = build(dict(enumerate_ids(texts)), SCHEMA, missing=missing)
    events = [random_event(rng) for _ in range(40)]
    conditions = [check(parse(text), SCHEMA) for text in texts]
    matched = index.match_lists(events).to_pylist()
    for event, found in zip(events, matched, strict=True):
        expected = [
            str(at)
            for at, condition in enumerate(conditions)
            if evaluate(condition, event, missing) is True
        ]
        assert sorted(found) == sorted(expected), event


def random_event(rng: Random) -> dict:
    drawn = {
        "a": rng.randint(-3, 4),
        "x": rng.choice((-2.5, -1.0, 0.0, 0.5, 2.5, 3.0, float("nan"))),
        "s": rng.choice(("", "a", "b", "cd", "f", "g")),
        "b": rng.random() < 0.5,
        "d": date(2024, 1, rng.randint(1, 7)),
        "t": datetime(2024, 1, 1, microsecond=rng.randint(0, 7), tzinfo=UTC),
        "m": Decimal(rng.choice(("-14.25", "-2", "-0.05", "0", "0.5", "7.25", "100"))),
        "f": rng.choice((-2.5, -1.0, 0.0, 0.5, 2.5, 3.0, float("nan"))),
        "c": rng.randint(-3, 4),
    }
    return {name: value for name, value in drawn.items() if rng.random() < 0.8}


def enumerate_ids(texts: list[str]) -> list[tuple[str, str]]:
    return [(str(at), text) for at, text in enumerate(texts)]


# ── what is folded, one by one ──────────────────────────────────────────────────────────────

NEVER = [
    "a = 1 AND a = 2",
    "a < 1 AND a > 5",
    "a > 4 AND a < 5",
    "a IN (1, 2) AND a = 3",
    "a IN (1, 2) AND a <> 1 AND a NOT IN (2, 3)",
    "a = 1 AND a > 1",
    "x <= 1 AND x > 1",
    "s = 'a' AND s = 'b'",
    "s < 'a' AND s > 'b'",
    "s = 'zz' AND s < 'z'",
    "a BETWEEN 5 AND 1",
    "b IS NULL AND b IS NOT NULL",
    "a = 1 AND (a = 2 OR a = 3) AND a IN (1, 2)",
    "b = TRUE AND b = FALSE",
    "b <> TRUE AND b <> FALSE",
    "d > DATE '2024-01-02' AND d < DATE '2024-01-03'",
    "m > 9.5 AND m < 10.25 AND m = 10.5",
    "m < -10 AND m > -9.75",
    "xor(1 = 1, 2 = 2)",
]
NEVER_IN_BOTH = [
    "a IS NULL AND a < c",
    "c IS NULL AND a = c",
    "a IS NULL AND a = 1",
    "a IS NULL AND a > 1",
    "s IS NULL AND contains(s, 'a')",
]
ALWAYS = ["a IS NULL OR a IS NOT NULL", "s IS NULL OR s IS NOT NULL OR contains(s, 'x')"]
ALWAYS_UNDEFINED = ["a IS NULL OR a < 5 OR a > 3", "a IS NULL OR a <> 1 OR a <> 2"]


def test_never_and_always():
    texts = NEVER + NEVER_IN_BOTH + ALWAYS + ALWAYS_UNDEFINED
    index = build(dict(enumerate_ids(texts)), SCHEMA)
    n_never = len(NEVER + NEVER_IN_BOTH)
    assert index.contents.never.tolist() == list(range(n_never))
    assert index.contents.roots.always.tolist() == list(range(n_never, len(texts)))


def test_never_and_always_where_missing_satisfies_negation():
    texts = NEVER_IN_BOTH + ALWAYS + ["a <= 5 AND a > 5"]
    index = build(dict(enumerate_ids(texts)), SCHEMA, missing=Missing.SATISFIES_NEGATION)
    n_never = len(NEVER_IN_BOTH)
    assert index.contents.never.tolist() == [*range(n_never), n_never + 2]
    assert index.contents.roots.always.tolist() == [n_never, n_never + 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = 1 OR a = 2", "a IN (2, 1)"),
        ("a <> 1 AND a <> 2", "a NOT IN (1, 2)"),
        ("a > 3 AND a > 5", "a >= 6"),
        ("a > 3 OR a > 5", "a > 3"),
        ("a >= 5 AND a <= 5", "a = 5"),
        ("a < 5 OR a > 5", "a <> 5"),
        ("a > 3 AND a <> 1", "a > 3"),
        ("a IN (1, 2, 3) AND a > 1 AND a <> 3", "a = 2"),
        ("a = 1 AND a IS NOT NULL", "a = 1"),
        ("a < 5 OR a > 3", "a IS NOT NULL"),
        ("a IS NOT NULL OR a = 1", "a IS NOT NULL"),
        ("s IS NOT NULL OR contains(s, 'x')", "s IS NOT NULL"),
        ("s = 'a' OR s = 'b' OR s > 'ab'", "s = 'a' OR s > 'ab'"),
        ("x = 1 AND (x = 1 OR a = 2)", "x = 1"),
        ("x = 1 OR x = 1 AND a = 2 OR a = 3", "a = 3 OR x = 1"),
        ("b = TRUE OR b = FALSE", "b IS NOT NULL"),
        ("m > 9.5 AND m > 10.25", "m > 10.25"),
        ("m < -9.5 AND m < -10.25", "m < -10.25"),
        ("d >= DATE '2024-01-02' AND d <= DATE '2024-01-02'", "d = DATE '2024-01-02'"),
        ("a < c OR a IS NOT NULL", "a IS NOT NULL"),
        ("xor(a = 1, 1 = 2)", "a = 1"),
        ("xor(a = 1, 1 = 1)", "a <> 1"),
    ],
)
def test_sharing(one, other):
    index = build({"one": one, "other": other}, SCHEMA)
    assert len(index.contents.roots.nodes) == 1


def test_many_values_meet():
    """More values than there is room for at first, on one column and on many."""
    wide = " OR ".join(f"a = {at}" for at in range(2000))
    listed = f"a IN ({', '.join(map(str, range(2000)))})"
    pairs = [f"a = {at} OR a = {at + 7000}" for at in range(3000)]
    subscriptions = {"wide": wide, "listed": listed, **dict(enumerate_ids(pairs))}
    index = build(subscriptions, SCHEMA)
    assert not index.rejects
    assert len(index.contents.nodes.operators) == 0, "each is one test"
    assert set(index.match({"a": 1500})) == {"wide", "listed", "1500"}
    assert set(index.match({"a": 7001})) == {"1"}


def test_many_values_of_parsed_conditions_meet():
    """Room is made for the tests that folding adds, also where it is used up exactly."""
    days = [date.fromordinal(date(2024, 1, 1).toordinal() + at) for at in range(800)]
    pairs = [f"d = DATE '{days[at]}' OR d = DATE '{days[at + 400]}'" for at in range(400)]
    index = build(dict(enumerate_ids(pairs)), SCHEMA)
    assert not index.rejects
    assert len(index.contents.nodes.operators) == 0, "each is one test"
    assert index.match({"d": days[750]}) == ["350"]
