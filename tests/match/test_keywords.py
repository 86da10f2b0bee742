"""Keywords and structure together: every engine answers as the reference evaluator."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
import pytest

import tamis
from tamis.errors import IndexFormatError, TypeCheckError
from tamis.index import artefact
from tamis.language import Schema, check, parse, print_expression
from tamis.language.ast import Attribute, Condition, Matches, children
from tamis.logic.canonical import canonicalize
from tamis.logic.evaluate import Missing, evaluate
from tamis.match.build import build
from tamis.text.analysers import analyser_versions
from tests.effort import examples
from tests.generators import random_condition, random_event, random_schema
from tests.leaves import describe_leaf
from tests.match.engines import ENGINES, reopened
from tests.match.examples import RANDOM_EVENTS, Example
from tests.text.texts import random_text, with_wildcards

ANALYSERS = ("standard", "standard", "simple", "english", "keyword", "turkish")
TEXTS = ("title", "body", "note text")  # attributes of text; the first two have one analyser


def draw(seed: int) -> Example:
    """Subscriptions over texts and other attributes, and events whose texts share words."""
    rng = random.Random(seed)
    others = random_schema(rng, 3)
    analyser = rng.choice(ANALYSERS)
    analysers = {"title": analyser, "body": analyser, "note text": rng.choice(ANALYSERS)}
    texts = {(name,): Schema.of(f"x text({analysers[name]})")["x"] for name in TEXTS}
    others = Schema({path: others[path] for path in others if path[0] not in TEXTS})
    schema = Schema({**{path: others[path] for path in others}, **texts})
    pool = [random_text(rng, 6) for _ in range(8)]
    conditions = [
        _with_keywords(
            rng, random_condition(rng, others or schema, rng.choice((0, 1, 2))), schema, pool
        )
        for _ in range(10)
    ]
    events = [_draw_event(rng, others, pool) for _ in range(10)]
    return Example(seed, schema, {f"s{at}": one for at, one in enumerate(conditions)}, events)


def _draw_event(rng, schema, pool):
    event = random_event(rng, schema, wrong_types=rng.random() < 0.3)
    for name in TEXTS:
        share = rng.random()
        if share < 0.7:
            event[name] = " ".join(rng.choices(pool, k=rng.randint(0, 3)))
        elif share < 0.9:
            event[name] = rng.choice((None, "", 5, ["a"], "\ud800"))
    return event


def _with_keywords(rng, node: Condition, schema: Schema, pool) -> Condition:
    """The condition with half of its leaves replaced by keyword queries."""
    if children(node):
        if hasattr(node, "operands"):
            below = tuple(_with_keywords(rng, one, schema, pool) for one in node.operands)
            return replace(node, operands=below)
        return replace(node, operand=_with_keywords(rng, node.operand, schema, pool))
    while rng.random() < 0.7:
        names = rng.choice((("title",), ("body",), ("title", "body"), ("note text",)))
        mode = rng.choice(("all", "any", "phrase", "at_least", "near", "near_in_order"))
        words = rng.choice(pool).split(" ")
        words = words[: rng.randint(1, 4)]
        if rng.random() < 0.4:
            at = rng.randrange(len(words))
            words[at] = with_wildcards(rng, words[at])
        query = " ".join(words)
        k = {"at_least": rng.randint(1, 3), "near": rng.randint(0, 6)}.get(mode, 0)
        k = rng.randint(0, 6) if mode == "near_in_order" else k
        leaf = Matches(mode, tuple(Attribute((name,)) for name in names), query, k)
        try:
            return check(leaf, schema)
        except TypeCheckError:  # no word in it, fewer than k, or hardly more than wildcards
            continue
    return node


@RANDOM_EVENTS
@pytest.mark.parametrize("missing", Missing)
def test_engines_answer_as_the_reference(missing, seed):
    for at in range(examples(15)):
        example = draw(seed + at)
        truth = example.reference(missing)
        index = build(example.texts, example.schema, missing=missing)
        assert index.rejects == []
        for engine in ENGINES:
            found = engine.ask(index, example.events)
            assert (found == engine.expected(truth)).all(), (engine.name, example.seed)
        with reopened(index) as opened:
            for engine in ENGINES[:2]:
                found = engine.ask(opened, example.events)
                assert (found == engine.expected(truth)).all(), (engine.name, example.seed)


@pytest.mark.parametrize("missing", Missing)
def test_canonical_forms_mean_the_same(missing, seed):
    for at in range(examples(30)):
        example = draw(seed + at)
        for condition in example.conditions.values():
            canonical = canonicalize(condition, missing)
            exact = canonicalize(condition, missing, is_exact=True)
            assert canonicalize(canonical, missing) == canonical
            for event in example.events:
                truth = evaluate(condition, event, missing)
                assert evaluate(exact, event, missing) is truth, print_expression(condition)
                assert (evaluate(canonical, event, missing) is True) is (truth is True)


def test_every_layout_of_texts():
    schema = "body TEXT(english), n INT"
    index = build({"s": "matches(body, 'houses') OR matches_phrase(body, 'a b c')"}, schema)
    texts = ["House!", None, "", "x b c", "日本 houses", "a b d"]
    expected = [["s"], [], [], ["s"], ["s"], []]
    for array in (
        pa.array(texts, pa.string()),
        pa.array(texts, pa.large_string()),
        pa.array(texts, pa.string_view()),
        pa.array(texts, pa.string()).dictionary_encode(),
        pa.array(["skipped", *texts], pa.string())[1:],
    ):
        assert index.match_lists(pa.table({"body": array})).to_pylist() == expected, array.type
    rows = [{"body": text} for text in texts]
    assert index.match_lists(rows).to_pylist() == expected
    assert [index.match(row) for row in rows] == expected
    json = pa.table({"event": ['{"body": "my house"}', '{"body": null}']})
    encoded = index.encode(json, column="event")
    assert index.match_lists(encoded).to_pylist() == [["s"], []]


PLAIN = ("matches(body, '{}')", "matches_any(body, '{}')", "matches_phrase(body, '{}')")


def test_plain_queries_are_read_as_the_parser_reads_them(seed):
    rng = random.Random(seed)
    queries = {}
    for at in range(examples(60)):
        query = random_text(rng, 4).replace("'", rng.choice(("", "''", "'")))
        if rng.random() < 0.3:
            query = with_wildcards(rng, query)
        queries[f"s{at}"] = rng.choice(PLAIN).format(query)
    # In parentheses a query is not plain any more, and means the same.
    wrapped = {name: f"({text})" for name, text in queries.items()}
    schema = "body TEXT(english)"
    plain, parsed = build(queries, schema), build(wrapped, schema)
    assert plain.contents.ids.equals(parsed.contents.ids)
    assert [(one.subscription_id, one.code) for one in plain.rejects] == [
        (one.subscription_id, one.code) for one in parsed.rejects
    ]
    events = [{"body": random_text(rng)} for _ in range(40)]
    found = [sorted(row) for row in plain.match_lists(events).to_pylist()]
    assert found == [sorted(row) for row in parsed.match_lists(events).to_pylist()]


@pytest.mark.parametrize(
    "text",
    [
        "matches(and, 'x')",
        "matches(nobody, 'x')",
        "matches(n, 'x')",
        "matches(body, '')",
        "matches(body, 'the')",
        "matches(body, 'x",
        "matches(body, 'a\\qb')",
        "matches(body, 'x'\x00)",
        "matches(body, '" + "x " * 5_000 + "')",
    ],
)
def test_what_the_parser_refuses_is_refused(text):
    index = build({"wrong": text, "right": "matches(body, 'x')"}, "body TEXT(english), n INT")
    assert [one.subscription_id for one in index.rejects] == ["wrong"]
    assert index.match({"body": "x", "n": 5}) == ["right"]


def test_a_control_character_parts_words():
    index = build({"s": "matches(body, 'x\x00y')"}, "body TEXT(english)")
    assert index.match_lists([{"body": "y x"}, {"body": "x"}]).to_pylist() == [["s"], []]
    assert tamis.evaluate("matches(body, 'x\x00y')", {"body": "y x"}) is True


def test_the_least_frequent_word_comes_first():
    """In queries where nothing was counted, in documents where they were."""
    queries = {
        "a": "matches(body, 'common rare')",
        "b": "matches(body, 'common odd')",
        "c": "matches(body, 'common')",
        "d": "matches_phrase(body, 'common odd')",
        "e": "matches(title, 'x')",
    }

    def children_of(index, name):
        contents = index.contents
        at = contents.roots.subscriptions.tolist().index(index.ordinal(name))
        node = contents.roots.nodes[at] - contents.n_leaves
        begin, end = contents.nodes.child_starts[node : node + 2]
        return [describe_leaf(contents, leaf) for leaf in contents.nodes.children[begin:end]]

    index = build(queries, "body TEXT, title TEXT")
    assert children_of(index, "a") == ["matches(body, 'rare')", "matches(body, 'common')"]
    events = [{"body": "rare odd"}, {"body": "rare common odd"}, {"title": "x"}, {}]
    counted = index.term_frequencies(events)
    assert counted == {
        "body": {"common": 0.25, "common odd": 0.25, "odd": 0.5, "rare": 0.5},
        "title": {"x": 0.25},
    }
    again = build(queries, "body TEXT, title TEXT", frequencies=counted)
    assert children_of(again, "a") == ["matches(body, 'common')", "matches(body, 'rare')"]
    expected = [sorted(row) for row in index.match_lists(events).to_pylist()]
    assert [sorted(row) for row in again.match_lists(events).to_pylist()] == expected
    assert [sorted(again.match(event)) for event in events] == expected


def test_frequencies_change_no_answer(seed):
    for at in range(examples(8)):
        example = draw(seed + at)
        index = build(example.texts, example.schema)
        counted = index.term_frequencies(example.events[:5])
        again = build(example.texts, example.schema, frequencies=counted)
        truth = example.reference(Missing.UNDEFINED)
        for engine in ENGINES[:2]:
            assert (engine.ask(again, example.events) == engine.expected(truth)).all(), at


@pytest.mark.parametrize(
    ("frequencies", "message"),
    [
        ("x", "the frequencies are 'x'"),
        ([("body", {})], "the frequencies are [('body', {})]"),
        ({"body": 0.5}, "the frequencies of body are 0.5"),
        ({"body": {"fox": "often"}}, "the frequency of 'fox' in body is 'often'"),
        ({"body": {"fox": None}}, "the frequency of 'fox' in body is None"),
        ({"body": {"fox": 25}}, "the frequency of 'fox' in body is 25"),
        ({"body": {"fox": -0.1}}, "the frequency of 'fox' in body is -0.1"),
        ({"body": {"fox": float("nan")}}, "the frequency of 'fox' in body is nan"),
    ],
)
def test_frequencies_that_are_no_shares(frequencies, message):
    with pytest.raises(tamis.InputError, match=re.escape(message)) as refused:
        tamis.build({"a": "matches(body, 'fox')"}, "body TEXT", frequencies=frequencies)
    assert "Index.term_frequencies" in str(refused.value)


def test_ten_thousand_words():
    """All that grows while building grows, and together."""
    queries = {str(at): f"matches(body, 'w{at} w{at + 1}')" for at in range(10_000)}
    index = build(queries, "body TEXT")
    assert index.rejects == []
    for at in (0, 1, 4_094, 4_098, 4_099, 4_100, 8_191, 8_200, 9_999):
        assert index.match({"body": f"w{at + 1} w{at}"}) == [str(at)]


def test_explain_and_stats_know_words():
    index = build(
        {"s": "matches(body, 'the weapons') AND NOT matches_phrase(body, 'of mass')"}, "body TEXT"
    )
    result = index.explain("s", {"body": "the weapons"})
    assert result.matches
    assert "would match if" in index.explain("s", {"body": "weapons"}).sentence
    with reopened(index) as opened:
        assert [column.kind for column in opened.contents.columns] == ["text"]
        assert list(opened.contents.columns[0].constants) == ["of mass", "the", "weapons"]


def test_the_analyser_is_kept_with_the_index():
    index = build({"s": "matches(body, 'houses')"}, "body TEXT(english)")
    with reopened(index) as opened:
        assert opened.contents.schema.to_json() == {"body": "text(english)"}
        assert opened.contents.columns[0].type.analyser == "english"
        assert opened.match({"body": "a house"}) == ["s"]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("PyStemmer", r'the words of "body" \(analyser english\) were made with PyStemmer 1.0'),
        ("Unicode of Python", "made with Unicode of Python 1.0; this process has"),
        ("word boundaries", "made with word boundaries 1.0; this process has"),
    ],
)
def test_another_version_of_the_analyser_is_refused(what, said, tmp_path):
    """A word that became another form would be missed, and nobody would know."""
    schema = "body TEXT(english), name TEXT(keyword)"
    index = build({"s": "matches(body, 'houses') OR matches(name, 'x')"}, schema)
    here = analyser_versions("english")
    with patch.object(artefact, "analyser_versions") as versions:
        versions.side_effect = lambda name: {**here, what: "1.0"} if name == "english" else {}
        index.save(tmp_path / "index")
    with pytest.raises(IndexFormatError, match=said) as caught:
        tamis.open(tmp_path / "index")
    assert "rebuild" in caught.value.hint


def test_versions_of_the_analyser_are_kept(tmp_path):
    schema = "body TEXT(english), name TEXT(keyword)"
    build({"s": "matches(body, 'houses') OR matches(name, 'x')"}, schema).save(tmp_path / "index")
    manifest = json.loads((tmp_path / "index" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["analysers"] == {
        "body": {"name": "english", **analyser_versions("english")},
        "name": {"name": "keyword"},
    }
    assert set(analyser_versions("english")) == {
        "word boundaries",
        "Unicode of Python",
        "PyStemmer",
    }


EDGES = {
    "combining marks": ("naïve", "nai\u0308ve", "x\u0301x"),
    "ideographs": ("東京", "京東 東京都", "東 京"),
    "emoji": ("👍🏽", "a👍🏽b", "👍"),
    "right to left": ("שלום", "\u200fשָׁלוֹם\u200e", "שלומך"),
    "Turkish i": ("İSTANBUL", "istanbul ISTANBUL", "stanbul"),
    "a long word": ("x" * 5_000, "a " + "X" * 5_000 + ".", "x" * 4_999),
    "nothing": ("a", "A", ""),
    "no text": ("a", "a", None),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_of_unicode(name):
    """A query as a phrase and as words, on a text that has it and on one that has not."""
    query, hit, miss = EDGES[name]
    queries = {f"{form}": f"{form}(body, '{query}')" for form in ("matches", "matches_phrase")}
    index = build(queries, "body TEXT")
    conditions = {at: check(parse(text), Schema.of("body TEXT")) for at, text in queries.items()}
    for text, expected in ((hit, sorted(queries)), (miss, [])):
        event = {"body": text}
        wanted = [at for at, one in conditions.items() if evaluate(one, event) is True]
        # Each ideograph is a word: side by side they are found as a phrase only.
        if name != "ideographs":
            assert sorted(wanted) == expected
        assert sorted(index.match(event)) == sorted(wanted)
        assert sorted(index.match_lists([event]).to_pylist()[0]) == sorted(wanted)
