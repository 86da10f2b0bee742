"""A rule matcher: conjunctions over few fields of JSON objects, as event-ruler and quamina match.

Written from the published ideas, with no code of theirs. Rules are paths through one automaton: a
state has edges, each for a value (or a prefix) of one field, and rules that begin with the same
tests share states. Matching walks from the first state along the edges that the event's values
allow; its time depends on how far rules get, not on how many there are. Three things are done
better than the description asks for: fields are tested in the order of how much they exclude
instead of their names; a value is looked up once in a hash table instead of byte by byte in each
state; and the walk is compiled, over states that lie one after the other in one array.

It knows equality, IN, prefixes and NOT of strings, and missing values fail every test.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numba
import numpy as np
import orjson

from benchmarks.baselines.leaves import Interval, Text, ValueSet, read_leaf
from tamis.errors import TamisError
from tamis.language.ast import And, Condition, Not

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.language.schema import Path

# What an event has in a slot if it is no symbol of the rules.
MISSING: Final = -2
UNKNOWN: Final = -1
FEW: Final = 16  # edges that are compared one by one

# A field, and how many characters of it are compared; None for all.
Slot: TypeAlias = "tuple[Path, int | None]"


class SlotTest(NamedTuple):
    """A rule requires that the value in a slot is one of some texts, or none of them."""

    slot: Slot
    texts: frozenset[str]
    is_negated: bool


class RuleMatcher:
    """One automaton for typed conditions; rules are named by their positions."""

    def __init__(self, conditions: Iterable[Condition]) -> None:
        rules = [list(_read_tests(condition, is_negated=False)) for condition in conditions]
        self._slots: dict[Slot, int] = {}
        self._symbols: list[dict[str, int]] = []  # by slot: the number of each text
        for test in (test for tests in rules for test in tests):
            self._number(test)
        self._program = _write_program(self._grow(rules))
        self._fields = self._group_fields()
        self._values = np.full(max(1, len(self._slots)), MISSING, dtype=np.int64)
        self._stack = np.empty(len(self._program), dtype=np.int64)
        self._found = np.empty(max(1, len(rules)), dtype=np.int64)

    def match_text(self, text: bytes) -> list[int]:
        """The positions of the rules that the JSON text of an event satisfies."""
        self._read(orjson.loads(text))
        n_found = _walk(self._program, self._values, self._stack, self._found)
        found: list[int] = self._found[:n_found].tolist()
        return found

    def _read(self, event: Any) -> None:
        """Write the symbol of each slot."""
        values = self._values
        for parent, fields in self._fields:
            node = event
            for name in parent:
                node = node.get(name) if type(node) is dict else None
            for name, slots in fields:
                value = node.get(name) if type(node) is dict else None
                is_text = type(value) is str
                for slot, length, symbols in slots:
                    values[slot] = symbols.get(value[:length], UNKNOWN) if is_text else MISSING

    def _group_fields(self) -> list[Any]:
        """Slots by field, and fields by the object that has them, which is looked up once."""
        grouped: dict[Path, dict[str, list[Any]]] = {}
        for (path, length), slot in self._slots.items():
            own = grouped.setdefault(path[:-1], {}).setdefault(path[-1], [])
            own.append((slot, length, self._symbols[slot]))
        return [(parent, list(fields.items())) for parent, fields in grouped.items()]

    # ── building ───────────────────────────────────────────────────────────────────────────

    def _number(self, test: SlotTest) -> None:
        slot = self._slots.setdefault(test.slot, len(self._slots))
        if slot == len(self._symbols):
            self._symbols.append({})
        symbols = self._symbols[slot]
        for text in test.texts:
            symbols.setdefault(text, len(symbols))

    def _grow(self, rules: list[list[SlotTest]]) -> list[_State]:
        """The states: rules with equal first tests share them."""
        uses = Counter(test.slot for tests in rules for test in tests)

        def rank(test: SlotTest) -> tuple[bool, float, int, list[str]]:
            """What is true of the fewest events comes first, what is negated last."""
            slot = self._slots[test.slot]
            share = len(test.texts) / len(self._symbols[slot])
            return test.is_negated, share / uses[test.slot], slot, sorted(test.texts)

        states = [_State()]
        known: dict[tuple[int, SlotTest], int] = {}
        for rule, tests in enumerate(rules):
            at = 0
            for test in sorted(tests, key=rank):
                following = known.setdefault((at, test), len(states))
                if following == len(states):
                    states.append(_State())
                    self._add_edge(states[at], test, following)
                at = following
            states[at].rules.append(rule)
        return states

    def _add_edge(self, state: _State, test: SlotTest, following: int) -> None:
        slot = self._slots[test.slot]
        symbols = sorted(self._symbols[slot][text] for text in test.texts)
        if test.is_negated:
            state.refusals.append((slot, following, symbols))
        else:
            state.edges.extend((slot, symbol, following) for symbol in symbols)


class _State:
    """What may follow, and which rules are satisfied."""

    __slots__ = ("edges", "refusals", "rules")

    def __init__(self) -> None:
        self.edges: list[tuple[int, int, int]] = []  # slot, symbol, next state
        self.refusals: list[tuple[int, int, list[int]]] = []  # slot, next state, symbols
        self.rules: list[int] = []


def _read_tests(node: Condition, *, is_negated: bool) -> Iterator[SlotTest]:
    match node:
        case And() if not is_negated:
            for operand in node.operands:
                yield from _read_tests(operand, is_negated=False)
            return
        case Not():
            yield from _read_tests(node.operand, is_negated=not is_negated)
            return
        case And():
            raise TamisError("no baseline for NOT of several tests")
    leaf = read_leaf(node)
    match leaf:
        case Interval(low=str(text)) if text == leaf.high:
            slot, texts = (leaf.attribute.path, None), {text}
        case ValueSet():
            slot, texts = (leaf.attribute.path, None), set(leaf.members)
        case Text(kind="equals", ignores_case=False):
            slot, texts = (leaf.attribute.path, None), {leaf.text}
        case Text(kind="startswith", ignores_case=False):
            slot, texts = (leaf.attribute.path, len(leaf.text)), {leaf.text}
        case _:
            raise TamisError(f"no baseline for: {leaf}")
    yield SlotTest(slot, frozenset(texts), leaf.is_negated is not is_negated)


def _write_program(states: list[_State]) -> np.ndarray:
    """All states in one array: the numbers of edges, refusals and rules, and then these. An edge is
    (slot, symbol, place of the next state), and edges are sorted; a refusal is (slot, place of the
    next state, number of symbols, symbols).
    """
    places, at = [], 0
    for state in states:
        places.append(at)
        n_refused = sum(3 + len(symbols) for _, _, symbols in state.refusals)
        at += 3 + 3 * len(state.edges) + n_refused + len(state.rules)
    program: list[int] = []
    for state in states:
        program += (len(state.edges), len(state.refusals), len(state.rules))
        for slot, symbol, following in sorted(state.edges):
            program += (slot, symbol, places[following])
        for slot, following, symbols in state.refusals:
            program += (slot, places[following], len(symbols), *symbols)
        program += state.rules
    return np.array(program, dtype=np.int64)


# ── matching ────────────────────────────────────────────────────────────────────────────────


@numba.njit(cache=True, nogil=True)
def _walk(program, values, stack, found):
    """Write the rules of all states that are reached; return their number. Each state has one way
    in, so none is reached twice.
    """
    n_found, n_waiting = 0, 1
    stack[0] = 0
    while n_waiting:
        n_waiting -= 1
        at = stack[n_waiting]
        n_edges, n_refusals, n_rules = program[at], program[at + 1], program[at + 2]
        at += 3
        if n_edges <= FEW:
            for edge in range(at, at + 3 * n_edges, 3):
                if values[program[edge]] == program[edge + 1]:
                    stack[n_waiting] = program[edge + 2]
                    n_waiting += 1
        else:
            n_waiting = _follow(program, at, n_edges, values, stack, n_waiting)
        at += 3 * n_edges
        for _ in range(n_refusals):
            slot, following, n_symbols = program[at], program[at + 1], program[at + 2]
            at += 3
            is_open = values[slot] != MISSING
            for symbol in program[at : at + n_symbols]:
                is_open = is_open and values[slot] != symbol
            if is_open:
                stack[n_waiting] = following
                n_waiting += 1
            at += n_symbols
        for rule in program[at : at + n_rules]:
            found[n_found] = rule
            n_found += 1
    return n_found


@numba.njit(cache=True, nogil=True)
def _follow(program, first, n_edges, values, stack, n_waiting):  # noqa: PLR0913 - a kernel
    """The same for the edges of a state with many, which are searched."""
    for slot in range(len(values)):
        if values[slot] < 0:
            continue
        low, high = 0, n_edges
        while low < high:
            middle = (low + high) // 2
            edge = first + 3 * middle
            if program[edge] < slot or (program[edge] == slot and program[edge + 1] < values[slot]):
                low = middle + 1
            else:
                high = middle
        edge, end = first + 3 * low, first + 3 * n_edges
        while edge < end and program[edge] == slot and program[edge + 1] == values[slot]:
            stack[n_waiting] = program[edge + 2]
            n_waiting += 1
            edge += 3
    return n_waiting
