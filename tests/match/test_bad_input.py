"""Input nobody should send: each is answered rightly or refused clearly, and harms nothing else."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.errors import ExpressionError, InputError, TamisError, TamisWarning
from tamis.language import Limits, parse_many
from tamis.language.limits import MAX_DEPTH
from tamis.logic.evaluate import Missing
from tamis.match.build import build
from tamis.match.index import Index
from tamis.operators.registry import Registry, operator
from tests.bounds_checked import run_bounds_checked
from tests.match.engines import ENGINES, Engine, reopened
from tests.match.examples import reference

BIG = Limits(text_length=100_000_000, predicates=10_000_000, in_list=10_000_000)


def assert_agrees(
    texts: dict[str, str],
    schema: Any,
    events: list[dict[str, Any]],
    missing: Missing = Missing.UNDEFINED,
    limits: Limits = BIG,
    engines: tuple[Engine, ...] = ENGINES,
) -> Index:
    """The engines, as built and opened, say what the reference says."""
    index = build(texts, schema, missing=missing, limits=limits)
    assert index.rejects == []
    parsed = parse_many(texts.items(), index.contents.schema, limits)
    truth = reference([row.condition for row in parsed], events, missing)
    with reopened(index) as opened:
        for engine in engines:
            for one in (index, opened):
                assert np.array_equal(engine.ask(one, events), engine.expected(truth)), engine.name
    return index


# ── sets of subscriptions ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("nothing", [{}, [], iter(())])
def test_no_subscription_at_all(nothing):
    index = build(nothing)
    events = [{}, {"a": 1}, {"a": None}]
    with reopened(index) as opened:
        for one in (index, opened):
            assert len(one) == 0
            assert one.match({"a": 1}) == []
            assert one.match_batch(events).num_rows == 0
            assert one.match_batch(events).column_names == ["event_row", "subscription_id"]
            assert one.match_lists(events).to_pylist() == [[], [], []]
            assert one.count_by_subscription(events).tolist() == []
            assert one.count_by_event(events).tolist() == [0, 0, 0]
            assert one.match_batch([], subset=[]).num_rows == 0


def test_one_subscription():
    assert_agrees({"s": "a = 1"}, None, [{"a": 1}, {"a": 2}, {}, {"a": None}])


@pytest.mark.parametrize(
    "text", ["TRUE", "FALSE", "a = 1 OR NOT a = 1 OR a IS NULL", "a < 1 AND a > 2"]
)
@pytest.mark.parametrize("missing", Missing)
def test_only_constants(text, missing):
    assert_agrees({"s": text, "t": text}, "a INT", [{}, {"a": 1}, {"a": 5}] * 200, missing)


def check_identical(n_subscriptions: int, text: str) -> None:
    index = build((f"s{at}", text) for at in range(n_subscriptions))
    assert len(index) == n_subscriptions
    assert index.contents.n_nodes == build({"one": text}).contents.n_nodes
    hit, miss = {"a": 1, "b": 4}, {"a": 3, "b": 4}
    assert len(index.match(hit)) == n_subscriptions
    assert index.match(miss) == []
    events = [hit, miss, {"a": 2, "b": 5, "c": "x"}]
    assert index.count_by_event(events).tolist() == [n_subscriptions, 0, n_subscriptions]
    assert (index.count_by_subscription(events) == 2).all()
    assert index.match_batch(events).num_rows == 2 * n_subscriptions
    assert index.match_lists([hit])[0].as_py() == [f"s{at}" for at in range(n_subscriptions)]
    few = ["s0", f"s{n_subscriptions - 1}"]
    assert index.match_batch(events, subset=few).num_rows == 4


def test_many_identical_ones():
    check_identical(20_000, "a IN (1, 2) AND (b > 3 OR NOT c = 'x')")
    check_identical(3_000, "a IN (1, 2) AND (b > 3 OR NOT c LIKE 'x%')")


@pytest.mark.slow
def test_a_million_identical_ones():
    check_identical(1_000_000, "a IN (1, 2) AND (b > 3 OR NOT c = 'x')")


def test_duplicate_ids_keep_the_first():
    rows = [("a", "x = 1"), ("b", "x = 2"), ("a", "x = 3"), ("c", "x = 4"), ("a", "x ="), ("b", 5)]
    index = build(rows)
    assert index.contents.ids.to_pylist() == ["a", "b", "c"]
    assert [(reject.subscription_id, reject.code) for reject in index.rejects] == [
        ("a", "duplicate-id"),
        ("a", "duplicate-id"),
        ("b", "duplicate-id"),
    ]
    assert [index.match({"x": x}) for x in (1, 2, 3, 4)] == [["a"], ["b"], [], ["c"]]
    for reject in index.rejects:
        assert reject.subscription_id in str(reject)


def test_an_id_whose_first_expression_is_wrong_is_still_taken():
    """The first keeps the id, right or wrong: which one is meant is for the author to say."""
    index = build([("a", "x ="), ("a", "x = 1")])
    assert len(index) == 0
    assert {reject.code for reject in index.rejects} == {"unexpected-token", "duplicate-id"}


WRONG_IDS = [5, None, b"bytes", 1.5, ("a",), [], {}, "\ud800"]
WRONG_TEXTS = [5, None, b"a = 1", 1.5, ("a",), [], {}, "a = '\ud800'", ""]


@pytest.mark.parametrize("wrong", WRONG_IDS, ids=repr)
def test_an_id_is_text(wrong):
    index = build([("before", "a = 1"), (wrong, "a = 1"), ("after", "a = 1")])
    assert index.match({"a": 1}) == ["before", "after"]
    (reject,) = index.rejects
    assert isinstance(reject, ExpressionError)
    assert reject.code == "bad-id"
    assert str(reject)
    with reopened(index) as opened:
        assert opened.match({"a": 1}) == ["before", "after"]


@pytest.mark.parametrize("wrong", WRONG_TEXTS, ids=repr)
@pytest.mark.parametrize("schema", [None, "a INT"])
def test_an_expression_is_text(wrong, schema):
    index = build([("before", "a = 1"), ("wrong", wrong), ("after", "a = 1")], schema)
    assert index.match({"a": 1}) == ["before", "after"]
    (reject,) = index.rejects
    assert reject.subscription_id == "wrong"
    assert reject.code in ("not-text", "bad-character", "empty")


@pytest.mark.parametrize("odd", [" ", "a\nb", "\x00", "é日😀", "x" * 10_000, "null", "'; --"])
def test_any_text_is_an_id(odd):
    index = build({odd: "a = 1", "other": "a = 2"})
    with reopened(index) as opened:
        for one in (index, opened):
            assert one.match({"a": 1}) == [odd]
            assert one.match_batch([{"a": 1}], subset=[odd]).num_rows == 1
            assert one.explain(odd, {"a": 1}).matches


@pytest.mark.parametrize("rows", [5, None, "ab", [5], [("a",)], [("a", "b = 1", 3)]], ids=repr)
def test_rows_that_are_no_pairs(rows):
    with pytest.raises(TamisError, match="subscription"):
        build(rows)


def test_wrong_expressions_harm_no_other():
    right = {f"s{at}": f"a = {at} AND b > {at % 7}" for at in range(300)}
    wrong = {
        "token": ("a = = 1", "unexpected-token", (4, 5)),
        "end": ("a =", "unexpected-token", (3, 4)),
        "character": ("a = 1 ; b = 2", "unsupported-syntax", (6, 7)),
        "string": ("a = 'x", "unterminated-string", (4, 6)),
        "unknown": ("zzz = 1", "unknown-attribute", (0, 3)),
    }
    rows = [*right.items(), *((key, text) for key, (text, _, _) in wrong.items())]
    random.Random(0).shuffle(rows)
    index = build(rows, "a INT, b INT")
    assert set(index.contents.ids.to_pylist()) == set(right)
    found = {reject.subscription_id: (reject.code, reject.span) for reject in index.rejects}
    assert found == {key: (code, span) for key, (_, code, span) in wrong.items()}
    for reject in index.rejects:
        assert reject.text == wrong[reject.subscription_id][0]
        assert reject.to_dict()["subscription_id"] == reject.subscription_id
    for at in (0, 1, 299):
        assert index.match({"a": at, "b": 100}) == [f"s{at}"]


# ── the limits ──────────────────────────────────────────────────────────────────────────────


def nested(depth: int, pattern: str) -> str:
    text = "a = 1"
    for _ in range(depth):
        text = pattern.format(text)
    return text


NESTINGS = ("({})", "NOT {}", "NOT ({})", "b = 2 OR (c = 3 AND ({}))", "a = 2 XOR (b = 1 AND {})")
SMALL = Limits(text_length=300, depth=8, predicates=6, in_list=5, regex_length=10, xor_operands=4)


@pytest.mark.parametrize(
    "limits", [Limits(), Limits(depth=MAX_DEPTH), SMALL], ids=["default", "deepest", "small"]
)
@pytest.mark.parametrize("pattern", NESTINGS)
def test_what_is_too_deep_for_the_parser_is_too_deep_for_the_index(pattern, limits):
    texts = {str(depth): nested(depth, pattern) for depth in range(MAX_DEPTH + 5)}
    assert_same_refusals(texts, limits)


@pytest.mark.parametrize(
    "pieces",
    [
        lambda n: " OR ".join(f"a = {at}" for at in range(n)),
        lambda n: " AND ".join(f"a <> {at}" for at in range(n)),
        lambda n: " XOR ".join(f"a = {at}" for at in range(n)),
        lambda n: f"xor({', '.join(f'a = {at}' for at in range(n))})",
        lambda n: f"a IN ({', '.join(map(str, range(n)))})",
        lambda n: f"NOT a NOT IN ({', '.join('1' * n)})",
        lambda n: f"d RLIKE '{'x' * n}'",
        lambda n: f"d = '{'x' * 50 * n}'",
        lambda n: " " * 50 * n + "a = 1",
        lambda n: f"at_least(1, {', '.join(f'a = {at}' for at in range(n))})",
        lambda n: " OR ".join(f"a BETWEEN {at} AND 9" for at in range(n)),
        lambda n: " AND ".join(f"(a = {at} OR b = {at})" for at in range(n)),
    ],
)
def test_what_is_too_large_for_the_parser_is_too_large_for_the_index(pieces):
    assert_same_refusals({str(n): pieces(n) for n in range(1, 13)}, SMALL)


def assert_same_refusals(texts: dict[str, str], limits: Limits) -> None:
    """The index takes what the parser takes, and refuses the rest with the parser's words."""
    schema = "a INT, b INT, c INT, d STRING"
    index = build(texts, schema, limits=limits)
    parsed = parse_many(texts.items(), index.contents.schema, limits)
    wanted = {row.subscription_id: row.error.to_dict() for row in parsed if row.error}
    assert {error.subscription_id: error.to_dict() for error in index.rejects} == wanted
    assert index.contents.ids.to_pylist() == [key for key in texts if key not in wanted]


