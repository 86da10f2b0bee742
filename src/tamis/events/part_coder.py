"""Converts single events to the codes of one part of an index."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.events.event_arrays import EventArrays
from tamis.events.kernels.single import (
    N_ENTRIES,
    N_MARKS,
    N_TEXTS,
    PartRanks,
    encode_event_values,
)
from tamis.events.single_space import PartBuffer
from tamis.index.carriers import frozen
from tamis.index.patterns.kernels.automaton import N_FIELDS, Automaton
from tamis.index.patterns.kernels.matching import (
    N_LEAVES,
    N_LITERAL_FIELDS,
    N_PAIRS,
    Candidates,
    Literals,
    Search,
)
from tamis.index.patterns.kernels.skipping import LEAST_SHIFTS, N_SIZES, Skips
from tamis.kernels.records import Records, bind
from tamis.logic.comparing import compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.events.plan import EncodingPlan
    from tamis.events.ranks import Ranking
    from tamis.events.rejects import Rejects
    from tamis.events.single_space import EventBuffer
    from tamis.kernels.arrays import Int32, UInt8

_NO_EXTRAS: Final = (0, 0)


@cache
def no_patterns() -> Search:
    """The search for no patterns, which are never read; a kernel needs their types."""

    def empty(dtype: Any, *shape: int) -> np.ndarray:
        return frozen(np.zeros(shape, dtype=dtype))

    automaton = Automaton(empty(np.int32, 2, N_FIELDS), empty(np.uint8, 256), empty(np.int32, 1, 1))
    literals = Literals(empty(np.int32, 0, N_LITERAL_FIELDS), empty(np.int32, 0, 2))
    candidates = Candidates(
        patterns=empty(np.int32, 0),
        tests=empty(np.uint8, 0),
        leaves=empty(np.int32, 0),
        min_lengths=empty(np.int64, 0),
        clause_starts=empty(np.int32, 1),
        literal_starts=empty(np.int32, 1),
        literals=empty(np.int32, 0),
        token_starts=empty(np.int32, 1),
        tokens=empty(np.int16, 0),
        always=empty(np.int32, 0),
    )
    skips = Skips(empty(np.uint8, LEAST_SHIFTS), empty(np.int64, N_SIZES))
    return Search(automaton, automaton, literals, candidates, skips, skips)


class PartPatterns:
    """The patterns of one part, and scratch to match them. Threads share it."""

    def __init__(self, plan: EncodingPlan) -> None:
        self.matchers = [column.matcher for column in plan.patterns]
        self.arrays = [own.search for own in self.matchers] or [no_patterns()]
        self.records = Records(self.arrays)
        self._columns = [column.column for column in plan.patterns]
        self._n_codes = plan.n_codes
        self._n_patterns = sum(own.n_patterns for own in self.matchers)
        self._buffers: list[PartBuffer] = []

    def take(self) -> PartBuffer:
        """Scratch for one event; the caller gives it back."""
        try:
            return self._buffers.pop()
        except IndexError:
            return self.make_buffer()

    def make_buffer(self) -> PartBuffer:
        """New scratch."""
        return PartBuffer(self.arrays, self._n_patterns)

    def give_back(self, buffer: PartBuffer) -> None:
        """Return scratch for reuse."""
        self._buffers.append(buffer)

    def settle(self, event: EventBuffer, buffer: PartBuffer) -> None:
        """Test the regular expressions that are left, and add the leaves of those found."""
        space, counts = buffer.space, buffer.counts
        hits: dict[int, list[int]] = {}  # leaves by pattern column
        for own, candidate in space.found.pairs[: counts[N_PAIRS]].tolist():
            text = event.text(*space.spans[own].tolist())
            if self.matchers[own].find_regex(candidate, text):
                leaf = int(self.arrays[own].candidates.leaves[candidate])
                hits.setdefault(own, []).append(leaf)
        counts[N_PAIRS] = 0
        for own, leaves in hits.items():
            self._add_text(own, leaves, event, buffer)

    def _add_text(
        self, own: int, leaves: list[int], event: EventBuffer, buffer: PartBuffer
    ) -> None:
        """Add leaves as those of one more text of the column."""
        space, counts = buffer.space, buffer.counts
        n_leaves, n_texts, n_entries = (int(counts[at]) for at in (N_LEAVES, N_TEXTS, N_ENTRIES))
        end = n_leaves + len(leaves)
        space.found.leaves[n_leaves:end] = leaves
        space.text_starts[n_texts + 1] = end
        event.space.columns[n_entries] = self._columns[own]
        event.space.codes[n_entries] = self._n_codes + n_texts
        event.space.row_starts[1] = n_entries + 1
        counts[N_LEAVES], counts[N_TEXTS], counts[N_ENTRIES] = end, n_texts + 1, n_entries + 1


class PartCoder:
    """Codes single events, given the numbers of the part's attributes among all. Threads share
    it.
    """

    def __init__(
        self,
        plan: EncodingPlan,
        ranking: Ranking,
        patterns: PartPatterns,
        forms: UInt8,  # of all attributes
        numbers: Int32 | None,  # the part's attribute of each; None if they are the same
    ) -> None:
        if numbers is None:
            numbers = np.arange(len(forms), dtype=np.int32)
        self.plan, self.patterns = plan, patterns
        self._ranking = ranking
        self._numbers: list[int] = numbers.tolist()
        self.has_extras = bool(plan.pairs or plan.texts or plan.elements)
        own_patterns = np.full(len(plan.own_numbers), -1, dtype=np.int32)
        for at, column in enumerate(plan.patterns):
            own_patterns[column.attribute] = at
        matchers = patterns.matchers
        self.records = Records(
            [
                PartRanks(
                    frozen(forms),
                    frozen(numbers),
                    frozen(plan.own_numbers),
                    ranking.rank_arrays(),
                    frozen(own_patterns),
                    frozen(np.array([own.column for own in plan.patterns], dtype=np.int32)),
                    frozen(np.array([own.reads_plain for own in matchers], dtype=np.uint8)),
                    frozen(np.array([own.reads_folded for own in matchers], dtype=np.uint8)),
                    frozen(np.array([plan.n_codes], dtype=np.int64)),
                )
            ]
        )

    def add_extras(self, event: EventBuffer) -> tuple[int, int]:
        """Write the codes that no kernel computes to the event; return the numbers of codes and
        marks.
        """
        if not self.has_extras and not event.exact:
            return _NO_EXTRAS
        columns: list[int] = []
        codes: list[int] = []
        marks: list[int] = []
        self._rank_exact(event.exact, columns, codes)
        if event.typed:
            typed = {self._numbers[attribute]: value for attribute, value in event.typed.items()}
            self._find_terms(typed, columns, codes, marks)
            self._find_elements(typed, event.rejects, columns, codes, marks)
            self._compare_pairs(typed, columns, codes)
        event.reserve(event.n_words + len(codes) + len(marks), 0, 0)
        event.space.columns[: len(columns)] = columns
        event.space.codes[: len(codes)] = codes
        event.space.mark_columns[: len(marks)] = marks
        event.space.mark_has_null[: len(marks)] = 0
        return len(codes), len(marks)

    def _rank_exact(
        self, exact: Sequence[tuple[int, Any]], columns: list[int], codes: list[int]
    ) -> None:
        for attribute, value in exact:
            own = self._numbers[attribute]
            column = int(self.plan.own_numbers[own])
            if column >= 0:
                columns.append(column)
                codes.append(self._ranking.rank_number(own, value))

    def _find_elements(
        self,
        typed: dict[int, Any],
        rejects: Rejects | None,
        columns: list[int],
        codes: list[int],
        marks: list[int],
    ) -> None:
        for column in self.plan.elements:
            if column.attribute in typed:
                found = column.find_one(typed[column.attribute], rejects)
                columns.extend([column.column] * len(found))
                codes.extend(found)
                marks.append(column.column)

    def _find_terms(
        self, typed: dict[int, Any], columns: list[int], codes: list[int], marks: list[int]
    ) -> None:
        for column in self.plan.texts:
            if column.attribute in typed:
                data = np.frombuffer(typed[column.attribute].encode(), dtype=np.uint8)
                _, found = column.find(np.array((0, len(data)), dtype=np.int64), data)
                columns.extend([column.column] * len(found))
                codes.extend(found.tolist())
                marks.append(column.column)

    def _compare_pairs(self, typed: dict[int, Any], columns: list[int], codes: list[int]) -> None:
        for pair in self.plan.pairs:
            if pair.left in typed and pair.right in typed:
                type_ = self.plan.common_type(pair)
                columns.append(pair.column)
                codes.append(
                    pair.first_code + 1 + compare(typed[pair.left], typed[pair.right], type_)
                )

    def encode(self, event: EventBuffer) -> EventArrays:
        """The event as a batch of one row."""
        buffer = self.patterns.take()
        n_entries, n_marks = self.add_extras(event)
        records = (
            self.records,
            self.patterns.records,
            buffer.scratches,
            buffer.records,
            event.records,
        )
        enter = bind(encode_event_values, records, 3)
        enter(*(own.address for own in records), event.n_words, n_entries, n_marks)
        if buffer.counts[N_PAIRS]:
            self.patterns.settle(event, buffer)
        arrays = _copy_arrays(event, buffer)
        self.patterns.give_back(buffer)
        return arrays


def _copy_arrays(event: EventBuffer, buffer: PartBuffer) -> EventArrays:
    counts, own, space = buffer.counts.tolist(), event.space, buffer.space
    n_entries, n_marks = counts[N_ENTRIES], counts[N_MARKS]
    starts = space.text_starts[: counts[N_TEXTS] + 1].copy()
    return EventArrays(
        own.row_starts.copy(),
        own.columns[:n_entries].copy(),
        own.codes[:n_entries].copy(),
        starts,
        space.found.leaves[: starts[-1]].copy(),
        own.mark_starts.copy(),
        np.zeros(n_marks, dtype=np.int32),
        own.mark_columns[:n_marks].copy(),
        own.mark_has_null[:n_marks].copy(),
    )
