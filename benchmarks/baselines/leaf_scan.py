"""All leaves evaluated with array operations, for one event or for many."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.baselines.leaves import (
    Constant,
    EventReader,
    Interval,
    Leaf,
    Missing,
    Text,
    ValueSet,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.language.ast import Attribute

# As ranks: AND is the least, OR the greatest, NOT the mirror image.
FALSE, UNDEFINED, TRUE = 0, 1, 2
CHUNK = 1 << 15  # leaves evaluated at a time, so that they stay in the cache
NO_LIMIT = np.iinfo(np.int32).max


class LeafScan:
    """The leaves as arrays, ordered by form; leaf i of `uses` is written to `places[i]`.

    A value is a code: 2i + 1 if it is the attribute's i-th constant in order, 2i if it lies below
    that and above the one before, -1 if it is missing. So an interval is two small numbers.
    """

    def __init__(self, leaves: Sequence[Leaf], uses: np.ndarray) -> None:
        self._reader = EventReader()
        self._columns: dict[str, int] = {}
        self._collect_constants(leaves)
        self._parts: list[tuple[slice, _Part]] = []
        self.places = np.empty(len(uses), dtype=np.intp)
        row_of = np.zeros(len(leaves), dtype=np.intp)  # within its form
        form_of = np.zeros(len(leaves), dtype=np.intp)
        parts = []
        for form, numbers in enumerate(_sort_by_form(leaves)):
            form_of[numbers] = form
            row_of[numbers] = np.arange(len(numbers))
            parts.append(self._part([leaves[number] for number in numbers]))
        order = np.argsort(form_of[uses], kind="stable")
        self.places[order] = np.arange(len(uses))
        self._split(parts, form_of[uses[order]], row_of[uses[order]])

    def _split(self, parts: list[_Part], forms: np.ndarray, rows: np.ndarray) -> None:
        ends = np.searchsorted(forms, np.arange(len(parts)), side="right").tolist()
        for part, start, end in zip(parts, [0, *ends], ends, strict=False):
            for first in range(start, end, CHUNK):
                here = slice(first, min(first + CHUNK, end))
                self._parts.append((here, part.take(rows[here])))

    def evaluate_one(self, event: Mapping[str, Any], truths: np.ndarray) -> None:
        """Write the truth of each leaf into `truths[place]`."""
        values = self._reader.read(event)
        codes = self._encode(values)
        for here, part in self._parts:
            if isinstance(part, _TextPart):
                truths[here] = part.test(values)
            else:
                part.write(codes, truths[here])

    def evaluate_many(self, events: Sequence[Mapping[str, Any]], truths: np.ndarray) -> None:
        """The same for each event, into `truths[place, event]`."""
        read = [self._reader.read(event) for event in events]
        codes = np.stack([self._encode(values) for values in read], axis=1)
        for here, part in self._parts:
            if isinstance(part, _TextPart):
                truths[here] = np.stack([part.test(values) for values in read], axis=1)
            else:
                part.spread().write(codes, truths[here])

    # ── constants and codes ────────────────────────────────────────────────────────────────

    def _collect_constants(self, leaves: Sequence[Leaf]) -> None:
        constants: dict[int, set[Any]] = defaultdict(set)
        for leaf in leaves:
            if isinstance(leaf, Interval):
                bounds = {leaf.low, leaf.high} - {None}
                constants[self._column(leaf.attribute)].update(bounds)
            elif isinstance(leaf, ValueSet):
                constants[self._column(leaf.attribute)].update(leaf.members)
            elif isinstance(leaf, Missing):
                self._column(leaf.attribute)
        self._constants = [sorted(constants[column]) for column in range(len(self._columns))]
        self._ranks = [{value: at for at, value in enumerate(c)} for c in self._constants]

    def _column(self, attribute: Attribute) -> int:
        return self._columns.setdefault(self._reader.add(attribute), len(self._columns))

    def _encode(self, values: dict[str, Any]) -> np.ndarray:
        codes = np.full(len(self._columns), -1, dtype=np.int32)
        for key, value in values.items():
            column = self._columns.get(key, -1)
            if column >= 0:
                codes[column] = _code(value, self._constants[column])
        return codes

    # ── parts ──────────────────────────────────────────────────────────────────────────────

    def _part(self, leaves: list[Any]) -> _Part:
        """All leaves of one form."""
        form = type(leaves[0])
        if form is Text:
            keys = [self._reader.add(x.attribute, lowered=x.ignores_case) for x in leaves]
            texts = np.array([leaf.text for leaf in leaves], dtype=np.dtypes.StringDType())
            is_negated = np.array([leaf.is_negated for leaf in leaves])
            return _TextPart(keys[0], leaves[0].kind, texts, is_negated)
        if form is Constant:
            return _ConstantPart(TRUE * np.array([leaf.value for leaf in leaves], dtype=np.int8))
        columns = np.array([self._column(leaf.attribute) for leaf in leaves], dtype=np.intp)
        is_negated = np.array([leaf.is_negated for leaf in leaves])
        if form is Missing:
            return _MissingPart(columns, is_negated)
        codes = np.array([self._codes_of(leaf) for leaf in leaves], dtype=np.int32).T
        part = _SetPart if form is ValueSet else _IntervalPart
        return part(columns, np.ascontiguousarray(codes), is_negated)

    def _codes_of(self, leaf: Interval | ValueSet) -> tuple[int, ...]:
        """A set's members, or the first and the last code of an interval."""
        ranks = self._ranks[self._column(leaf.attribute)]
        if isinstance(leaf, ValueSet):
            return tuple(2 * ranks[member] + 1 for member in leaf.members)
        low, high = 0, NO_LIMIT
        if leaf.low is not None:
            low = 2 * ranks[leaf.low] + 1 + (not leaf.low_is_closed)
        if leaf.high is not None:
            high = 2 * ranks[leaf.high] + 1 - (not leaf.high_is_closed)
        return low, high