@pytest.mark.parametrize("pattern", NESTINGS)
@pytest.mark.parametrize("missing", Missing)
def test_depth_at_the_limit(pattern, missing):
    limits = Limits(depth=MAX_DEPTH)
    texts = {str(depth): nested(depth, pattern) for depth in range(1, MAX_DEPTH)}
    parsed = parse_many(texts.items(), limits=limits)
    taken = [(row.subscription_id, row.text) for row in parsed if row.error is None]
    deepest = dict(taken[-4:])
    events = [{}, {"a": 1}, {"a": 2}, {"a": 1, "b": 1, "c": 3}, {"b": 2}, {"a": None, "c": 3}]
    index = assert_agrees(deepest, "a INT, b INT, c INT", events, missing, limits)
    for event in events:
        key = list(deepest)[-1]
        assert index.explain(key, event).matches == (key in index.match(event))


@pytest.mark.parametrize("missing", Missing)
def test_alternating_parities_stay_small(missing):
    """Where a condition is true and where it is false are two nodes; nested, they stay linear."""
    text = "a = 0"
    for at in range(20):
        text = f"b = {at} XOR (c = {at} AND ({text}))"
    events = [{"a": a, "b": b, "c": c} for a in (0, 1, None) for b in (0, 5) for c in (0, 5, 19)]
    index = assert_agrees({"s": text}, "a INT, b INT, c INT", events, missing, Limits(depth=100))
    assert index.contents.n_nodes < 1_000


