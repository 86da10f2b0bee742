"""Expressions and events of a small world, in which the truth of a pair is soon known."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import orjson

from tamis.language import Schema, check, parse
from tamis.logic.evaluate import evaluate

ATTRIBUTES = {"a": "BIGINT", "b": "BIGINT", "c": "STRING", "bell": "BOOLEAN"}
SCHEMA = Schema.of(ATTRIBUTES)
COLOURS = ("red", "green", "blue")
N_VALUES = 8


def draw_expression(draw: Random) -> str:
    """An expression that some of the events satisfy."""
    leaves = [_draw_leaf(draw) for _ in range(draw.randint(1, 3))]
    return draw.choice((" AND ", " OR ")).join(leaves)


def _draw_leaf(draw: Random) -> str:
    number = f"{draw.choice('ab')} {draw.choice(('=', '<', '>='))} {draw.randrange(N_VALUES)}"
    colour = f"c = '{draw.choice(COLOURS)}'"
    some = f"a IN ({', '.join(map(str, draw.sample(range(N_VALUES), 3)))})"
    leaf = draw.choice((number, number, colour, some, f"{draw.choice('abc')} IS NULL"))
    return f"NOT ({leaf})" if draw.random() < 0.2 else leaf


def draw_rare(draw: Random) -> str:
    """An expression that few events satisfy, for consumers that take long for each."""
    return f"a = {draw.randrange(N_VALUES)} AND b = {draw.randrange(N_VALUES)} AND c = 'red'"


def with_bell(expression: str) -> str:
    """An expression that the last event of a run satisfies too."""
    return f"({expression}) OR bell = TRUE"


def draw_event(draw: Random, name: str) -> dict[str, Any]:
    """An event that no other has the name of; attributes may be missing."""
    values = {"a": draw.randrange(N_VALUES), "b": draw.randrange(N_VALUES)}
    values |= {"c": draw.choice(COLOURS)}
    return {"name": name} | {key: own for key, own in values.items() if draw.random() < 0.9}


def read_values(content: bytes) -> tuple[Any, ...]:
    """What expressions can see of an event."""
    event = orjson.loads(content)
    return tuple(event.get(name) for name in ATTRIBUTES)


@cache
def is_match(expression: str, values: tuple[Any, ...]) -> bool:
    """What the reference evaluator says."""
    named = zip(ATTRIBUTES, values, strict=True)
    event = {name: value for name, value in named if value is not None}
    return evaluate(_read(expression), event) is True


@cache
def _read(expression: str):
    return check(parse(expression), SCHEMA)
