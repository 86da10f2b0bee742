"""Turns a `DagBuilder` into the arrays of an index: only used parts, numbered densely."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.index.carriers import DECIMALS, FLOATS, INTEGERS, TEXTS, carrier_of, texts_of
from tamis.index.columns import ARRAY, PAIR, PATTERN, SCALAR, Column
from tamis.index.constant_words import are_numbered, floats_of, texts_of_words
from tamis.index.constants import ConstantArrays, make_constants, split_constants
from tamis.index.dag_builder import read_spelled
from tamis.index.kernels import bases as form
from tamis.index.kernels.nodes import FALSE, TRUE, mark_reachable, renumber_children
from tamis.index.layout import LeafArrays, NodeArrays, RootArrays, run_starts
from tamis.index.numbers import lay_out, short_entries
from tamis.language.types import NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.index.dag_builder import DagBuilder
    from tamis.index.numbers import Entries
    from tamis.kernels.arrays import Int32

_WITH_VALUES = (form.ONE_OF, form.AT_MOST, form.BELOW)
_AT_ONCE = 1 << 20  # as many constants of leaves are ranked at once, or those of one column


class Finished(NamedTuple):
    """The arrays of an index."""

    columns: tuple[Column, ...]
    constants: ConstantArrays
    n_leaves: int
    leaves: LeafArrays
    nodes: NodeArrays
    roots: RootArrays
    never: Int32


def finish(builder: DagBuilder, roots: Int32) -> Finished:
    """The arrays of an index whose subscription i has the reference roots[i]; nothing more can be
    added.
    """
    builder.forget_tables()
    inner = builder.inner
    is_real = (roots != FALSE) & (roots != TRUE)
    is_reached = np.zeros(int(inner.n_inner[0]), dtype=np.uint8)
    is_named = np.zeros(2 * int(builder.bases.n_bases[0]), dtype=np.bool_)
    n_links = mark_reachable(inner, roots[is_real], is_reached, is_named)
    leaves = _needed_leaves(builder, is_named)
    columns, constants, arrays = _LeafWriter(builder, leaves).write()
    numbers = np.full(len(is_named), -1, dtype=np.int32)
    numbers[leaves] = np.arange(len(leaves), dtype=np.int32)
    inner_numbers = np.cumsum(is_reached, dtype=np.int32) + np.int32(len(leaves) - 1)
    kept = np.flatnonzero(is_reached)
    children = np.empty(n_links, dtype=np.int32)
    renumber_children(inner, kept, numbers, inner_numbers, children)
    sizes = np.diff(inner.child_starts[: len(is_reached) + 1])[kept]
    nodes = NodeArrays(inner.operators[kept], inner.required[kept], run_starts(sizes), children)

    def renumber(references: np.ndarray) -> Int32:
        found = np.empty(len(references), dtype=np.int32)
        is_leaf = references >= 0
        found[is_leaf] = numbers[references[is_leaf]]
        found[~is_leaf] = inner_numbers[-1 - references[~is_leaf]]
        return found

    ordinals = np.flatnonzero(is_real).astype(np.int32)
    grouped = _group_roots(ordinals, renumber(roots[ordinals]), np.flatnonzero(roots == TRUE))
    never = np.flatnonzero(roots == FALSE).astype(np.int32)
    return Finished(columns, constants, len(leaves), arrays, nodes, grouped, never)


def _runs(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The positions of many runs, concatenated."""
    ends = np.cumsum(sizes)
    places: np.ndarray = np.repeat(starts - (ends - sizes), sizes)
    places += np.arange(len(places))
    return places


def _needed_leaves(builder: DagBuilder, is_named: np.ndarray) -> np.ndarray:
    """The leaves that nodes use, and those of which they are complements."""
    bases = builder.bases
    is_needed = is_named.copy()
    while True:
        needed = np.flatnonzero(is_needed)
        is_complement = bases.forms[needed >> 1] == form.COMPLEMENT
        below = bases.values[bases.value_starts[needed[is_complement] >> 1]]
        is_needed[needed & ~1] = True
        is_needed[2 * below] = True
        if int(is_needed.sum()) == len(needed):
            return needed.astype(np.int32)