@pytest.mark.parametrize("kind", ["OR", "AND"])
def test_a_hundred_thousand_operands(kind):
    operator = {"OR": "=", "AND": "<>"}[kind]
    text = f" {kind} ".join(f"a {operator} {at}" for at in range(100_000))
    pairs = f" {kind} ".join(f"(a {operator} {at} AND b = 1)" for at in range(20_000))
    index = build({"wide": text, "pairs": pairs}, limits=BIG)
    events = [
        {"a": 0},
        {"a": 99_999, "b": 1},
        {"a": 100_000, "b": 1},
        {"a": None},
        {},
        {"a": 5, "b": 1},
    ]
    expected = {
        "OR": [["wide"], ["wide"], [], [], [], ["wide", "pairs"]],
        "AND": [[], ["pairs"], ["wide", "pairs"], [], [], []],
    }[kind]
    with reopened(index) as opened:
        for one in (index, opened):
            assert [sorted(one.match(event)) for event in events] == [sorted(x) for x in expected]
            assert one.count_by_event(events).tolist() == [len(x) for x in expected]


def test_a_wide_expression_is_explained():
    text = " OR ".join(f"a = {at}" for at in range(5_000))
    index = build({"wide": text}, limits=BIG)
    assert index.explain("wide", {"a": 77}).matches
    explanation = index.explain("wide", {"a": 5_000})
    assert len(explanation.changes) == 1
    assert len(explanation.sentence) < 200


