"""Prints nodes as expressions: the test of a leaf, the condition of an inner node.

A leaf is not stored as text. Its test follows from its position in the arrays: the codes that make
it true, its threshold, the leaf of which it is the complement, or its pattern.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.index.columns import ARRAY, ELEMENTS, PAIR, PATTERN, TEXT
from tamis.index.elements import read_test
from tamis.index.numbers import ENTRY_FIRST, ENTRY_LAST, ENTRY_PIVOT, ENTRY_PIVOT_UNDER
from tamis.language.ast import ArraysOverlap, Comparison, Condition, IsNull, Literal, Not, Words
from tamis.language.comparators import Comparator
from tamis.language.printer import print_expression
from tamis.language.types import (
    DOUBLE,
    FLOAT,
    INTEGER,
    NUMBER,
    decimal_digits,
    decimal_type,
    round_to_float,
)
from tamis.logic.leaves import FALSE, TRUE, inverse, one_of
from tamis.text.terms import read_term

if TYPE_CHECKING:
    from tamis.index.columns import Column
    from tamis.index.constants import Constants
    from tamis.index.contents import Contents
    from tamis.index.graph import Graph
    from tamis.kernels.arrays import Int32, Int64

WIDTH: Final = 80
MEMBERS: Final = 1_000  # members of an IN list that are printed; no label shows more
_PAIR_BOUNDS: Final = (Comparator.BELOW, Comparator.AT_MOST)


def _literal(value: Any, column: Column) -> Literal:
    """A constant of the column, typed as by `fit_literal`: an integer need not become a float."""
    if column.type == FLOAT and round_to_float(value) != value:
        return Literal(int(value), INTEGER)
    if column.type != NUMBER:
        return Literal(value, column.type)
    if isinstance(value, Decimal):
        before, after = decimal_digits(value)
        return Literal(value, decimal_type(max(1, before + after), after))
    return Literal(value, INTEGER if isinstance(value, int) else DOUBLE)


def _numbers_of(places: list[int], constants: Constants) -> list[Any]:
    """The constants equal to values with any of these codes; see `index.numbers`."""
    run = slice(constants.begin, constants.end)
    kinds = constants.arrays.number_kinds[run]
    found: list[Any] = []
    last = -1  # of the codes equal to the double found last
    for place in places:
        entry = place // 2
        if place <= last or kinds[entry] in (ENTRY_PIVOT, ENTRY_PIVOT_UNDER):
            continue
        found.append(constants[entry])
        if kinds[entry] == ENTRY_FIRST:
            last = 2 * (entry + int(np.argmax(kinds[entry:] == ENTRY_LAST))) + 1
    return found


class LeafReader:
    """The tests of leaves, reconstructed from the arrays of an index."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents

    def read(self, leaf: int) -> Condition:
        """The test of the leaf; FALSE for a leaf that no event makes true."""
        complements = self._complements
        if leaf in complements:
            base, column = complements[leaf]
            return self._complement(base, column)
        if leaf in self._presence:
            column, is_absent = self._presence[leaf]
            return IsNull(self.contents.columns[column].attributes[0], negated=not is_absent)
        if leaf in self._patterns:
            return self._patterns[leaf]
        codes, postings_of = self._posting_order
        begin, end = np.searchsorted(postings_of, (leaf, leaf + 1))
        if begin < end:
            return self._member(codes[begin : min(end, begin + MEMBERS)])
        if leaf in self._thresholds:
            return self._bound(self._thresholds[leaf])
        return FALSE

    def _complement(self, base: int, column: int) -> Condition:
        condition = self.read(base)
        if column < 0:  # NOT that is also true on a missing attribute
            return TRUE if condition == FALSE else Not(condition)
        if condition == FALSE:  # not one of no values: true if there is a value
            return one_of(self.contents.columns[column].attributes[0], (), is_negated=True)
        return inverse(condition)

    def _member(self, codes: Int64) -> Condition:
        column = self._column_of(int(codes[0]))
        if column.kind == PAIR:
            left, right = column.attributes
            return Comparison(Comparator.EQUAL, left, right)
        first = int(self.contents.leaves.column_codes[self._column_id(int(codes[0]))])
        # A constant c_i has the code 2i + 1.
        assert column.constants is not None
        places = [int(code) - first for code in codes]
        if column.type == NUMBER:
            values = _numbers_of(places, column.constants)
        else:
            values = [column.constants[place // 2] for place in places]
        if column.kind == TEXT:
            return Words(column.attributes[0], *read_term(values[0], column.type.analyser))
        attribute = column.attributes[0]
        if column.kind == ELEMENTS:
            return read_test(values, attribute)
        literals = tuple(_literal(value, column) for value in values)
        if column.kind == ARRAY:
            return ArraysOverlap(attribute, literals)
        return one_of(attribute, literals)

    def _bound(self, threshold: int) -> Condition:
        leaves = self.contents.leaves
        column_id = int(np.searchsorted(leaves.column_thresholds, threshold, side="right")) - 1
        column = self.contents.columns[column_id]
        first, end = leaves.column_codes[column_id : column_id + 2].tolist()
        # The leaf is `code <= highest`; slots ascend with the codes.
        highest = int(np.searchsorted(leaves.code_slots[first:end], threshold, side="right")) - 1
        if column.kind == PAIR:
            left, right = column.attributes
            return Comparison(_PAIR_BOUNDS[highest], left, right)
        operator = Comparator.AT_MOST if highest % 2 else Comparator.BELOW
        assert column.constants is not None
        literal = _literal(column.constants[highest // 2], column)
        return Comparison(operator, column.attributes[0], literal)

    # ── the place of a leaf ────────────────────────────────────────────────────────────────

    def _column_id(self, code: int) -> int:
        starts = self.contents.leaves.column_codes
        return int(np.searchsorted(starts, code, side="right")) - 1

    def _column_of(self, code: int) -> Column:
        return self.contents.columns[self._column_id(code)]

    @cached_property
    def _posting_order(self) -> tuple[Int64, Int32]:
        """Codes by the leaf they make true, and those leaves."""
        leaves = self.contents.leaves
        counts = np.diff(leaves.posting_starts)
        codes = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        order = np.argsort(leaves.posting_leaves, kind="stable")
        return codes[order], leaves.posting_leaves[order]

    @cached_property
    def _thresholds(self) -> dict[int, int]:
        return {leaf: at for at, leaf in enumerate(self.contents.leaves.threshold_leaves.tolist())}

    @cached_property
    def _complements(self) -> dict[int, tuple[int, int]]:
        """The base of each complement, and the column that an event must have; -1 for none."""
        leaves = self.contents.leaves
        counts = np.diff(leaves.column_complements, append=len(leaves.complement_leaves))
        columns = np.repeat(np.append(np.arange(len(counts) - 1), -1), counts)
        pairs = zip(leaves.complement_bases.tolist(), columns.tolist(), strict=True)
        return dict(zip(leaves.complement_leaves.tolist(), pairs, strict=True))

    @cached_property
    def _presence(self) -> dict[int, tuple[int, bool]]:
        leaves = self.contents.leaves
        found = {
            leaf: (column, is_absent)
            for is_absent, array in ((False, leaves.present_leaves), (True, leaves.absent_leaves))
            for column, leaf in enumerate(array.tolist())
        }
        found.pop(-1, None)
        return found

    @cached_property
    def _patterns(self) -> dict[int, Condition]:
        return {
            leaf: pattern
            for column in self.contents.columns
            if column.kind == PATTERN
            for leaf, pattern in zip(column.pattern_leaves.tolist(), column.patterns, strict=True)
        }


class NodeDescriber:
    """Short texts of nodes, for labels and tables."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.leaves = LeafReader(graph.contents)

    def label(self, node: int, width: int = WIDTH) -> str:
        """The node as an expression, truncated if it is too long."""
        text = self._spell(node, width + 1, is_inside=False)
        return text if len(text) <= width else text[: width - 1] + "…"

    def _spell(self, node: int, room: int, *, is_inside: bool) -> str:
        graph = self.graph
        if graph.is_leaf(node):
            return print_expression(self.leaves.read(node))
        operator, operands = graph.operator(node), graph.children(node)
        if operator in ("XOR", "XNOR"):
            operands = operands[::2]  # true sides; the other side of each pair is the false one
        parts: list[str] = []
        for operand in operands:
            # Less room at each level, so that the text ends at any depth.
            parts.append(self._spell(operand, room - 2, is_inside=True))
            room -= len(parts[-1]) + len(operator)
            if room < 0:  # the rest would be cut off
                break
        if operator in ("AND", "OR"):
            text = f" {operator} ".join(parts)
            return f"({text})" if is_inside else text
        listed = ", ".join(parts)
        if operator.startswith("at_least"):
            return f"{operator.removesuffix(')')}, {listed})"
        return f"{operator.lower()}({listed})"
