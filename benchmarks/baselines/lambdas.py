"""Compiled Python lambdas: each expression is one lambda over the event, called one by one.

A lambda says whether its condition is TRUE. Negation is pushed down when it is written: the code
for "is true" of NOT p is the code for "is false" of p. So it is two-valued, short-circuits, and
is still exact.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.baselines.leaves import (
    Constant,
    EventReader,
    Interval,
    Leaf,
    Missing,
    Text,
    ValueSet,
    read_leaf,
)
from tamis.language.ast import And, AtLeast, Comparison, Condition, Literal, Not, Or, Xnor, Xor
from tamis.language.printer import print_expression
from tamis.language.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

CHUNK = 500  # lambdas compiled at a time


class Lambdas:
    """One lambda per typed condition."""

    def __init__(self, conditions: Iterable[Condition]) -> None:
        writer = LambdaWriter()
        sources = [writer.write(condition) for condition in conditions]
        names = {"constants": writer.constants, "odd": odd}
        self._reader = writer.reader
        self.lambdas: list[Callable[[dict[str, Any]], bool]] = []
        for start in range(0, len(sources), CHUNK):
            source = ", ".join(f"lambda e: {text}" for text in sources[start : start + CHUNK])
            self.lambdas.extend(eval(f"[{source}]", names))

    def match(self, event: Mapping[str, Any]) -> np.ndarray:
        """The positions of the conditions that are TRUE."""
        values = self._reader.read(event)
        found = [position for position, is_true in enumerate(self.lambdas) if is_true(values)]
        return np.array(found, dtype=np.int64)

    def match_batch(self, events: Sequence[Mapping[str, Any]]) -> list[np.ndarray]:
        """The same for many events, one by one."""
        return [self.match(event) for event in events]


class BucketedLambdas(Lambdas):
    """The same in buckets: conditions that begin with one test are called only if it is true.

    Detection rules begin with the source of the log.
    """

    def __init__(self, conditions: Iterable[Condition]) -> None:
        conditions = list(conditions)
        members: dict[str, list[int]] = {}
        firsts: dict[str, Condition] = {}
        for position, condition in enumerate(conditions):
            first: Condition = TRUE
            if isinstance(condition, And) and isinstance(condition.operands[0], Comparison):
                first = condition.operands[0]
            text = print_expression(first)
            firsts.setdefault(text, first)
            members.setdefault(text, []).append(position)
        super().__init__([*conditions, *firsts.values()])
        tests = self.lambdas[len(conditions) :]
        self._buckets = list(zip(tests, members.values(), strict=True))

    def match(self, event: Mapping[str, Any]) -> np.ndarray:
        """The positions of the conditions that are TRUE."""
        values = self._reader.read(event)
        found = [
            position
            for is_first_true, members in self._buckets
            if is_first_true(values)
            for position in members
            if self.lambdas[position](values)
        ]
        return np.array(sorted(found), dtype=np.int64)


TRUE = Literal(value=True, type=BOOLEAN)


def odd(truths: tuple[bool | None, ...]) -> bool | None:
    """Whether an odd number is true; None if one is undefined."""
    return None if None in truths else sum(truths) % 2 == 1  # type: ignore[arg-type]


class LambdaWriter:
    """Python source for "is true" and "is false" of conditions."""

    def __init__(self) -> None:
        self.reader = EventReader()
        self.constants: list[Any] = []  # what has no short spelling: dates, regexes, wide sets

    def write(self, node: Condition, wanted: bool = True) -> str:
        """Source that is truthy when the condition is `wanted`, falsy otherwise."""
        match node:
            case Not():
                return self.write(node.operand, not wanted)
            case And() | Or():
                word = " and " if isinstance(node, And) is wanted else " or "
                return f"({word.join(self.write(below, wanted) for below in node.operands)})"
            case AtLeast():
                k = node.k if wanted else len(node.operands) - node.k + 1
                truths = ", ".join(f"bool({self.write(x, wanted)})" for x in node.operands)
                return f"(sum(({truths},)) >= {k})"
            case Xor() | Xnor():
                return self._write_parity(node.operands, isinstance(node, Xor) is wanted)
            case _:
                return self._write_leaf(read_leaf(node), wanted)

    def _write_parity(self, operands: tuple[Condition, ...], is_odd: bool) -> str:
        if len(operands) == 2:
            p, q = ((self.write(x, True), self.write(x, False)) for x in operands)
            first, second = (q[1], q[0]) if is_odd else (q[0], q[1])
            return f"({p[0]} and {first} or {p[1]} and {second})"
        truths = (
            f"(True if {self.write(x, True)} else False if {self.write(x, False)} else None)"
            for x in operands
        )
        return f"(odd(({', '.join(truths)},)) is {is_odd})"

    def _write_leaf(self, leaf: Leaf, wanted: bool) -> str:
        if isinstance(leaf, Constant):
            return str(leaf.value is wanted)
        is_plain = leaf.is_negated is not wanted
        if isinstance(leaf, Missing):
            key = self.reader.add(leaf.attribute)
            return f"(e.get({key!r}) is {'' if is_plain else 'not '}None)"
        is_lowered = isinstance(leaf, Text) and leaf.ignores_case
        key = self.reader.add(leaf.attribute, lowered=is_lowered)
        test = self._write_test(leaf)
        return f"((v := e.get({key!r})) is not None and {test if is_plain else f'not ({test})'})"

    def _write_test(self, leaf: Interval | ValueSet | Text) -> str:
        """Source over `v`, which is there."""
        match leaf:
            case ValueSet(members=(member,)):
                return f"v == {self._spell(member)}"
            case ValueSet():
                return f"v in {self._spell(frozenset(leaf.members))}"
            case Text(kind="equals"):
                return f"v == {leaf.text!r}"
            case Text(kind="contains"):
                return f"{leaf.text!r} in v"
            case Text(kind="regex"):
                return f"{self._spell(re.compile(leaf.text))}.fullmatch(v) is not None"
            case Text():
                return f"v.{leaf.kind}({leaf.text!r})"
            case _:
                return self._write_interval(leaf)

    def _write_interval(self, leaf: Interval) -> str:
        low, high = (self._spell(bound) for bound in (leaf.low, leaf.high))
        if leaf.low is None:
            return f"v {'<=' if leaf.high_is_closed else '<'} {high}"
        if leaf.high is None:
            # NaN is above everything, and so not below: exact for floats too.
            assert leaf.attribute.type is not None
            if leaf.attribute.type.is_floating:
                return f"not v {'<' if leaf.low_is_closed else '<='} {low}"
            return f"v {'>=' if leaf.low_is_closed else '>'} {low}"
        return f"v == {low}" if leaf.low == leaf.high else f"{low} <= v <= {high}"

    def _spell(self, value: Any) -> str:
        if isinstance(value, int | str):
            return repr(value)
        if isinstance(value, frozenset) and all(isinstance(x, int | str) for x in value):
            # The compiler turns this into one constant.
            return f"{{{', '.join(map(repr, sorted(value)))}}}"
        self.constants.append(value)
        return f"constants[{len(self.constants) - 1}]"
