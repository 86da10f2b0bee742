"""Converts typed values to the codes of one part of an index."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tamis.events.event_arrays import ColumnCodes, EventArrays, TextLeaves, assemble
from tamis.events.kernels.distinct import number_texts
from tamis.events.pairs import compare_attributes, find_attributes, pick_attributes
from tamis.events.part_coder import PartCoder, PartPatterns
from tamis.events.plan import EncodingPlan
from tamis.events.ranks import Ranking
from tamis.events.surrounding_blanks import find_padded
from tamis.index.carriers import TEXTS, frozen, text_buffers
from tamis.index.patterns.kernels.matching import TextBytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.events.attributes import AttributeTable
    from tamis.events.elements import MakeMatcher
    from tamis.events.entries import EventValues
    from tamis.events.oddities import Padded
    from tamis.events.pairs import AttributePlaces, AttributeValues
    from tamis.events.plan import PairColumn, PatternColumn, TextColumn
    from tamis.index.contents import Contents
    from tamis.kernels.arrays import Int32, Int64, UInt8
    from tamis.language.schema import Path


class PartEncoder:
    """Encodes events for one part of an index. Immutable: threads share it."""

    def __init__(
        self, contents: Contents, table: AttributeTable, match_elements: MakeMatcher | None
    ) -> None:
        """`table` has the attributes of all parts, with their types."""
        self.table = table.only(contents.columns)
        codes = contents.leaves.column_codes
        self._plan = EncodingPlan(contents.columns, codes, self.table, match_elements)
        self._ranking = Ranking(self._plan.own_columns, self._plan.first_codes, contents.constants)

    def make_coder(self, forms: UInt8, numbers: Int32 | None) -> PartCoder:
        """Codes single events, given all attributes and their numbers here."""
        return PartCoder(self._plan, self._ranking, self._patterns, forms, numbers)

    @cached_property
    def _patterns(self) -> PartPatterns:
        return PartPatterns(self._plan)

    @property
    def kept(self) -> set[int]:
        """The attributes whose values are needed by more than their own columns and patterns."""
        kept = {column.attribute for column in self._plan.texts}
        kept.update(column.attribute for column in self._plan.elements)
        return kept.union(*((pair.left, pair.right) for pair in self._plan.pairs))

    @property
    def folded(self) -> set[int]:
        """The attributes whose patterns read lower case."""
        return {own.attribute for own in self._plan.patterns if own.matcher.reads_folded}

    def encode_values(self, values: EventValues) -> EventArrays:
        """All columns of a batch as codes; attributes have the numbers of this part's table."""
        plan = self._plan
        picked = pick_attributes(values, plan.asked_more, len(plan.own_numbers))
        found = [self._encode_own(carrier, values) for carrier in values.entries]
        texts = _Texts(plan.n_codes)
        searched = [pattern.attribute for pattern in plan.patterns]
        places = find_attributes(values, searched, len(plan.own_numbers))
        found.extend(
            texts.encode(places[pattern.attribute], pattern)
            for pattern in plan.patterns
            if pattern.attribute in places
        )
        found.extend(
            self._encode_pair(pair, picked, values.n_rows)
            for pair in plan.pairs
            if pair.left in picked and pair.right in picked
        )
        marks = [self._encode_marks(values)]
        for column in plan.texts:
            if column.attribute in picked:
                terms, present = _encode_terms(picked[column.attribute], column)
                found.append(terms)
                marks.append(present)
        for elements in plan.elements:
            known = picked.get(elements.attribute)
            tests, present = elements.find(known, values.marks, values.n_rows, values.rejects)
            found.append(tests)
            marks.append(present)
        return assemble(values.n_rows, found, texts.finish(), marks)

    def find_padded(self, values: EventValues) -> Iterable[tuple[Path, Padded]]:
        """Attributes whose texts fail a test only because of surrounding blanks."""
        texts = values.entries.get(TEXTS)
        if texts is not None:
            for attribute, found in find_padded(texts, self._plan, self._ranking):
                yield self.table.paths[attribute], found

    def _encode_own(self, carrier: str, values: EventValues) -> ColumnCodes:
        """Scalar columns, and the elements of array columns."""
        entries = values.entries[carrier]
        columns = self._plan.own_numbers[entries.attributes]
        found = ColumnCodes(entries.rows, columns, self._ranking.rank(carrier, entries))
        return self._keep_own(found)

    def _encode_pair(
        self, pair: PairColumn, picked: dict[int, AttributeValues], n_rows: int
    ) -> ColumnCodes:
        type_of = self._plan.type_of
        left, right = picked[pair.left], picked[pair.right]
        rows, codes = compare_attributes(
            left, type_of(pair.left), right, type_of(pair.right), n_rows
        )
        columns = np.full(len(rows), pair.column, dtype=np.int32)
        return ColumnCodes(rows, columns, codes + np.int32(pair.first_code))

    def _encode_marks(self, values: EventValues) -> ColumnCodes:
        marks = values.marks
        columns = self._plan.own_numbers[marks.attributes]
        return self._keep_own(ColumnCodes(marks.rows, columns, marks.has_null.astype(np.int32)))

    def _keep_own(self, found: ColumnCodes) -> ColumnCodes:
        """The codes without those of attributes for which the part has no column."""
        is_own = found.columns >= 0
        if is_own.all():
            return found
        return ColumnCodes(found.rows[is_own], found.columns[is_own], found.codes[is_own])


