"""Writes a drawn workload as text or as typed conditions, and measures its sharing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.lab.workloads.abe_forest import (
    DRAWN_AND,
    DRAWN_NOT,
    DRAWN_OR,
    DRAWN_XOR,
    PREDICATE_SHARES,
)
from tamis.language import check, parse
from tamis.language.ast import And, Not, Or, Xnor, Xor

if TYPE_CHECKING:
    from tamis.lab.workloads.abe_forest import Forest, Level, Predicates
    from tamis.lab.workloads.draws import Ints
    from tamis.language import Schema
    from tamis.language.ast import Condition


def write_forest(forest: Forest) -> list[str]:
    """The expressions as text."""
    texts = _write_predicates(forest.predicates)
    for number, level in enumerate(forest.levels):
        texts = _write_level(level, texts, are_predicates=number == 0)
    return texts if forest.levels else [texts[root] for root in forest.roots.tolist()]


def _write_predicates(predicates: Predicates) -> list[str]:
    rows = zip(*(array.tolist() for array in predicates), strict=True)
    kinds = list(PREDICATE_SHARES)
    texts = []
    for dimension, operator, numbers, n_members in rows:
        kind = kinds[operator]
        if kind == "BETWEEN":
            texts.append(f"d{dimension} BETWEEN {numbers[0]} AND {numbers[1]}")
        elif kind in ("IN", "NOT IN"):
            members = ", ".join(map(str, numbers[:n_members]))
            texts.append(f"d{dimension} {kind} ({members})")
        else:
            texts.append(f"d{dimension} {kind} {numbers[0]}")
    return texts


def _write_level(level: Level, below: list[str], *, are_predicates: bool) -> list[str]:
    """The nodes of a level, given the texts of the pool below."""
    enclosed = [f"({text})" for text in below]
    operands = below if are_predicates else enclosed
    children = level.children.tolist()
    starts = level.child_starts.tolist()
    texts = []
    for operator, start, end in zip(level.operators.tolist(), starts, starts[1:], strict=False):
        members = children[start:end]
        if operator == DRAWN_AND:
            texts.append(" AND ".join([operands[member] for member in members]))
        elif operator == DRAWN_OR:
            texts.append(" OR ".join([operands[member] for member in members]))
        elif operator == DRAWN_NOT:
            texts.append(f"NOT {enclosed[members[0]]}")
        else:
            texts.append(_write_parity(operator, [below[member] for member in members]))
    return texts


def _write_parity(operator: int, operands: list[str]) -> str:
    name = "XOR" if operator == DRAWN_XOR else "XNOR"
    if len(operands) == 2:
        return f"({operands[0]}) {name} ({operands[1]})"
    return f"{name.lower()}({', '.join(operands)})"


def join_forest(forest: Forest, schema: Schema) -> list[Condition]:
    """The expressions as typed conditions; equal parts are one object."""
    texts = _write_predicates(forest.predicates)
    nodes: list[Condition] = [check(parse(text), schema) for text in texts]
    for level in forest.levels:
        nodes = _join_level(level, nodes)
    return nodes if forest.levels else [nodes[root] for root in forest.roots.tolist()]


def _join_level(level: Level, below: list[Condition]) -> list[Condition]:
    """The nodes of a level, given those of the pool below."""
    children = level.children.tolist()
    starts = level.child_starts.tolist()
    nodes = []
    for operator, start, end in zip(level.operators.tolist(), starts, starts[1:], strict=False):
        nodes.append(_join(operator, tuple([below[child] for child in children[start:end]])))
    return nodes


def _join(operator: int, operands: tuple[Condition, ...]) -> Condition:
    if operator == DRAWN_AND:
        return And(operands)
    if operator == DRAWN_OR:
        return Or(operands)
    if operator == DRAWN_NOT:
        return Not(operands[0])
    return Xor(operands) if operator == DRAWN_XOR else Xnor(operands)


# ── measuring ───────────────────────────────────────────────────────────────────────────────


class LevelSharing(NamedTuple):
    """How often the nodes of a level are used (A-Tree §6.2)."""

    level: int
    n_uses: int
    n_distinct: int

    @property
    def ratio(self) -> float:
        """Uses per distinct node."""
        return self.n_uses / max(1, self.n_distinct)


def measure_sharing(forest: Forest) -> list[LevelSharing]:
    """Uses and distinct nodes of each level, in the fully written expressions."""
    pools = [_write_predicates(forest.predicates)]
    for number, level in enumerate(forest.levels):
        pools.append(_write_level(level, pools[-1], are_predicates=number == 0))
    n_uses = np.bincount(forest.roots, minlength=len(pools[-1])).astype(np.int64)
    found = [_count_uses(len(pools), pools[-1], n_uses)]
    for number in range(len(pools) - 1, 0, -1):
        level = forest.levels[number - 1]
        by_child = np.repeat(n_uses, np.diff(level.child_starts))
        n_uses = np.zeros(len(pools[number - 1]), dtype=np.int64)
        np.add.at(n_uses, level.children, by_child)
        found.append(_count_uses(number, pools[number - 1], n_uses))
    return found[::-1]


def _count_uses(level: int, texts: list[str], n_uses: Ints) -> LevelSharing:
    used: set[str] = {texts[number] for number in np.flatnonzero(n_uses).tolist()}
    return LevelSharing(level, int(n_uses.sum()), len(used))