@pytest.mark.slow
def test_a_hundred_thousand_different_attributes():
    text = " OR ".join(f"a{at} = 1" for at in range(100_000))
    index = build({"wide": text}, limits=BIG)
    assert index.match({"a77777": 1}) == ["wide"]
    assert index.match({"a77777": 2, "b": 1}) == []
    assert index.count_by_event([{"a0": 1}, {"a99999": 1}, {}]).tolist() == [1, 1, 0]


def test_at_least_of_very_many():
    terms = [f"a{at}" for at in range(1_000)]
    texts = {
        str(k): f"at_least({k}, {', '.join(terms)})"
        for k in (1, 2, 255, 256, 257, 511, 512, 999, 1_000)
    }
    limits = Limits(predicates=10_000)
    schema = dict.fromkeys(terms, "boolean")
    counts = [0, 1, 2, 254, 255, 256, 257, 510, 511, 512, 513, 998, 999, 1_000]
    events = [{name: at < count for at, name in enumerate(terms)} for count in counts]
    index = build(texts, schema, limits=limits)
    for count, event in zip(counts, events, strict=True):
        wanted = {key for key in texts if count >= int(key)}
        assert set(index.match(event)) == wanted
    lists = index.match_lists(events).to_pylist()
    assert [len(found) for found in lists] == [
        sum(count >= int(key) for key in texts) for count in counts
    ]


# ── events ──────────────────────────────────────────────────────────────────────────────────


def test_an_event_with_ten_thousand_attributes():
    event = {f"x{at}": at for at in range(10_000)}
    texts = {str(at): f"x{at} = {at}" for at in range(0, 10_000, 1_000)} | {"no": "x1 = 2"}
    assert_agrees(texts, None, [event, event | {"x0": None}, {}])


def test_ten_thousand_attributes_in_the_index():
    texts = {str(at): f"x{at} = {at} AND NOT x{(at + 1) % 10_000} = 0" for at in range(10_000)}
    index = build(texts)
    everything = {f"x{at}": at for at in range(10_000)}
    assert len(index.match(everything)) == 9_999
    assert index.match({"x5": 5, "x6": 1}) == ["5"]
    assert index.count_by_event([everything, {}, {"x5": 5, "x6": 1}]).tolist() == [9_999, 0, 1]


NUMBERS = [
    *(math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, -5e-324, 1.7976931348623157e308),
    *(
        1,
        -1,
        2**53,
        2**53 + 1,
        2**63 - 1,
        -(2**63),
        2**63,
        -(2**63) - 1,
        2**64,
        10**400,
        -(10**400),
    ),
    *(
        True,
        False,
        "1",
        "",
        None,
        Decimal("0.1"),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("1e400"),
    ),
    *(np.float32(0.1), np.float64("nan"), np.int64(1), np.bool_(True), 1j, b"1", [], {}, object()),
]
CONSTANTS = [
    "0",
    "-0.0",
    "1",
    "0.1",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
]


