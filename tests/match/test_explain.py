"""Explanations say what matching says, at every node, and name the fewest leaves to change."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import chain, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import InputError, TamisError
from tamis.language import Limits, Schema, check, parse, print_expression
from tamis.language.ast import (
    And,
    AtLeast,
    Attribute,
    Condition,
    Literal,
    Not,
    Or,
    Xnor,
    Xor,
    attributes,
    children,
)
from tamis.language.schema import Path
from tamis.language.types import BOOLEAN
from tamis.logic.evaluate import Missing, evaluate
from tamis.match.build import build
from tamis.match.explain import Explanation, Step
from tamis.match.index import Index
from tests.effort import examples
from tests.generators.conditions import random_leaf
from tests.generators.events import random_event, random_value
from tests.generators.schemas import random_schema
from tests.match.engines import reopened
from tests.match.examples import Event, draw_example

SEEDS = st.integers(0, 2**40)
NO_EVENT = "no event can satisfy it"


def steps(step: Step) -> Iterator[Step]:
    """The step and all below it."""
    yield step
    for below in step.below:
        yield from steps(below)


def nodes(condition: Condition) -> Iterator[Condition]:
    """The condition and everything below it, in the order of `steps`."""
    yield condition
    for below in children(condition):
        yield from nodes(below)


# ── truth ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("missing", Missing)
@given(seed=SEEDS)
@settings(max_examples=examples(20))
def test_agrees_with_the_evaluator_and_the_matcher(missing, seed):
    example = draw_example(seed, n_subscriptions=6, n_events=6)
    index = build(example.texts, example.schema, missing=missing)
    for event in example.events:
        found = set(index.match(event))
        for subscription_id, condition in example.conditions.items():
            explanation = index.explain(subscription_id, event)
            assert explanation.subscription_id == subscription_id
            assert explanation.truth is evaluate(condition, event, missing)
            assert explanation.matches == (subscription_id in found)
            assert_steps_agree(explanation, condition, event, index)
            assert_readable(explanation)


def assert_steps_agree(
    explanation: Explanation, condition: Condition, event: Event, index: Index
) -> None:
    """Every node of the condition has its step, with its truth and its values."""
    missing, schema = index.contents.missing, index.contents.schema
    assert explanation.tree.truth is explanation.truth
    for step, node in zip(steps(explanation.tree), nodes(condition), strict=True):
        assert step.truth is evaluate(node, event, missing), print_expression(node)
        assert step.truth is evaluate(check(parse(step.text), schema), event, missing), step.text
        assert bool(step.values) == (not children(node) and bool(list(attributes(node))))


def assert_readable(explanation: Explanation) -> None:
    """There is one sentence, a drawing with a line for each node, and plain JSON."""
    assert explanation.sentence
    assert "\n" not in explanation.sentence or "\n" in explanation.tree.text
    assert str(explanation).startswith(f"{explanation.subscription_id}: {explanation.sentence}")
    shown = json.loads(json.dumps(explanation.to_dict()))
    assert shown["matches"] is explanation.matches
    assert (explanation.sentence.startswith("matches")) == explanation.matches
    if explanation.matches:
        assert explanation.changes == ()
    else:
        assert bool(explanation.changes) != (NO_EVENT in explanation.sentence)


def test_is_the_same_after_opening(seed):
    example = draw_example(seed, n_subscriptions=20, n_events=4)
    index = build(example.texts, example.schema)
    with reopened(index) as opened:
        for subscription_id in example.conditions:
            for event in example.events:
                assert repr(opened.explain(subscription_id, event)) == repr(
                    index.explain(subscription_id, event)
                )


def test_deep_parity_is_explained_in_no_time():
    """A parity asks each operand for two things; nested, that must not double with each level."""
    text = "a = 0"
    for at in range(20):
        text = f"a = {at} XOR (b = {at} AND ({text}))"
    explanation = build({"deep": text}, limits=Limits(depth=100)).explain("deep", {"a": -1, "b": 1})
    assert explanation.changes == ("a = 19",)


def test_addresses_are_shown_as_they_are_written():
    index = build({"s": "ip = '10.0.0.1' OR array_contains(ips, '::1')"}, "ip IP, ips ARRAY<IP>")
    shown = str(index.explain("s", {"ip": "::ffff:10.0.0.7", "ips": ["::2", "10.0.0.1"]}))
    assert "(ip is '10.0.0.7')" in shown
    assert "(ips is ('::2', '10.0.0.1'))" in shown


def test_values_set_aside_are_named():
    index = build({"s": "level > 3"})
    (note,) = index.explain("s", {"level": "high"}).tree.notes
    assert note == "level is 'high', not of type number: treated as missing"
    assert index.explain("s", {"level": "high"}).tree.values == (("level", None),)


@pytest.mark.parametrize(
    "value",
    [10**5000, -(10**5000), "x" * 1_000_000, [[]] * 10_000, object()],
    ids=["huge", "hugely-negative", "long", "wide", "foreign"],
)
def test_monstrous_values_are_shown_short(value):
    index = build({"s": "level > 3 AND name = 'a'"}, "level INT, name STRING")
    explanation = index.explain("s", {"level": value, "name": value})
    assert explanation.truth is not True
    assert len(str(explanation)) < 2_000
    json.dumps(explanation.to_dict())


def test_limits_of_building_do_not_stop_explaining():
    members = ", ".join(map(str, range(20_000)))
    limits = Limits(in_list=30_000, text_length=1_000_000)
    index = build({"wide": f"a IN ({members})"}, limits=limits)
    assert index.explain("wide", {"a": 5}).matches
    with reopened(index) as opened:
        assert not opened.explain("wide", {"a": -5}).matches


@pytest.mark.parametrize("event", [None, 5, "a", [1], [("a", 1)]])
def test_an_event_is_a_mapping(event):
    with pytest.raises(TamisError, match="event"):
        build({"s": "a = 1"}).explain("s", event)


def test_unknown_subscription_is_an_error_with_a_suggestion():
    with pytest.raises(InputError) as raised:
        build({"alert-7": "a = 1"}).explain("alert-9", {})
    assert '"alert-9"' in raised.value.message
    assert "alert-7" in (raised.value.hint or "")


# ── what would have to change ───────────────────────────────────────────────────────────────


def expressions(names: str) -> Iterator[Condition]:
    """Every connective over every connective: all small trees with each name once."""
    leaves = [Attribute((name,), BOOLEAN) for name in names]
    if len(leaves) == 1:
        yield leaves[0]
        yield Not(leaves[0])
        return
    for split in range(1, len(names)):
        for left, right in product(expressions(names[:split]), expressions(names[split:])):
            yield And((left, right))
            yield Or((left, right))
            yield Xor((left, right))
            yield Not(Xnor((left, right)))
    if len(leaves) > 2:
        for k in range(1, len(leaves) + 1):
            yield AtLeast(k, tuple(leaves))
            yield Not(AtLeast(k, (Not(leaves[0]), *leaves[1:])))
            yield Xnor(tuple(leaves))
            yield Xor((*leaves, Literal(True, BOOLEAN)))
            yield Or((And((leaves[0], Literal(False, BOOLEAN))), *leaves[1:]))


def boolean_events(names: str) -> list[Event]:
    """Every way for the names to be true, false or missing."""
    return [
        {name: value for name, value in zip(names, values, strict=True) if value is not None}
        for values in product((True, False, None), repeat=len(names))
    ]


def assert_changes_are_fewest(
    explanation: Explanation, condition: Condition, event: Event, good_worlds: list[Event]
) -> None:
    """As many as the attributes in which the nearest world differs where the condition holds."""
    distances = [
        sum(event.get(name) is not world.get(name) for name in event.keys() | world.keys())
        for world in good_worlds
    ]
    wanted = min(distances, default=None)
    shown = f"{print_expression(condition)} on {event}: {explanation}"
    if wanted is None:
        assert explanation.changes == (), shown
        assert NO_EVENT in explanation.sentence, shown
    else:
        assert len(explanation.changes) == wanted, shown


def make_true(
    leaves: list[Condition], path: Path, event: Event, values: Iterator[Any], missing: Missing
) -> bool:
    """Give the one attribute a value for which the leaves hold; False if none was found."""
    target = event
    for step in path[:-1]:
        below = dict(target.get(step) or {})
        target[step] = below
        target = below
    for value in values:
        target[path[-1]] = value
        if all(evaluate(leaf, event, missing) is True for leaf in leaves):
            return True
    return False


@pytest.mark.parametrize("missing", Missing)
@pytest.mark.parametrize("names", ["a", "ab", "abc"])
def test_changes_are_enough_and_the_fewest_on_all_small_trees(names, missing):
    conditions = {print_expression(one): one for one in expressions(names)}
    schema = Schema({(name,): BOOLEAN for name in names})
    index = build({text: text for text in conditions}, schema, missing=missing)
    assert index.rejects == []
    worlds = boolean_events(names)
    for text, condition in conditions.items():
        good_worlds = [world for world in worlds if evaluate(condition, world, missing) is True]
        for event in worlds:
            explanation = index.explain(text, event)
            assert explanation.matches == (event in good_worlds)
            if explanation.matches:
                continue
            assert_changes_are_fewest(explanation, condition, event, good_worlds)
            if explanation.changes:
                assert assert_changes_are_enough(
                    explanation, condition, event, schema, missing, random.Random(0)
                )


def assert_changes_are_enough(
    explanation: Explanation,
    condition: Condition,
    event: Event,
    schema: Schema,
    missing: Missing,
    rng: random.Random,
) -> bool:
    """With the named leaves made true, and nothing else changed, the condition holds.

    False where no value at hand makes them true, such as for a < 5e-324.
    """
    changed: Event = dict(event)
    by_path: dict[Path, list[Condition]] = {}
    for text in explanation.changes:
        leaf = check(parse(text), schema)
        assert evaluate(leaf, event, missing) is not True, f"{text} holds already"
        (path,) = {attribute.path for attribute in attributes(leaf)}
        by_path.setdefault(path, []).append(leaf)
    for path, leaves in by_path.items():
        values = (random_value(rng, schema[path]) for _ in range(200))
        if not make_true(leaves, path, changed, chain((None,), values), missing):
            return False
    shown = (print_expression(condition), event, changed)
    assert evaluate(condition, changed, missing) is True, shown
    return True


def draw_without_repeats(rng: random.Random, schema: Schema, paths: list) -> Condition:
    """A random tree with one leaf for each path."""
    if len(paths) == 1:
        alone = Schema({paths[0]: schema[paths[0]]})
        leaf = random_leaf(rng, alone)
        while len(list(attributes(leaf))) > 1:  # compared with itself
            leaf = random_leaf(rng, alone)
        return Not(leaf) if rng.random() < 0.3 else leaf
    cuts = sorted(rng.sample(range(1, len(paths)), k=rng.randint(1, min(3, len(paths) - 1))))
    bounds = zip((0, *cuts), (*cuts, len(paths)), strict=True)
    below = tuple(draw_without_repeats(rng, schema, paths[low:high]) for low, high in bounds)
    kind = rng.choice((And, And, Or, Or, Xor, Xnor, AtLeast))
    made = AtLeast(rng.randint(1, len(below)), below) if kind is AtLeast else kind(below)
    return Not(made) if rng.random() < 0.3 else made


@pytest.mark.parametrize("missing", Missing)
@given(seed=SEEDS)
@settings(max_examples=examples(40))
def test_changes_are_enough_for_any_type(missing, seed):
    rng = random.Random(seed)
    schema = random_schema(rng, rng.randint(1, 7))
    condition = draw_without_repeats(rng, schema, list(schema))
    index = build({"s": print_expression(condition)}, schema, missing=missing)
    for _ in range(4):
        event = random_event(rng, schema)
        explanation = index.explain("s", event)
        if explanation.changes:
            assert_changes_are_enough(explanation, condition, event, schema, missing, rng)


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("a = 1.5", {"a": 1}),  # no integer is
        ("a > 9223372036854775807", {"a": 1}),
        ("a > 1 AND a = 0.5", {}),
        ("a BETWEEN 3 AND 1", {"a": 1}),
        ("FALSE", {}),
        ("xor(FALSE, FALSE)", {}),
        ("at_least(2, a = 1, FALSE, FALSE)", {"a": 1}),
    ],
)
def test_what_no_event_satisfies_is_said_so(text, event):
    explanation = build({"s": text}, "a INT").explain("s", event)
    assert explanation.changes == ()
    assert NO_EVENT in explanation.sentence


def test_a_possible_way_is_preferred_to_an_impossible_one():
    explanation = build({"s": "a = 1.5 OR (b AND c)"}, "a INT, b BOOLEAN, c BOOLEAN").explain(
        "s", {}
    )
    assert len(explanation.changes) == 2
    assert not any("a" in change for change in explanation.changes)


@pytest.mark.parametrize(
    ("text", "event", "sentence"),
    [
        ("level > 3", {"level": 4}, "matches: level > 3 holds"),
        ("level > 3", {"level": 3}, "false: it would match if level > 3"),
        ("a IS NULL OR NOT a = 1", {"a": 1}, "false: it would match if a <> 1"),
        ("NOT level > 3", {"level": 4}, "false: it would match if NOT level > 3"),
        ("NOT a = 1", {"a": 1}, "false: it would match if a <> 1"),
        ("NOT a NOT BETWEEN 1 AND 3", {"a": 4}, "false: it would match if a BETWEEN 1 AND 3"),
        (
            "NOT (a IN (1, 2) OR b)",
            {"a": 1, "b": False},
            "false: it would match if a NOT IN (1, 2)",
        ),
        ("level > 3", {}, "undefined: level is missing"),
        ("a = 1 AND b = 2", {"a": 1, "b": 2}, "matches: a = 1 and b = 2 hold"),
        ("a = 1 AND b = 2", {"a": 2}, "false: it would match if a = 1 and b = 2"),
        ("a = 1 OR b = 2", {"a": 1}, "matches: a = 1 holds"),
    ],
)
def test_sentences(text, event, sentence):
    assert build({"s": text}).explain("s", event).sentence == sentence


DOCUMENT = {"title": "Niger", "body": "A long report on the mines of the north, and on uranium."}


@pytest.mark.parametrize(
    ("expression", "notes"),
    [
        ("matches(body, 'the Mines uranium')", []),
        ("matches(body, 'mine Niger, Yellowcakes')", ["not found: Niger, Yellowcakes"]),
        ("matches((title, body), 'mine niger gold')", ["not found: gold"]),
        ("matches((title, gone), 'niger gold')", ["not found: gold"]),
        ("matches((gone, gone), 'niger gold')", []),
        ("matches(body, 'gold')", []),
        ("matches(body, 'gold GOLD')", ["not found: gold"]),
        ("matches(body, 'a1 a2 a3 a4 a5 a6 a7')", ["not found: a1, a2, a3, a4, a5, 2 more"]),
        (f"matches(body, 'mine {'x' * 40}')", [f"not found: {'x' * 29}…"]),
        ("matches_any(body, 'gold uranium mines')", ["found: uranium, mines"]),
        ("matches_any(body, 'gold silver')", []),
        ("matches_at_least(1, body, 'gold mine')", ["found: mine", "not found: gold"]),
        ("matches_phrase(body, 'long reports')", []),
        ("matches_phrase(body, 'report long')", ["the words occur, but not as this phrase"]),
        ("matches_phrase(body, 'mine mine')", ["the words occur, but not as this phrase"]),
        ("matches_phrase((title, body), 'niger gold')", ["not found: gold"]),
        ("matches(key, 'Niger')", []),
    ],
)
def test_words_that_a_document_has_or_not(expression, notes):
    schema = "title TEXT(english), body TEXT(english), gone TEXT(english), key TEXT(keyword)"
    index = build({"q": expression}, schema)
    explanation = index.explain("q", DOCUMENT)
    assert list(explanation.tree.notes) == notes
    assert all(note in str(explanation) for note in notes)


@pytest.mark.parametrize(
    ("expression", "notes"),
    [
        ("s LIKE ANY ('a%', '%b', 'x')", ["matches: 'a%', '%b'"]),
        ("s LIKE ALL ('a%', 'x')", ["does not match: 'x'"]),
        ("s NOT LIKE ANY ('a%', 'x')", ["does not match: 'x'"]),
        ("s NOT LIKE ALL ('x', 'a%')", ["matches: 'a%'"]),
        ("s RLIKE ANY ('a', 'b', 'a.*', '^a', 'b$')", ["matches: 'a', 'b', 'a.*', 2 more"]),
        ("s LIKE ANY ('x')", []),
    ],
)
def test_patterns_of_a_list_that_match_or_not(expression, notes):
    explanation = tamis.build({"s": expression}).explain("s", {"s": "a b"})
    assert list(explanation.tree.notes) == notes
