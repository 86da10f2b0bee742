"""Encodes one event with little overhead."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tamis.events.event_arrays import EventArrays
from tamis.language.types import INT64_MAX, INT64_MIN, WrongTypeError, read_value
from tamis.logic.comparing import compare
from tamis.logic.derive import compute_derived

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tamis.events.attributes import NameTree
    from tamis.events.plan import EncodingPlan
    from tamis.events.ranks import Ranking
    from tamis.events.rejects import Rejects
    from tamis.language.ast import Derived

# Types whose values, if of one class, can usually be ranked unchanged.
_PLAIN_CLASSES: Final[dict[str, type]] = {
    "boolean": bool,
    "integer": int,
    "double": float,
    "string": str,
}


# Stands for the classes of numbers, int and float. Below 2**53 they compare with keys as with the
# constants (`index.numbers`), unless a column has constants of other kinds.
_EITHER: Final = object()
EXACT_DOUBLES: Final = 2**53


class Slot(NamedTuple):
    """What the index needs of the value at one name."""

    plain_class: Any  # values of exactly this class are ranked at once; None: of no class
    column: int  # the attribute's column, or -1
    first_code: int
    constants: (
        Sequence[Any] | None
    )  # None: not converted to objects until the first event needs them
    attribute: int  # or -1
    inner: dict[str, Slot]  # the slots of the values inside


class _Found:
    """The codes found in one event."""

    __slots__ = ("codes", "columns", "marks", "typed")

    def __init__(self) -> None:
        self.columns: list[int] = []
        self.codes: list[int] = []
        self.marks: list[tuple[int, bool]] = []  # array column, whether an element is NULL
        self.typed: dict[int, Any] = {}  # values of attributes that patterns or pairs need


class EventSlots:
    """Encodes one event at a time. Immutable: threads share it."""

    def __init__(self, plan: EncodingPlan, ranking: Ranking) -> None:
        self._plan = plan
        self._ranking = ranking
        self._arguments = plan.arguments
        self._kept = plan.asked_more.union(self._arguments.values())
        self._derived = self._make_derived()
        self._slots = self._make_slots(plan.table.tree)

    def encode(self, event: Mapping[str, Any], rejects: Rejects | None = None) -> EventArrays:
        """The event as a batch of one row; rejected values are added to `rejects`."""
        found = _Found()
        self._look_up(event, self._slots, found, rejects)
        if self._derived:
            self._derive(found)
        if found.typed or found.marks:
            return self._with_texts_and_marks(found)
        return _make_arrays(found, _NO_TEXTS, _NO_LEAVES)

    def _make_slots(self, tree: NameTree) -> dict[str, Slot]:
        return {
            name: self._make_slot(tree.attributes[at], tree.children.get(at))
            for name, at in tree.slots.items()
        }

    def _make_slot(self, attribute: int, inner: NameTree | None) -> Slot:
        plan = self._plan
        slots = self._make_slots(inner) if inner else {}
        if attribute < 0 or plan.own_columns[attribute] is None:
            return Slot(None, -1, -1, (), attribute, slots)
        column, first_code = plan.own_numbers[attribute], plan.first_codes[attribute]
        return Slot(None, int(column), int(first_code), None, attribute, slots)

    def _load(self, slot: Slot) -> Slot:
        """The slot with its constants."""
        plan, attribute = self._plan, slot.attribute
        own, type_ = plan.own_columns[attribute], plan.type_of(attribute)
        assert own is not None
        assert own.constants is not None
        is_plain = not slot.inner and attribute not in self._kept
        plain_class = _PLAIN_CLASSES.get(type_.name) if is_plain else None
        if type_.name == "number":
            keys = self._ranking.number_keys(attribute)
            is_plain &= keys is not None
            return slot._replace(plain_class=_EITHER if is_plain else None, constants=keys or ())
        if type_.name in ("integer", "double"):
            numbers: Any = self._ranking.numbers(attribute, is_floating=type_.is_floating)
            return slot._replace(plain_class=plain_class, constants=numbers)
        return slot._replace(plain_class=plain_class, constants=own.constants.values)

    # ── values ─────────────────────────────────────────────────────────────────────────────

    def _look_up(
        self,
        event: Mapping[str, Any],
        slots: dict[str, Slot],
        found: _Found,
        rejects: Rejects | None,
    ) -> None:
        add_column, add_code, find = found.columns.append, found.codes.append, slots.get
        # An event often has few of very many attributes, or many that no expression uses.
        is_short = type(event) is dict and len(event) <= len(slots)
        items: Iterable[tuple[str, Any]] = (
            event.items() if is_short else ((name, event.get(name)) for name in slots)
        )
        for name, value in items:
            slot = find(name)
            if slot is None or value is None:
                continue
            plain_class, column, first_code, constants, _, _ = slot
            if constants is None:
                # Concurrent threads make equal slots.
                slot = slots[name] = self._load(slot)
                plain_class, column, first_code, constants, _, _ = slot
                assert constants is not None
            if type(value) is not plain_class and not (
                plain_class is _EITHER
                and (type(value) is int or type(value) is float)
                and -EXACT_DOUBLES < value < EXACT_DOUBLES
            ):
                self._read(value, slot, found, rejects)
                continue
            rank = bisect_left(constants, value)
            if rank < len(constants) and constants[rank] == value:
                add_column(column)
                add_code(first_code + 2 * rank + 1)
            elif value.isascii() if plain_class is str else INT64_MIN <= value <= INT64_MAX:
                add_column(column)
                add_code(first_code + 2 * rank)
            else:  # perhaps a lone surrogate, too large, or NaN
                self._read(value, slot, found, rejects)

    def _read(self, value: Any, slot: Slot, found: _Found, rejects: Rejects | None) -> None:
        """Read a value that is not plain, and add all its codes."""
        if slot.inner and hasattr(value, "get"):
            self._look_up(value, slot.inner, found, rejects)
        if slot.attribute < 0:
            return
        type_ = self._plan.type_of(slot.attribute)
        try:
            typed = read_value(value, type_)
        except WrongTypeError as error:
            if rejects is not None:
                rejects.add_value(0, self._plan.table.paths[slot.attribute], type_, value, error)
            return
        if slot.attribute in self._kept:
            found.typed[slot.attribute] = typed
        if slot.column < 0:
            return
        elements = [typed]
        if type_.element is not None:
            elements = [element for element in typed if element is not None]
            found.marks.append((slot.column, len(elements) < len(typed)))
        for element in elements:
            found.columns.append(slot.column)
            found.codes.append(self._rank(element, (type_.element or type_).name, slot))

    def _rank(self, value: Any, type_name: str, slot: Slot) -> int:
        if type_name == "any":
            return slot.first_code
        if type_name == "number":
            return self._ranking.rank_number(slot.attribute, value)
        return _rank(value, slot)

    # ── derived values ─────────────────────────────────────────────────────────────────────

    def _make_derived(self) -> list[tuple[Derived, Slot]]:
        derived = self._plan.derived.items()
        return [(own, self._make_slot(number, None)) for number, own in derived]

    def _derive(self, found: _Found) -> None:
        """Compute the derived values of the event, and add their codes."""
        numbers, typed = self._arguments, found.typed
        for at, (own, slot) in enumerate(self._derived):
            value = compute_derived(own, lambda argument: typed.get(numbers[argument.path]))
            if value is None:
                continue
            if slot.constants is None:
                slot = self._load(slot)  # noqa: PLW2901 - with its constants
                self._derived[at] = (own, slot)
            if slot.attribute in self._kept:
                found.typed[slot.attribute] = value
            if slot.column >= 0:
                assert own.type is not None
                found.columns.append(slot.column)
                found.codes.append(self._rank(value, own.type.name, slot))

    # ── patterns, pairs and arrays ─────────────────────────────────────────────────────────

    def _with_texts_and_marks(self, found: _Found) -> EventArrays:
        plan, typed = self._plan, found.typed
        starts, leaves = [_NO_TEXTS], [_NO_LEAVES]
        n_texts = n_leaves = 0
        for pattern in plan.patterns:
            if pattern.attribute in typed:
                own_starts, own_leaves = pattern.matcher.match_texts([typed[pattern.attribute]])
                starts.append(n_leaves + own_starts[1:])
                leaves.append(own_leaves)
                found.columns.append(pattern.column)
                found.codes.append(plan.n_codes + n_texts)
                n_texts += 1
                n_leaves += len(own_leaves)
        for column in plan.texts:
            if column.attribute in typed:
                data = np.frombuffer(typed[column.attribute].encode(), dtype=np.uint8)
                _, codes = column.find(np.array((0, len(data)), dtype=np.int64), data)
                found.columns.extend([column.column] * len(codes))
                found.codes.extend(codes.tolist())
                found.marks.append((column.column, False))
        for pair in plan.pairs:
            if pair.left in typed and pair.right in typed:
                type_ = plan.common_type(pair)
                order = compare(typed[pair.left], typed[pair.right], type_)
                found.columns.append(pair.column)
                found.codes.append(pair.first_code + 1 + order)
        return _make_arrays(found, np.concatenate(starts), np.concatenate(leaves))


def _rank(value: Any, slot: Slot) -> int:
    assert slot.constants is not None
    rank = bisect_left(slot.constants, value)
    if value != value:  # noqa: PLR0124 - NaN is above everything
        rank = len(slot.constants)
    is_equal = rank < len(slot.constants) and slot.constants[rank] == value
    return slot.first_code + 2 * rank + is_equal


_NO_TEXTS: Final = np.zeros(1, dtype=np.int64)
_NO_LEAVES: Final = np.empty(0, dtype=np.int32)
_NO_ROWS: Final = np.zeros(2, dtype=np.int64)
_NO_MARKS: Final = (
    _NO_ROWS,
    np.empty(0, dtype=np.int32),
    np.empty(0, dtype=np.int32),
    np.empty(0, dtype=np.uint8),
)


def _make_arrays(found: _Found, text_starts: np.ndarray, text_leaves: np.ndarray) -> EventArrays:
    marks = _NO_MARKS
    if found.marks:
        columns, has_null = zip(*found.marks, strict=True)
        marks = (
            np.array([0, len(columns)], dtype=np.int64),
            np.zeros(len(columns), dtype=np.int32),
            np.array(columns, dtype=np.int32),
            np.array(has_null, dtype=np.uint8),
        )
    n_codes = len(found.codes)
    if not n_codes:
        return EventArrays(_NO_ROWS, _NO_LEAVES, _NO_LEAVES, text_starts, text_leaves, *marks)
    # NumPy reads a list of numbers more slowly than `array` does.
    both = np.frombuffer(array("i", found.columns + found.codes), dtype=np.int32)
    return EventArrays(
        np.frombuffer(array("q", (0, n_codes)), dtype=np.int64),
        both[:n_codes],
        both[n_codes:],
        text_starts,
        text_leaves,
        *marks,
    )