@pytest.mark.parametrize("type_", ["INT", "DOUBLE", "FLOAT", "DECIMAL(38,2)"])
@pytest.mark.parametrize("missing", Missing)
def test_numbers_at_the_edges(type_, missing):
    texts = {
        f"{operator} {constant}": f"a {operator} {constant}"
        for operator in ("=", "<>", "<", "<=", ">", ">=", "<=>")
        for constant in CONSTANTS
    }
    texts |= {"null": "a IS NULL", "present": "a IS NOT NULL", "self": "a = a", "pair": "a < b"}
    texts |= {"among": "a IN (0, 1, 2.5)", "not-among": "a NOT IN (0, 1, 2.5)"}
    events = [{"a": number, "b": 1} for number in NUMBERS] + [{"a": 1, "b": x} for x in NUMBERS]
    assert_agrees(texts, f"a {type_}, b DOUBLE", events, missing)


STRINGS = [
    *(
        "",
        " ",
        "a",
        "A",
        "\x00",
        "a\x00",
        "\n",
        "é",
        "e\u0301",
        "日本",
        "\U0001f600",
        "\ud800",
        "x\ud800",
    ),
    *("x" * 999_999 + "y", "x" * 10_000, "ab" * 10_000, "%", "_", "\\", "İ", "ß", "ſ", "K"),
]


@pytest.mark.parametrize("missing", Missing)
def test_strings_at_the_edges(missing):
    texts = {
        "empty": "a = ''",
        "not-empty": "a <> ''",
        "above": "a > ''",
        "like-empty": "a LIKE ''",
        "like-all": "a LIKE '%'",
        "like-x": "a LIKE 'x%y'",
        "like-one": "a LIKE '_'",
        "ilike": "a ILIKE 'K%'",
        "not-like": "a NOT LIKE '%x'",
        "contains": "contains(a, 'ba')",
        "contains-empty": "contains(a, '')",
        "startswith": "startswith(a, 'xxxxxxxxxx')",
        "endswith": "endswith(a, 'xy')",
        "rlike": "a RLIKE 'y$'",
        "rlike-empty": "a RLIKE ''",
        "in": "a IN ('', 'a', '日本')",
        "not-in": "a NOT IN ('', 'a', '日本')",
        "long": f"a = '{'x' * 60_000}'",
        "pair": "a <= b",
        "null": "a IS NULL",
    }
    events = [{"a": text, "b": "x"} for text in STRINGS] + [{"a": 1}, {"a": b"x"}, {}, {"a": None}]
    assert_agrees(texts, "a STRING, b STRING", events, missing, engines=ENGINES[:2])


def test_a_megabyte_as_a_constant():
    long = "x" * 1_000_000
    texts = {
        "=": f"a = '{long}'",
        "like": f"a LIKE '{long}%'",
        "contains": f"contains(a, '{long}')",
    }
    events = [{"a": long}, {"a": long + "y"}, {"a": "y" + long}, {"a": "x"}]
    assert_agrees(texts, "a STRING", events, engines=ENGINES[:2])


@pytest.mark.parametrize("missing", Missing)
def test_null_everywhere(missing):
    texts = {
        "eq": "a = 1",
        "ne": "a <> 1",
        "not": "NOT (a = 1 OR g.b > 2)",
        "null": "a IS NULL AND g.b IS NULL",
        "like": "NOT s LIKE 'x%'",
        "array": "NOT array_contains(t, 1)",
        "safe": "a <=> 1",
        "pair": "a <=> g.b",
        "xor": "a = 1 XOR g.b = 1",
        "count": "at_least(2, a IS NULL, g.b IS NULL, s IS NULL)",
    }
    events = [
        {},
        {"a": None, "g": None, "s": None, "t": None},
        {"g": {"b": None}},
        {"g": {}},
        {"g": 5},
        {"g": []},
        {"t": [None]},
        {"t": []},
        {"t": [None, 1]},
        {"t": [None, 2]},
        {None: None},
        {"": None},
        {"a": 1},
    ]
    assert_agrees(texts, "a INT, g.b INT, s STRING, t ARRAY<INT>", events, missing)


