"""The facts about an index's columns that an encoder needs, by attribute."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.events.elements import ElementColumn
from tamis.index.columns import ELEMENTS, PAIR, PATTERN, TEXT
from tamis.index.patterns import PatternMatcher
from tamis.language.ast import Derived, sources
from tamis.logic.comparing import common_type
from tamis.text import get_analyser
from tamis.text.finder import TermFinder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.events.attributes import AttributeTable
    from tamis.events.elements import MakeMatcher
    from tamis.index.columns import Column
    from tamis.kernels.arrays import Int32, Int64, UInt8
    from tamis.language.schema import Path
    from tamis.language.types import Type


class PatternColumn(NamedTuple):
    """A column whose codes are the distinct texts of a batch."""

    column: int
    attribute: int
    matcher: PatternMatcher


class TextColumn(NamedTuple):
    """A column whose codes are the terms in a text."""

    column: int
    attribute: int
    first_code: int
    finder: TermFinder

    def find(self, offsets: Int64, data: UInt8) -> tuple[Int32, Int32]:
        """The texts, by number, and the codes of the terms in them."""
        texts, terms = self.finder.find(offsets, data)
        # A constant c_i has the code 2i + 1.
        return texts, 2 * terms + np.int32(self.first_code + 1)


class PairColumn(NamedTuple):
    """A column that compares two attributes."""

    column: int
    first_code: int
    left: int  # attributes
    right: int


class EncodingPlan:
    """The columns of an index, by their attributes."""

    def __init__(
        self,
        columns: Sequence[Column],
        column_codes: Int64,
        table: AttributeTable,
        match_elements: MakeMatcher | None,
    ) -> None:
        """`table` has the attributes of the columns."""
        self.table = table
        self.n_codes = int(column_codes[-1])
        self.patterns: list[PatternColumn] = []
        self.texts: list[TextColumn] = []
        self.elements: list[ElementColumn] = []
        self.pairs: list[PairColumn] = []
        self.derived: dict[int, Derived] = {}  # derived values, by attribute
        # The scalar or array column of each attribute, if it has one, and its first code; the last
        # entry is for all attributes that the table does not have.
        self.own_columns: list[Column | None] = [None] * (len(self.table) + 1)
        self.own_numbers = np.full(len(self.table) + 1, -1, dtype=np.int32)
        self.first_codes = np.full(len(self.table) + 1, -1, dtype=np.int64)
        numbers = {path: number for number, path in enumerate(self.table.paths)}
        for at, column in enumerate(columns):
            attribute, *others = (numbers[a.path] for a in column.attributes)
            self.derived.update(
                (numbers[own.path], own) for own in column.attributes if isinstance(own, Derived)
            )
            if column.kind == PATTERN:
                assert column.pattern_arrays is not None
                matcher = PatternMatcher(column.patterns, column.pattern_arrays)
                self.patterns.append(PatternColumn(at, attribute, matcher))
            elif column.kind == TEXT:
                assert column.term_arrays is not None
                analyser = get_analyser(column.type.analyser)
                finder = TermFinder(analyser, column.term_arrays, column.n_constants)
                self.texts.append(TextColumn(at, attribute, int(column_codes[at]), finder))
            elif column.kind == ELEMENTS:
                assert match_elements is not None
                first = int(column_codes[at])
                self.elements.append(ElementColumn.of(at, attribute, column, first, match_elements))
            elif column.kind == PAIR:
                self.pairs.append(PairColumn(at, int(column_codes[at]), attribute, others[0]))
            else:
                self.own_columns[attribute] = column
                self.own_numbers[attribute] = at
                self.first_codes[attribute] = column_codes[at]

    def type_of(self, attribute: int) -> Type:
        """The type of an attribute."""
        return self.table.types[attribute]

    def common_type(self, pair: PairColumn) -> Type | None:
        """The type in which two attributes are compared."""
        return common_type(self.type_of(pair.left), self.type_of(pair.right))

    @property
    def arguments(self) -> dict[Path, int]:
        """The attributes that derived values are computed from."""
        paths = {own.path for value in self.derived.values() for own in sources(value)}
        return {path: at for at, path in enumerate(self.table.paths) if path in paths}

    @property
    def asked_more(self) -> set[int]:
        """The attributes that are needed by more than their own columns and patterns."""
        asked = {column.attribute for column in self.texts}
        asked.update(column.attribute for column in self.elements)
        return asked.union(*((pair.left, pair.right) for pair in self.pairs))