def _group_roots(ordinals: Int32, nodes: Int32, always: np.ndarray) -> RootArrays:
    """Subscriptions by their node."""
    order = np.argsort(nodes, kind="stable")
    in_order = nodes[order]
    first = np.flatnonzero(np.diff(in_order, prepend=-1))
    starts = run_starts(np.diff(np.append(first, len(ordinals))))
    return RootArrays(in_order[first], starts, ordinals[order], always.astype(np.int32))


class _Placed(NamedTuple):
    """The constants of all leaves of some columns, column by column, and the codes equal to them,
    counted from their column's first.
    """

    begin: int  # the columns
    end: int
    leaf_rows: np.ndarray  # int32[n], ascending in each column
    firsts: np.ndarray  # int32[n]
    lasts: np.ndarray  # int32[n]
    of_doubles: np.ndarray  # int32[n], a further code of doubles equal to it, or -1; or empty


class _Ranked(NamedTuple):
    """The constants of some columns."""

    placed: _Placed
    words: np.ndarray  # int64[:], the distinct constants of all columns, ascending in each
    counts: np.ndarray  # int64[n_columns], how many of them each has
    entries: dict[int, Entries]  # of columns of numbers


def _place(
    placed: _Placed, rows: slice, distinct: np.ndarray, words: np.ndarray, places: np.ndarray
) -> _Placed:
    """Give the rows of one column the codes in `places`, by distinct word; changes the arrays."""
    if placed.lasts is placed.firsts:
        nothing = np.full(len(placed.firsts), -1, dtype=np.int32)
        placed = placed._replace(lasts=placed.firsts.copy(), of_doubles=nothing)
    of_row = np.searchsorted(distinct, words[rows])
    for at, array in enumerate((placed.firsts, placed.lasts, placed.of_doubles)):
        array[rows] = places[of_row, at]
    return placed