def test_unknown_attributes_change_nothing():
    index = build({"s": "a = 1"})
    noise = {f"x{at}": at for at in range(50)} | {"A": 1, "a.b": 1, "": 1, 5: 5, None: 1}
    assert index.match({"a": 1} | noise) == ["s"]
    assert index.match({"a": 2} | noise) == []
    assert len(index.encode([{"a": 1} | noise]).rejects) == 0


@pytest.mark.parametrize(
    "value", [datetime.max, datetime.min, datetime.max.replace(tzinfo=UTC), "9999-12-31"]
)
def test_the_ends_of_time(value):
    texts = {
        "<": "t < TIMESTAMP '2024-01-01 00:00:00'",
        ">=": "t >= TIMESTAMP '9999-12-31 00:00:00'",
    }
    assert_agrees(texts, "t TIMESTAMP", [{"t": value}])


NO_MAPPINGS = [5, 1.5, [1], [("a", 1)], {"a"}, ..., ()]


@pytest.mark.parametrize("event", [None, "a", b"a", *NO_MAPPINGS], ids=repr)
def test_one_event_is_a_mapping(event):
    index = build({"s": "a = 1", "t": "a IS NULL"})
    with pytest.raises(TamisError, match="event"):
        index.match(event)
    assert index.match({"a": 1}) == ["s"], "an error leaves nothing behind"


@pytest.mark.parametrize("event", NO_MAPPINGS, ids=repr)
def test_what_is_no_mapping_among_many_is_set_aside(event):
    """It is counted, it is an error when that is asked for, and it harms no other event."""
    index = build({"s": "a = 1", "t": "a IS NULL"})
    events = [{"a": 1}, event, *[{"a": 1}] * 600, {}]
    batch = index.encode(events)
    assert len(batch.rejects) == 1
    (reject,) = batch.rejects
    assert (reject.row, reject.attribute) == (1, None)
    assert index.match_lists(batch).to_pylist() == [["s"], [], *[["s"]] * 600, ["t"]]
    with pytest.raises(InputError, match="row 1: an event is a mapping"):
        index.encode(events, strict=True)


@pytest.mark.parametrize("events", [None, 5, 1.5, "a", b"a", {"a": 1}, ...], ids=repr)
def test_a_batch_is_a_list_of_events(events):
    index = build({"s": "a = 1"})
    for ask in (index.match_batch, index.match_lists, index.count_by_event, index.encode):
        with pytest.raises(TamisError):
            ask(events)


