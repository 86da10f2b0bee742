"""Random sets of subscriptions and events, and what the reference evaluator says of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from tamis.index.contents import Contents
from tamis.language import DEFAULT_LIMITS, Schema, print_expression
from tamis.language.ast import And, AtLeast, Attribute, Condition, IsNull, Not, Or, Xor
from tamis.language.schema import Path
from tamis.language.tokens import KEYWORDS, tokenize
from tamis.language.types import ANY
from tamis.logic.evaluate import Missing, evaluate
from tests.generators import random_condition, random_event, random_schema

Event = dict[str, Any]
GAPS = (" ", "  ", "\n", "\t", " \r\n ")
ANYTHING: Path = ("of any type",)  # no generated attribute has this name
# Chance may leave out an attribute, give it no value of its type, one of a kind that the schema
# allows besides, or texts with blanks around them: that is reported, and right.
RANDOM_EVENTS = pytest.mark.filterwarnings(
    r"ignore:.*( missing in every event| no usable value| misspelt| a blank before"
    r"| read from another kind| count as arrays of one):tamis.TamisWarning"
)
SPELLINGS = {"=": ("=", "=="), "<>": ("<>", "!=")}


@dataclass(frozen=True)
class Example:
    """Subscriptions and events drawn from one seed."""

    seed: int
    schema: Schema
    conditions: dict[str, Condition]  # by subscription id
    events: list[Event]

    @cached_property
    def texts(self) -> dict[str, str]:
        """The subscriptions as text, each spelled in one of many ways."""
        rng = random.Random(self.seed)
        return {
            subscription_id: respell(rng, print_expression(condition))
            for subscription_id, condition in self.conditions.items()
        }

    def reference(self, missing: Missing) -> np.ndarray:
        """Whether each subscription is TRUE by the reference: bool[event, subscription]."""
        return reference(self.conditions.values(), self.events, missing)

    def show(self, event: Mapping[str, Any], subscription: int) -> str:
        """One pair, to be looked at when engines differ."""
        text = list(self.texts.values())[subscription]
        return f"seed {self.seed}: {text!r} on {event!r}"


def reference(
    conditions: Sequence[Condition], events: Sequence[Event], missing: Missing
) -> np.ndarray:
    """Whether each condition is TRUE for each event: bool[n_events, n_conditions]."""
    rows = [[evaluate(one, event, missing) is True for one in conditions] for event in events]
    return np.array(rows, dtype=np.bool_).reshape(len(events), len(conditions))


def draw_example(
    seed: int, n_subscriptions: int = 12, n_events: int = 12, n_attributes: int | None = None
) -> Example:
    """A set with all types and operators, repeated expressions and shared parts."""
    rng = random.Random(seed)
    declared = random_schema(rng, n_attributes or rng.choice((1, 2, 3, 8, 12)))
    schema = Schema({**{path: declared[path] for path in declared}, ANYTHING: ANY})
    conditions = draw_conditions(rng, declared, n_subscriptions)
    events = [draw_event(rng, declared) for _ in range(n_events)]
    return Example(seed, schema, {f"s{at}": one for at, one in enumerate(conditions)}, events)


def draw_conditions(rng: random.Random, schema: Schema, n_conditions: int) -> list[Condition]:
    """Fresh conditions, conditions made of others, and the same ones again."""
    found: list[Condition] = []
    while len(found) < n_conditions:
        draw = rng.random()
        if found and draw < 0.1:
            found.append(rng.choice(found))
        elif found and draw < 0.3:
            found.append(_combined(rng, rng.choices(found, k=rng.randint(1, 3))))
        elif draw < 0.33:
            found.append(IsNull(Attribute(ANYTHING, ANY), rng.random() < 0.5))
        else:
            found.append(random_condition(rng, schema, depth=rng.choice((0, 1, 1, 2, 3))))
    return found


def _combined(rng: random.Random, parts: Sequence[Condition]) -> Condition:
    if len(parts) == 1:
        return Not(parts[0])
    kind = rng.choice((And, Or, Xor, AtLeast))
    if kind is AtLeast:
        return AtLeast(rng.randint(1, len(parts)), tuple(parts))
    return kind(tuple(parts))


def draw_event(rng: random.Random, schema: Schema) -> Event:
    """An event with wrong types and NULLs; often nearly empty, often with unknown attributes."""
    event = random_event(rng, schema, wrong_types=rng.random() < 0.6)
    draw = rng.random()
    if draw < 0.25:
        event = _thinned(rng, event)
    elif draw < 0.4:
        event |= {f"unknown{at}": rng.choice((1, "a", None, [])) for at in range(20)}
    if rng.random() < 0.5:
        event[ANYTHING[0]] = rng.choice((None, 0, "", [], {}, {"a": 1}, float("nan"), object))
    return event


def _thinned(rng: random.Random, event: Event) -> Event:
    """The event with most of its values gone or NULL, at every level."""
    kept: Event = {}
    for name, value in event.items():
        if rng.random() < 0.4:
            continue
        below = _thinned(rng, value) if isinstance(value, dict) else value
        kept[name] = None if rng.random() < 0.5 else below
    return kept


def spread(rng: random.Random, n_drawn: int, n_rows: int) -> list[int]:
    """A batch of `n_rows` made of `n_drawn` events, as their numbers: each, if there is room."""
    rows = [*range(n_drawn), *rng.choices(range(n_drawn), k=n_rows)][:n_rows]
    rng.shuffle(rows)
    return rows


def respell(rng: random.Random, text: str) -> str:
    """The same expression with other spaces, case of keywords and spellings of operators."""
    tokens = tokenize(text, DEFAULT_LIMITS)
    pieces: list[str] = []
    end_before = 0
    for kind, (start, end) in zip(tokens.kinds, tokens.spans, strict=True):
        piece = text[start:end]
        if start > end_before or (kind in (")", ",") and rng.random() < 0.1):
            pieces.append(rng.choice(GAPS) if rng.random() < 0.2 else " ")
        if kind in KEYWORDS and rng.random() < 0.2:
            piece = piece.lower() if rng.random() < 0.7 else piece.title()
        pieces.append(rng.choice(SPELLINGS.get(piece, (piece,))))
        end_before = end
    spelled = "".join(pieces)
    return f"({spelled})" if rng.random() < 0.1 else spelled


def show_columns(contents: Contents) -> list[str]:
    """The columns, and those of the indexes that match the elements of arrays."""
    shown: list[str] = []
    for column in contents.columns:
        shown.append(repr(replace(column, inner=None)))
        shown += [] if column.inner is None else show_columns(column.inner)
    return shown