class _LeafWriter:
    """Leaves as `LeafArrays`, with unused columns removed and constants ranked."""

    def __init__(self, builder: DagBuilder, leaves: np.ndarray) -> None:
        self.builder = builder
        self.leaves = leaves  # sorted
        self.numbers = np.arange(len(leaves), dtype=np.int32)
        self.is_negated = (leaves & 1).astype(np.bool_)
        self.bases = leaves >> 1
        self._swap_opposites()
        self.forms = builder.bases.forms[self.bases]
        old_columns = builder.bases.columns[self.bases]
        used = np.flatnonzero(np.bincount(old_columns[old_columns >= 0]))
        renamed = np.full(len(builder.columns) + 1, -1, dtype=np.int32)
        renamed[used] = np.arange(len(used))
        self.leaf_columns = renamed[old_columns]  # -1 stays -1: the last entry
        self.columns = [
            Column(builder.columns[old].kind, builder.columns[old].attributes) for old in used
        ]
        self.old_columns = used

    def _swap_opposites(self) -> None:
        """Replace the negation of a base by the base that is its opposite, where there is one."""
        known = self.builder.opposites
        for at in np.flatnonzero(self.is_negated).tolist() if known else ():
            opposite = known.get(int(self.bases[at]))
            if opposite is not None:
                self.bases[at], self.is_negated[at] = opposite, False

    def write(self) -> tuple[tuple[Column, ...], ConstantArrays, LeafArrays]:
        """The columns, their constants and the arrays."""
        is_plain = ~self.is_negated
        self._write_patterns(is_plain & (self.forms == form.MEETS_PATTERN))
        holders = np.flatnonzero(is_plain & np.isin(self.forms, _WITH_VALUES))
        ranked = list(self._rank_constants(holders.astype(np.int32)))
        placed = [own.placed for own in ranked]
        constants = self._make_constants(ranked)
        column_codes = np.zeros(len(self.columns) + 1, dtype=np.int64)
        np.cumsum([column.n_codes for column in self.columns], out=column_codes[1:])
        starts, posting_leaves = self._postings(placed, column_codes)
        slots, column_thresholds, threshold_leaves = self._thresholds(placed, column_codes)
        present = np.full(len(self.columns), -1, dtype=np.int32)
        absent = np.full(len(self.columns), -1, dtype=np.int32)
        is_presence = self.forms == form.PRESENT
        for array, wanted in ((present, is_plain), (absent, self.is_negated)):
            found = is_presence & wanted
            array[self.leaf_columns[found]] = self.numbers[found]
        complements = self._complements()
        leaves = LeafArrays(
            column_codes,
            np.zeros(0, dtype=np.int32),  # by `order_nodes`
            starts,
            posting_leaves,
            slots,
            column_thresholds,
            threshold_leaves,
            *complements,
            present,
            absent,
        )
        return tuple(self.columns), constants, leaves

    def _write_patterns(self, is_pattern: np.ndarray) -> None:
        bases = self.builder.bases
        for at, column in enumerate(self.columns):
            if column.kind == PATTERN:
                leaves = np.flatnonzero(is_pattern & (self.leaf_columns == at)).astype(np.int32)
                numbers = bases.values[bases.value_starts[self.bases[leaves]]]
                known = self.builder.patterns[int(self.old_columns[at])]
                column.patterns = [known[number] for number in numbers.tolist()]
                column.pattern_leaves = leaves

    # ── constants ──────────────────────────────────────────────────────────────────────────

    def _rank_constants(self, holders: Int32) -> Iterator[_Ranked]:
        """The constants of the leaves that hold any, some columns at a time."""
        starts = self.builder.bases.value_starts
        columns = self.leaf_columns[holders]
        order = np.argsort(columns, kind="stable")
        holders, columns = holders[order], columns[order]
        del order
        sizes = np.diff(starts)[self.bases[holders]].astype(np.int32)
        ends = np.searchsorted(columns, np.arange(len(self.columns) + 1))
        n_before = np.append(0, np.cumsum(sizes))[ends]  # constants before each column
        begin = 0
        while begin < len(self.columns):
            end = int(np.searchsorted(n_before, n_before[begin] + _AT_ONCE, side="right")) - 1
            end = max(end, begin + 1)
            own = slice(ends[begin], ends[end])
            yield self._rank_columns(begin, end, holders[own], sizes[own])
            begin = end

    def _rank_columns(self, begin: int, end: int, holders: Int32, sizes: np.ndarray) -> _Ranked:
        bases = self.builder.bases
        words = bases.values[_runs(bases.value_starts[self.bases[holders]], sizes)]
        leaf_rows = np.repeat(holders, sizes)
        columns = self.leaf_columns[leaf_rows]
        keys = self._sort_keys(columns, words)
        order = np.lexsort((keys, columns))
        is_new = np.ones(len(order), dtype=np.bool_)
        is_new[1:] = (np.diff(columns[order]) != 0) | (np.diff(keys[order]) != 0)
        distinct = words[order[is_new]]
        starts = np.searchsorted(columns[order[is_new]], np.arange(begin, end + 1))
        ranks = np.empty(len(order), dtype=np.int32)
        ranks[order] = np.cumsum(is_new, dtype=np.int32) - 1
        codes = 2 * (ranks - starts.astype(np.int32)[columns - begin]) + 1
        placed = _Placed(begin, end, leaf_rows, codes, codes, codes[:0])
        rows = np.searchsorted(columns, np.arange(begin, end + 1))
        entries = {}
        for at in range(begin, end):
            column = self.columns[at]
            if column.type == NUMBER and column.kind in (SCALAR, ARRAY):
                first, last = at - begin, at - begin + 1
                own = distinct[starts[first] : starts[last]]
                entries[at], places = self._lay_out(own)
                if places is not None:
                    placed = _place(placed, slice(rows[first], rows[last]), own, words, places)
        return _Ranked(placed, distinct, np.diff(starts), entries)

    def _lay_out(self, distinct: np.ndarray) -> tuple[Entries, np.ndarray | None]:
        """The entries of a number column's distinct words, ascending; and the codes of each word,
        if they differ from its rank.
        """
        numbered = are_numbered(distinct)
        short = floats_of(distinct[~numbered])
        if not numbered.any():
            return short_entries(short), None
        texts = self._texts(texts_of_words(distinct[numbered])).to_pylist()
        constants = [*map(read_spelled, texts), *(Decimal(repr(key)) for key in short.tolist())]
        entries, places = lay_out(constants)
        return entries, np.array(places, dtype=np.int32)

    def _sort_keys(self, columns: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The words, with texts replaced by their rank among all texts."""
        keys = words.copy()
        for carrier, sort_as in ((TEXTS, str.encode), (DECIMALS, Decimal)):
            is_text = np.array(
                [carrier_of(c.type) == carrier for c in self.columns], dtype=np.bool_
            )
            rows = np.flatnonzero(is_text[columns]) if len(columns) else columns
            if len(rows):
                distinct = np.unique(words[rows])
                texts = [sort_as(text) for text in self._texts(distinct).to_pylist()]
                places = np.empty(len(distinct), dtype=np.int64)
                places[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
                keys[rows] = places[np.searchsorted(distinct, words[rows])]
        return keys

    def _texts(self, numbers: np.ndarray) -> pa.LargeStringArray:
        texts = self.builder.texts
        known = texts_of(texts.starts[: int(texts.n_texts[0]) + 1], texts.arena)
        return known.take(pa.array(numbers, pa.int64()))

    def _make_constants(self, ranked: Sequence[_Ranked]) -> ConstantArrays:
        """The constants of all columns, which also get their own; number columns have entries."""
        nothing = np.empty(0, dtype=np.int64)
        words = np.concatenate([nothing, *(own.words for own in ranked)])
        counts = np.concatenate([nothing, *(own.counts for own in ranked)])
        numbers = {at: entries for own in ranked for at, entries in own.entries.items()}
        carriers = np.array([carrier_of(column.type) for column in self.columns], dtype=object)
        carrier = np.repeat(carriers, counts)
        scales = np.repeat([column.type.scale for column in self.columns], counts)
        decimals = self._texts(words[carrier == DECIMALS]).to_pylist()
        constants = make_constants(
            words[carrier == INTEGERS],
            floats_of(words[carrier == FLOATS]),
            list(zip(decimals, scales[carrier == DECIMALS].tolist(), strict=True)),
            list(numbers.values()),
            self._texts(words[carrier == TEXTS]),
        )
        for at, entries in numbers.items():
            counts[at] = len(entries.keys)
        types = [column.type for column in self.columns]
        runs = split_constants(constants, types, counts.tolist())
        for column, own in zip(self.columns, runs, strict=True):
            column.constants = None if column.kind in (PATTERN, PAIR) else own
        return constants

    # ── codes ──────────────────────────────────────────────────────────────────────────────

    def _postings(
        self, placed: Sequence[_Placed], column_codes: np.ndarray
    ) -> tuple[np.ndarray, Int32]:
        """The leaves of each code: the start of its run, and all leaves."""
        is_pair = ~self.is_negated & (self.forms == form.PAIR_EQUAL)
        pairs = np.flatnonzero(is_pair).astype(np.int32)
        pair_columns = self.leaf_columns[pairs]
        counts, leaves = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        for own in placed:
            of_own = pairs[(own.begin <= pair_columns) & (pair_columns < own.end)]
            counted, found = self._post(own, of_own, column_codes[own.begin : own.end + 1])
            counts.append(counted)
            leaves.append(found)
        return run_starts(np.concatenate(counts)), np.concatenate(leaves)

    def _post(self, placed: _Placed, pairs: Int32, starts: np.ndarray) -> tuple[np.ndarray, Int32]:
        """For the codes of some columns, the number of leaves of each, and all leaves; `starts` has
        the first code of each column.
        """
        is_member = self.forms[placed.leaf_rows] == form.ONE_OF
        leaves, codes = placed.leaf_rows[is_member], placed.firsts[is_member]
        if placed.lasts is not placed.firsts:
            sizes = placed.lasts[is_member] + 1 - codes
            leaves, codes = np.repeat(leaves, sizes), _runs(codes, sizes)
        with_doubles = np.flatnonzero(placed.of_doubles >= 0)
        with_doubles = with_doubles[is_member[with_doubles]]
        if len(with_doubles):
            # A double may equal several members of one list.
            more = np.stack((placed.leaf_rows[with_doubles], placed.of_doubles[with_doubles]))
            both = np.unique(np.concatenate((np.stack((leaves, codes)), more), axis=1), axis=1)
            leaves, codes = both
        firsts = starts - starts[0]
        codes = codes + firsts[self.leaf_columns[leaves] - placed.begin]
        pair_codes = firsts[self.leaf_columns[pairs] - placed.begin] + 1
        leaves, codes = np.concatenate((leaves, pairs)), np.concatenate((codes, pair_codes))
        counts = np.bincount(codes, minlength=int(firsts[-1]))
        return counts, leaves[np.lexsort((leaves, codes))].astype(np.int32)

    def _thresholds(
        self, placed: Sequence[_Placed], column_codes: np.ndarray
    ) -> tuple[Int32, np.ndarray, Int32]:
        bounds = [self._bounds(own) for own in placed]
        nothing = np.empty(0, np.int32)
        leaves = np.concatenate([nothing, *(own for own, _ in bounds)])
        highest = np.concatenate([nothing, *(own for _, own in bounds)])
        is_pair = np.isin(self.forms, (form.PAIR_AT_MOST, form.PAIR_BELOW)) & ~self.is_negated
        pairs = np.flatnonzero(is_pair)
        leaves = np.concatenate((leaves, pairs))
        highest = np.concatenate((highest, self.forms[pairs] == form.PAIR_AT_MOST))
        highest = highest + column_codes[self.leaf_columns[leaves]]
        order = np.argsort(highest, kind="stable")
        leaves, highest = leaves[order], highest[order]
        columns = self.leaf_columns[leaves]
        column_thresholds = np.searchsorted(columns, np.arange(len(self.columns) + 1))
        slots = np.searchsorted(highest, np.arange(column_codes[-1]))
        # A code above its column's last threshold must not reach the next column's.
        code_columns = np.repeat(np.arange(len(self.columns)), np.diff(column_codes))
        slots[slots >= column_thresholds[code_columns + 1]] = len(leaves)
        return slots.astype(np.int32), column_thresholds.astype(np.int64), leaves.astype(np.int32)

    def _bounds(self, placed: _Placed) -> tuple[Int32, Int32]:
        """The leaves of bounds, and the highest code for which each is true."""
        forms = self.forms[placed.leaf_rows]
        is_bound = (forms == form.AT_MOST) | (forms == form.BELOW)
        is_closed = forms[is_bound] == form.AT_MOST
        highest = np.where(is_closed, placed.lasts[is_bound], placed.firsts[is_bound] - 1)
        return placed.leaf_rows[is_bound], highest

    def _complements(self) -> tuple[np.ndarray, Int32, Int32]:
        """The start of each column's complements, the leaves, and their bases."""
        bases = self.builder.bases
        is_definite = ~self.is_negated & (self.forms == form.COMPLEMENT)
        is_negation = self.is_negated & (self.forms != form.PRESENT)
        below = np.where(is_definite, bases.values[bases.value_starts[self.bases]], self.bases)
        # If the column need not be present, a negation is a complement on all events.
        is_total = is_negation & (self.builder.is_signed | (self.forms == form.NEVER))
        found = np.flatnonzero(is_definite | is_negation)
        columns = np.where(is_total, len(self.columns), self.leaf_columns)[found]
        order = np.argsort(columns, kind="stable")
        found, columns = found[order], columns[order]
        starts = np.searchsorted(columns, np.arange(len(self.columns) + 1))
        base_leaves = np.searchsorted(self.leaves, 2 * below[found])
        return starts.astype(np.int64), found.astype(np.int32), base_leaves.astype(np.int32)
