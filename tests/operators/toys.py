"""Operators whose answers stand in the event, and random subscriptions that call them.

An event's `answers` has what each call returns, by the call's name and constants: `"raise"` for
an error. `calls` counts what was asked.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from tamis.errors import ExpressionError
from tamis.language import Schema, check, parse, print_expression
from tamis.language.ast import (
    And,
    Arithmetic,
    AtLeast,
    Comparison,
    Condition,
    Literal,
    Not,
    OperatorCall,
    Or,
    Variable,
    Xor,
)
from tamis.language.comparators import Comparator
from tamis.language.types import INTEGER, STRING
from tamis.logic.bindings import calls_of
from tamis.operators.answers import read_answer
from tamis.operators.registry import Registry, operator

SIGNATURES = {
    "yes": "yes()",
    "is": "is_(string)",
    "one": "one(?integer)",
    "of": "of(string, ?integer)",
    "two": "two(?integer, ?integer)",
    "half": "half(?double)",
}
ATTRIBUTES = "a BIGINT, b STRING, flag BOOLEAN"
_COMPARATORS = [Comparator(spelled) for spelled in ("=", "<>", "<", ">=")]


def key_of(name: str, constants: tuple[Any, ...]) -> str:
    return "/".join((name, *map(str, constants)))


class Toys:
    """A separate registry, and a count of all calls."""

    def __init__(self, *, batch: bool = False) -> None:
        self.registry = Registry()
        self.calls: Counter[str] = Counter()
        self.n_batches = 0
        for signature in SIGNATURES.values():
            self._register(signature, batch and signature.startswith(("is_", "two", "one")))

    def _register(self, signature: str, batch: bool) -> None:
        name = signature.partition("(")[0]

        def answer(event, *constants):
            key = key_of(name, constants)
            self.calls[f"{event['id']}:{key}"] += 1
            returned = event["answers"].get(key)
            if returned == "raise":
                raise RuntimeError(key)
            return [tuple(row) for row in returned] if name == "two" and returned else returned

        def answer_batch(table, *constants):
            import pyarrow as pa

            self.n_batches += 1
            rows = [answer(event, *constants) for event in table.to_pylist()]
            if name == "two":
                struct = pa.struct([("x", pa.int64()), ("y", pa.int64())])
                rows = [None if row is None else [{"x": x, "y": y} for x, y in row] for row in rows]
                return pa.array(rows, pa.list_(struct))
            return pa.array(rows, pa.bool_() if name == "is_" else pa.list_(pa.int64()))

        function = answer_batch if batch else answer
        operator(signature, timeout=None, batch=batch, registry=self.registry)(function)

    @property
    def schema(self) -> Schema:
        return Schema.of(ATTRIBUTES).with_operators(self.registry.signatures)


def random_answers(rng: Random, *, with_errors: bool = True) -> dict[str, Any]:
    def integers() -> list[int]:
        return [rng.randrange(4) for _ in range(rng.randrange(4))]

    answers: dict[str, Any] = {
        "yes": rng.random() < 0.5,
        **{f"is_/{name}": rng.random() < 0.5 for name in "xyz"},
        "one": integers(),
        **{f"of/{name}": integers() for name in "xy"},
        "two": [[rng.randrange(3), rng.randrange(3)] for _ in range(rng.randrange(4))],
        "half": [rng.randrange(8) / 2 for _ in range(rng.randrange(3))],
    }
    for key in answers:
        if rng.random() < 0.15:
            answers[key] = "raise" if with_errors and rng.random() < 0.5 else None
    return answers


def random_event(rng: Random, number: int, *, with_errors: bool = True) -> dict[str, Any]:
    event: dict[str, Any] = {"id": number, "answers": random_answers(rng, with_errors=with_errors)}
    if rng.random() < 0.8:
        event["a"] = rng.randrange(4)
    if rng.random() < 0.8:
        event["b"] = rng.choice("xyz")
    if rng.random() < 0.8:
        event["flag"] = rng.random() < 0.5
    return event


def true_answers(condition: Condition, event: dict[str, Any], schema: Schema) -> dict[Any, Any]:
    """The answers for the reference evaluator, read by hand."""
    found = {}
    for call in calls_of(condition):
        constants = tuple(x.value for x in call.arguments if isinstance(x, Literal))
        returned = event["answers"].get(key_of(call.name, constants))
        if call.name == "two" and isinstance(returned, list):
            returned = [tuple(row) for row in returned]
        signature = schema.operator(call.name)
        found[call] = None if returned == "raise" else read_answer(returned, signature, 1000)
    return found


# ── random subscriptions ────────────────────────────────────────────────────────────────────


def random_subscription(rng: Random, schema: Schema) -> tuple[str, Condition]:
    """A text that has a meaning, and its typed condition."""
    while True:
        text = print_expression(_condition(rng, rng.randrange(1, 4)))
        try:
            return text, check(parse(text), schema)
        except ExpressionError:
            continue


def _condition(rng: Random, depth: int) -> Condition:
    if depth == 0 or rng.random() < 0.15:
        return _leaf(rng)
    operands = tuple(_condition(rng, depth - 1) for _ in range(rng.randrange(2, 4)))
    kind = rng.randrange(10)
    if kind < 5:
        return And(operands)
    if kind < 7:
        return Or(operands)
    if kind == 7:
        return Not(operands[0])
    if kind == 8:
        return AtLeast(rng.randrange(1, len(operands) + 1), operands)
    return Xor(operands)


def _leaf(rng: Random) -> Condition:
    kind = rng.randrange(12)
    if kind < 3:
        return _cheap(rng)
    if kind < 6:
        return Comparison(rng.choice(_COMPARATORS), _term(rng), _term(rng))
    name = rng.choice(list(SIGNATURES))
    match name:
        case "yes":
            return OperatorCall("yes", ())
        case "is":
            return OperatorCall("is_", (Literal(rng.choice("xyz"), STRING),))
        case "of":
            return OperatorCall("of", (Literal(rng.choice("xy"), STRING), _place(rng)))
        case "two":
            return OperatorCall("two", (_place(rng), _place(rng)))
        case _:
            return OperatorCall(name, (_place(rng),))


def _cheap(rng: Random) -> Condition:
    text = rng.choice(("a = 1", "a > 1", "b = 'x'", "b IN ('y', 'z')", "flag", "a IS NULL"))
    return parse(text)


def _place(rng: Random) -> Variable | Literal:
    if rng.random() < 0.15:
        return Literal(rng.randrange(3), INTEGER)
    return Variable(rng.choice("xyz"))


def _term(rng: Random) -> Any:
    kind = rng.randrange(6)
    if kind < 3:
        return Variable(rng.choice("xyz"))
    if kind == 3:
        return Literal(rng.randrange(4), INTEGER)
    if kind == 4:
        return parse("a = 1").left
    sides = Variable(rng.choice("xyz")), Literal(rng.randrange(3), INTEGER)
    return Arithmetic(rng.choice("+-*/"), *sides)