def _sort_by_form(leaves: Sequence[Leaf]) -> list[list[int]]:
    """The numbers of the leaves that are evaluated by the same operations."""
    found: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, leaf in enumerate(leaves):
        form: tuple[Any, ...] = (type(leaf),)
        if isinstance(leaf, ValueSet):
            form += (len(leaf.members),)
        elif isinstance(leaf, Text):
            form += (leaf.attribute, leaf.kind, leaf.ignores_case)
        found[form].append(number)
    return list(found.values())


def _code(value: Any, constants: list[Any]) -> int:
    if isinstance(value, float) and math.isnan(value):
        return 2 * len(constants)  # above everything
    rank = bisect_left(constants, value) if constants else 0
    return 2 * rank + (rank < len(constants) and constants[rank] == value)


class _IntervalPart(NamedTuple):
    columns: np.ndarray
    bounds: np.ndarray  # int32[2, n], first and last code
    is_negated: np.ndarray

    def take(self, rows: np.ndarray) -> _IntervalPart:
        return _IntervalPart(self.columns[rows], self.bounds[:, rows], self.is_negated[rows])

    def spread(self) -> _IntervalPart:
        """The same for codes with a column per event."""
        return _IntervalPart(self.columns, self.bounds[:, :, None], self.is_negated[:, None])

    def write(self, codes: np.ndarray, truths: np.ndarray) -> None:
        code = codes[self.columns]
        holds = (code >= self.bounds[0]) & (code <= self.bounds[1])
        _write(truths, holds ^ self.is_negated, code < 0)


class _SetPart(NamedTuple):
    columns: np.ndarray
    members: np.ndarray  # int32[size, n]
    is_negated: np.ndarray

    def take(self, rows: np.ndarray) -> _SetPart:
        return _SetPart(self.columns[rows], self.members[:, rows], self.is_negated[rows])

    def spread(self) -> _SetPart:
        """The same for codes with a column per event."""
        return _SetPart(self.columns, self.members[:, :, None], self.is_negated[:, None])

    def write(self, codes: np.ndarray, truths: np.ndarray) -> None:
        code = codes[self.columns]
        holds = reduce(np.logical_or, (code == member for member in self.members))
        _write(truths, holds ^ self.is_negated, code < 0)


class _MissingPart(NamedTuple):
    columns: np.ndarray
    is_negated: np.ndarray

    def take(self, rows: np.ndarray) -> _MissingPart:
        return _MissingPart(self.columns[rows], self.is_negated[rows])

    def spread(self) -> _MissingPart:
        """The same for codes with a column per event."""
        return _MissingPart(self.columns, self.is_negated[:, None])

    def write(self, codes: np.ndarray, truths: np.ndarray) -> None:
        np.multiply((codes[self.columns] < 0) ^ self.is_negated, TRUE, out=truths)


class _ConstantPart(NamedTuple):
    truths: np.ndarray

    def take(self, rows: np.ndarray) -> _ConstantPart:
        return _ConstantPart(self.truths[rows])

    def spread(self) -> _ConstantPart:
        """The same for codes with a column per event."""
        return _ConstantPart(self.truths[:, None])

    def write(self, codes: np.ndarray, truths: np.ndarray) -> None:
        truths[:] = self.truths


def _write(truths: np.ndarray, holds: np.ndarray, is_missing: np.ndarray) -> None:
    np.multiply(holds, TRUE, out=truths)
    np.copyto(truths, UNDEFINED, where=is_missing)


class _TextPart(NamedTuple):
    """Patterns on one attribute, of one kind."""

    key: str
    kind: str
    patterns: np.ndarray  # StringDType[n]
    is_negated: np.ndarray

    def take(self, rows: np.ndarray) -> _TextPart:
        return _TextPart(self.key, self.kind, self.patterns[rows], self.is_negated[rows])

    def test(self, values: dict[str, Any]) -> np.ndarray:
        """The truth of each pattern."""
        text = values.get(self.key)
        if text is None:
            return np.full(len(self.patterns), UNDEFINED, dtype=np.int8)
        return TRUE * (self._holds(text) ^ self.is_negated).astype(np.int8)

    def _holds(self, text: str) -> np.ndarray:
        whole = np.array(text, dtype=np.dtypes.StringDType())
        match self.kind:
            case "equals":
                return np.asarray(self.patterns == whole)
            case "startswith":
                return np.strings.startswith(whole, self.patterns)
            case "endswith":
                return np.strings.endswith(whole, self.patterns)
            case "contains":
                return np.strings.find(whole, self.patterns) >= 0
            case _:
                return np.array([re.fullmatch(p, text) is not None for p in self.patterns])


_Part = _IntervalPart | _SetPart | _MissingPart | _ConstantPart | _TextPart
