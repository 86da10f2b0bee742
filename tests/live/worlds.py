"""Subscriptions and events of every kind, with what the reference evaluator says of each pair.

The truth of a pair never changes, so it is computed once, and a life of a live index is checked
against it thousands of times.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import NamedTuple

import numpy as np

from tamis.language import Schema, check, parse
from tamis.language.ast import Condition
from tamis.logic.bindings import calls_of
from tamis.logic.evaluate import Missing, evaluate, solve
from tests.match.examples import Example, draw_example
from tests.operators.toys import (
    ATTRIBUTES,
    Toys,
    random_event,
    random_subscription,
    true_answers,
)

KEYWORD_ATTRIBUTES = "title TEXT(english), body TEXT(standard), n BIGINT"
WORDS = ("oil", "gas", "coal", "price", "prices", "pricing", "market", "markets", "the", "rising")
OWN = ("a", "b", "flag", "title", "body", "n", "id", "answers")  # no drawn attribute has these
N_EVENTS = 6
MOST_LETTERS = 80  # of a subscription that calls operators
N_PLAIN, N_WITH_OPERATORS, N_WITH_KEYWORDS = 34, 4, 6


class World(NamedTuple):
    """What subscriptions say, what happens, and which is true for which."""

    schema: Schema
    toys: Toys
    texts: list[str]
    events: list[dict]
    bindings: list[list[dict | None]]  # by event and text; None where it is not true
    truth: np.ndarray  # bool[n_events, n_texts]


@cache
def draw_world(seed: int, missing: Missing) -> World:
    """All types, operators and keywords in one schema."""
    draw = Random(seed)
    toys = Toys()
    plain = draw_plain(seed)
    schema = Schema(
        {
            path: own[path]
            for own in (plain.schema, Schema.of(ATTRIBUTES), Schema.of(KEYWORD_ATTRIBUTES))
            for path in own
        }
    )
    called = [draw_call(draw, toys) for _ in range(N_WITH_OPERATORS)]
    searched = [draw_query(draw) for _ in range(N_WITH_KEYWORDS)]
    texts = [*plain.texts.values(), *(text for text, _ in called), *searched]
    conditions = [
        *plain.conditions.values(),
        *(condition for _, condition in called),
        *(check(parse(text), schema) for text in searched),
    ]
    events = [
        event | random_event(draw, at, with_errors=False) | draw_texts(draw)
        for at, event in enumerate(plain.events)
    ]
    bindings = [[bind(own, event, toys, missing) for own in conditions] for event in events]
    truth = [[found is not None for found in row] for row in bindings]
    return World(schema, toys, texts, events, bindings, np.array(truth, dtype=np.bool_))


def bind(condition: Condition, event: dict, toys: Toys, missing: Missing) -> dict | None:
    """The values of variables by the reference evaluator; None if the condition is not true."""
    answers = true_answers(condition, event, toys.schema)
    if not answers:
        return {} if evaluate(condition, event, missing) is True else None
    return solve(condition, event, answers, missing)


def draw_plain(seed: int) -> Example:
    """Subscriptions on attributes of all types, none of which has a name in `OWN`."""
    while True:
        drawn = draw_example(seed, N_PLAIN, N_EVENTS)
        if not any(path[0] in OWN for path in drawn.schema):
            return drawn
        seed += 1_000


def draw_call(draw: Random, toys: Toys) -> tuple[str, Condition]:
    """A subscription that calls operators, and is short: long ones take long to build."""
    while True:
        text, condition = random_subscription(draw, toys.schema)
        if len(text) <= MOST_LETTERS and calls_of(condition):
            return text, condition


def draw_words(draw: Random, n_words: int) -> str:
    return " ".join(draw.choices(WORDS, k=n_words))


def draw_query(draw: Random) -> str:
    """An expression that searches for words."""
    attribute = draw.choice(("title", "body"))
    query = f"oil {draw_words(draw, draw.randint(1, 3))}"
    leaf = draw.choice(
        (
            f"matches({attribute}, '{query}')",
            f"matches_any({attribute}, '{query}')",
            f"matches_phrase({attribute}, 'gas {draw.choice(WORDS[:4])}')",
            f"matches_at_least(2, {attribute}, 'oil gas coal')",
        )
    )
    other = f"n = {draw.randrange(3)}"
    return draw.choice((leaf, f"NOT {leaf}", f"{leaf} AND {other}", f"{leaf} OR {other}"))


def draw_texts(draw: Random) -> dict[str, object]:
    """The attributes of an event that are searched."""
    drawn = {"title": draw_words(draw, 6), "body": draw_words(draw, 8), "n": draw.randrange(3)}
    return {name: value for name, value in drawn.items() if draw.random() < 0.8}