class Mapping:
    """A mapping that is no dict."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def get(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)

    def keys(self) -> Any:
        return self.values.keys()

    def __iter__(self) -> Any:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def test_other_mappings_are_events_too():
    assert_agrees({"s": "a = 1 AND g.b = 2"}, None, [Mapping(a=1, g=Mapping(b=2)), Mapping(a=1)])


def test_subset_by_tag():
    texts = {str(at): f"a > {at}" for at in range(6)}
    tags = {"0": ["low", "even"], "1": ["low"], "2": ["even"], "4": ["even", "high"], "5": []}
    index = build(texts, tags=tags)
    events = [{"a": 3}, {"a": 10}]
    with reopened(index) as opened:
        for one in (index, opened):
            assert one.tagged("even") == ["0", "2", "4"]
            assert one.tagged("low", "high") == ["0", "1", "4"]
            assert one.tagged() == []
            lists = one.match_lists(events, subset=one.tagged("even")).to_pylist()
            assert lists == [["0", "2"], ["0", "2", "4"]]
            with pytest.warns(TamisWarning, match='no subscription has the tag "none"'):
                none = one.tagged("none")
            assert one.match_lists(events, subset=none).to_pylist() == [[], []]


def test_unknown_ids_in_a_subset():
    index = build({"alert-1": "a = 1"})
    for ask in (index.match_batch, index.match_lists):
        with pytest.raises(InputError, match="alert-2"):
            ask([{}], subset=["alert-1", "alert-2"])


@pytest.mark.slow
def test_kernels_stay_within_their_arrays(tmp_path):
    """All of the above again with every index checked: a wrong one is memory overwritten."""
    run_bounds_checked(__file__, tmp_path)


@pytest.mark.parametrize("missing", ["", "maybe", None, 5])
def test_missing_is_one_of_two(missing):
    with pytest.raises(TamisError, match="missing"):
        build({"s": "a = 1"}, missing=missing)


# ── what an index is asked ──────────────────────────────────────────────────────────────────


def test_events_encoded_by_another_index_are_refused():
    one = tamis.build({"a": "x = 1"})
    other = tamis.build({"b": "name = 'Bob'"})
    encoded = one.encode([{"x": 1}])
    for ask in (other.match_lists, other.match_batch, other.count_by_event):
        with pytest.raises(InputError, match="encoded by another index"):
            ask(encoded)
    assert one.match_lists(encoded).to_pylist() == [["a"]]


@pytest.mark.parametrize("subset", ["ab", [1], [None]])
def test_a_subset_is_a_list_of_ids(subset):
    index = tamis.build({"ab": "x = 1"})
    with pytest.raises(InputError, match=r"list of subscription ids|id must be a string"):
        index.match_lists([{"x": 1}], subset=subset)


@pytest.mark.parametrize("tags", [{"a": "vip"}, {"a": [1]}])
def test_tags_are_lists_of_texts(tags):
    with pytest.raises(InputError, match='tags of subscription "a"'):
        tamis.build({"a": "x = 1"}, tags=tags)
    with pytest.raises(InputError, match="a tag must be a string, not list"):
        tamis.build({"a": "x = 1"}, tags={"a": ["vip"]}).tagged(["vip"])


@pytest.mark.parametrize("subscriptions", [None, 5, "x = 1"])
def test_subscriptions_are_pairs(subscriptions):
    with pytest.raises(InputError, match=r"subscriptions are \{id: expression\}"):
        tamis.build(subscriptions)


def test_times_finer_than_a_microsecond_and_no_times_are_of_the_wrong_type():
    import pandas as pd

    index = tamis.build({"any": "at IS NOT NULL", "none": "at IS NULL"}, "at TIMESTAMP")
    for value in (pd.Timestamp("2024-01-31 10:00:00.000000001"), pd.NaT):
        assert index.match({"at": value}) == ["none"]
        assert index.explain("none", {"at": value}).matches
        assert tamis.evaluate("at IS NULL", {"at": value}, "at TIMESTAMP") is True
    assert index.match({"at": pd.Timestamp("2024-01-31 10:00:00.000001")}) == ["any"]


# ── rows without an event ───────────────────────────────────────────────────────────────────

BROKEN = ['{"a": 1}', "{", "[1]", "{}", "null", None, b"\xff", '{"a": 2}']
GOOD = {0: {"a": 1}, 3: {}, 7: {"a": 2}}
NEGATIVE = {"null": "a IS NULL", "one": "a = 1", "any": "a IS NULL OR a > 0", "op": "agrees()"}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("missing", ["undefined", "satisfies_negation"])
def test_what_is_no_event_matches_nothing(threads, missing):
    registry = Registry()
    operator("agrees()", registry=registry)(lambda event: True)
    texts = NEGATIVE | {"not": "NOT a = 1", "true": "a IS NULL OR a IS NOT NULL"}
    index = tamis.build(texts, missing=missing, operators=registry)
    batch = index.encode(BROKEN * 50)
    expected = [
        sorted(index.match(GOOD[row])) if row in GOOD else [] for row in range(len(BROKEN))
    ] * 50
    assert any("null" in names for names in expected)
    found = index.match_lists(batch, threads=threads).to_pylist()
    assert [sorted(names) for names in found] == expected
    pairs = index.match_batch(batch, threads=threads, bindings=True).to_pylist()
    assert sorted((pair["event_row"], pair["subscription_id"]) for pair in pairs) == [
        (row, name) for row, names in enumerate(expected) for name in names
    ]
    by_event = index.count_by_event(batch, threads=threads).tolist()
    assert by_event == list(map(len, expected))
    by_subscription = index.count_by_subscription(batch, threads=threads).tolist()
    named = dict(zip(index.contents.ids.to_pylist(), by_subscription, strict=True))
    assert named == {name: sum(name in names for names in expected) for name in texts}
    some = index.count_by_event(batch, subset=["null", "op"], threads=threads).tolist()
    assert some == [len({"null", "op"} & set(names)) for names in expected]
    assert len(batch.rejects) == 5 * 50
