"""Which tests of its elements an array satisfies: the elements are matched like events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tamis.events.arrow import read_table
from tamis.events.entries import NO_MARKS, Entries, EventValues
from tamis.events.event_arrays import ColumnCodes
from tamis.events.mappings import read_mappings
from tamis.events.rejects import Rejects
from tamis.index.carriers import carrier_of
from tamis.index.elements import EMPTY, conditions_of, is_forall
from tamis.language.lambdas import ELEMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.events.attributes import AttributeTable
    from tamis.events.entries import Marks
    from tamis.events.pairs import AttributeValues
    from tamis.index.columns import Column
    from tamis.index.contents import Contents
    from tamis.kernels.arrays import Int32, Int64
    from tamis.language.schema import Path
    from tamis.language.types import Type

    MakeMatcher = Callable[[Contents], "ElementMatcher"]


class ElementMatcher(Protocol):
    """Matches elements against the index of an elements column. Threads share it."""

    table: AttributeTable  # of the elements

    def match_many(self, elements: EventValues) -> tuple[Int64, Int32]:
        """Pairs of an element, by row, and a condition that it satisfies, by ordinal."""

    def match_one(self, element: Any, rejects: Rejects | None) -> Int32:
        """The conditions that an element satisfies, each once; NULL is an element too."""


class ElementColumn(NamedTuple):
    """A column whose codes are the tests that the elements of an array satisfy."""

    column: int
    attribute: int
    path: Path
    type: Type  # of the elements
    codes: Int32  # of each condition
    needs_all: np.ndarray  # bool[n_conditions]: all elements must satisfy it
    empty_code: int  # of an array without elements; -1 if that is not tested
    matcher: ElementMatcher

    @classmethod
    def of(
        cls, at: int, attribute: int, column: Column, first_code: int, make: MakeMatcher
    ) -> ElementColumn:
        """The column at a position, whose first code is given."""
        assert column.inner is not None
        type_ = column.attributes[0].type
        assert type_ is not None
        assert type_.element is not None
        constants = list(column.constants or ())
        # A constant c_i has the code 2i + 1.
        codes = {text: first_code + 2 * number + 1 for number, text in enumerate(constants)}
        tests = [constants[int(number)] for number in conditions_of(column)]
        return cls(
            at,
            attribute,
            column.attributes[0].path,
            type_.element,
            np.array([codes[own] for own in tests], dtype=np.int32),
            np.array([is_forall(own) for own in tests], dtype=np.bool_),
            codes.get(EMPTY, -1),
            make(column.inner),
        )

    # ── a batch ────────────────────────────────────────────────────────────────────────────

    def find(
        self, known: AttributeValues | None, marks: Marks, n_rows: int, rejects: Rejects
    ) -> tuple[ColumnCodes, ColumnCodes]:
        """The codes of the arrays of a batch, and their marks; `known` has the elements that are
        not NULL.
        """
        is_own = marks.attributes == self.attribute
        rows, has_null = marks.rows[is_own], marks.has_null[is_own].astype(np.bool_)
        own_rows = rows[:0] if known is None else known.rows
        # The truth of a condition is the same for all NULLs of an array: one stands for all.
        parents = np.concatenate((own_rows, rows[has_null]))
        found = self._match(known, parents, rejects)
        sizes = np.bincount(parents, minlength=n_rows)
        events, codes = self._collect(*found, parents, sizes)
        if self.empty_code >= 0:
            empty = rows[sizes[rows] == 0]
            events = np.concatenate((events, empty))
            codes = np.concatenate((codes, np.full(len(empty), self.empty_code, dtype=np.int32)))
        columns = np.full(len(events), self.column, dtype=np.int32)
        present = np.full(len(rows), self.column, dtype=np.int32)
        no_nulls = np.zeros(len(rows), dtype=np.int32)
        return ColumnCodes(events, columns, codes), ColumnCodes(rows, present, no_nulls)

    def _match(
        self, known: AttributeValues | None, parents: Int32, rejects: Rejects
    ) -> tuple[Int64, Int32]:
        own_rejects = Rejects()
        values = self._as_events(known, len(parents), own_rejects)
        found = self.matcher.match_many(values)
        rejects.add_elements(self.path, own_rejects, parents)
        return found

    def _as_events(
        self, known: AttributeValues | None, n_elements: int, rejects: Rejects
    ) -> EventValues:
        entries = {}
        if self.type.name == "struct":
            return self._read_structs(known, n_elements, rejects)
        paths = self.matcher.table.paths
        if known is not None and (ELEMENT,) in paths:
            rows = np.arange(len(known.rows), dtype=np.int32)
            numbers = np.full(len(rows), paths.index((ELEMENT,)), dtype=np.int32)
            entries[carrier_of(self.type)] = Entries(rows, numbers, known.values)
        return EventValues(n_elements, entries, NO_MARKS, rejects)

    def _read_structs(
        self, known: AttributeValues | None, n_elements: int, rejects: Rejects
    ) -> EventValues:
        """The fields of structs as the attributes of events."""
        source: Any = [] if known is None else known.values.collect()
        if isinstance(source, pa.Array):
            table = pa.table({ELEMENT: source})
            values = read_table(table, self.matcher.table, rejects)
        else:
            events = [{ELEMENT: own} for own in source]
            values = read_mappings(events, self.matcher.table, rejects)
        return values._replace(n_rows=n_elements)

    def _collect(
        self, elements: Int64, conditions: Int32, parents: Int32, sizes: np.ndarray
    ) -> tuple[Int32, Int32]:
        """The events and the codes of the tests that they satisfy."""
        n_conditions = max(1, len(self.codes))
        pairs = parents[elements].astype(np.int64) * n_conditions + conditions
        distinct, counts = np.unique(pairs, return_counts=True)
        events, numbers = np.divmod(distinct, n_conditions)
        is_true = ~self.needs_all[numbers] | (counts == sizes[events])
        return events[is_true].astype(np.int32), self.codes[numbers[is_true]]

    # ── one event ──────────────────────────────────────────────────────────────────────────

    def find_one(self, elements: Sequence[Any], rejects: Rejects | None) -> list[int]:
        """The codes of one array."""
        if not elements:
            return [self.empty_code] if self.empty_code >= 0 else []
        own_rejects = None if rejects is None else Rejects()
        found = np.concatenate([self.matcher.match_one(own, own_rejects) for own in elements])
        counts = np.bincount(found, minlength=len(self.codes))
        if rejects is not None and own_rejects is not None:
            parents = np.zeros(len(elements), dtype=np.int32)
            rejects.add_elements(self.path, own_rejects, parents, is_batch=False)
        is_true = (counts == len(elements)) | ((counts > 0) & ~self.needs_all)
        codes: list[int] = self.codes[is_true].tolist()
        return codes