def _encode_terms(texts: AttributeValues, column: TextColumn) -> tuple[ColumnCodes, ColumnCodes]:
    """The terms of each text, and a mark that the text is present: it may have no terms."""
    places, codes = column.find(*text_buffers(texts.values))
    of_column = np.full(len(codes), column.column, dtype=np.int32)
    n_texts = len(texts.rows)
    marks = ColumnCodes(
        texts.rows,
        np.full(n_texts, column.column, dtype=np.int32),
        np.zeros(n_texts, dtype=np.int32),
    )
    return ColumnCodes(texts.rows[places], of_column, codes), marks


class _Texts:
    """The distinct texts of a batch and the leaves they satisfy, over all pattern columns."""

    def __init__(self, n_codes: int) -> None:
        self._next_code = n_codes
        self._n_leaves = 0
        self._starts = [np.zeros(1, dtype=np.int64)]
        self._leaves = [np.empty(0, dtype=np.int32)]

    def encode(self, found: AttributePlaces, pattern: PatternColumn) -> ColumnCodes:
        """A new code for each distinct text, so that each is matched once."""
        entries, places = found
        offsets, data = text_buffers(entries.values)
        codes, firsts = _number_texts(offsets, data, places)
        texts = TextBytes(data, frozen(offsets[firsts]), frozen(offsets[firsts + 1]))
        starts, leaves = pattern.matcher.match_bytes(texts)
        self._starts.append(self._n_leaves + starts[1:])
        self._leaves.append(leaves)
        self._n_leaves += len(leaves)
        codes += np.int32(self._next_code)
        self._next_code += len(firsts)
        columns = np.full(len(codes), pattern.column, dtype=np.int32)
        return ColumnCodes(entries.rows[places], columns, codes)

    def finish(self) -> TextLeaves:
        """The leaves of all texts."""
        return TextLeaves(np.concatenate(self._starts), np.concatenate(self._leaves))


def _number_texts(offsets: Int64, data: UInt8, places: Int64) -> tuple[Int32, Int64]:
    """The number of each text among the distinct ones, and the first place of each of these."""
    n = len(places)
    slots = np.full(1 << (2 * n).bit_length(), -1, dtype=np.int64)
    numbers, firsts = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
    hashes = np.empty(n, dtype=np.uint64)
    n_distinct = number_texts(offsets, data, places, slots, hashes, firsts, numbers)
    return numbers, firsts[:n_distinct]
