"""A-Tree (§4 and §5): one aggregated tree of all expressions, matched bottom-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from tamis.errors import InputError
from tamis.lab.atree.arrays import (
    MAX_LEVEL,
    MOST_LINKS,
    N_INNER,
    N_NODES,
    NONE,
    POOL_TOP,
    STACK_TOP,
    Design,
    Ints,
    grow_nodes,
    grow_ordinals,
    grow_pool,
    n_bytes,
    new_arrays,
)
from tamis.lab.atree.encoding import LEAF, encode, plain, to_binary
from tamis.lab.atree.kernels.delete import remove_unused, unsubscribe
from tamis.lab.atree.kernels.ids import name_parts
from tamis.lab.atree.kernels.insert import insert_all
from tamis.lab.atree.kernels.match import match_events
from tamis.lab.atree.kernels.match_all import match_events_fully
from tamis.lab.atree.kernels.nodes import rehash
from tamis.lab.forest import ALWAYS, NEVER, Rows, as_rows, collect_rows, rising
from tamis.lab.machine import Updatable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.lab.forest import Tree

WHOLE: Final = Design()


class Program(NamedTuple):
    """Expressions to insert: their parts, root first."""

    kinds: Ints
    values: Ints
    required: Ints
    ids: Ints
    ends: Ints
    is_covered: Ints  # by a node that is reused


class State(NamedTuple):
    """The state of an event, stamped with its number, so that nothing has to be cleared."""

    true_at: Ints  # by node, like all but the last two
    false_at: Ints
    queued_at: Ints
    queued_next: Ints
    n_true: Ints  # children
    n_false: Ints
    queues: Ints  # by level: the first node
    counts: Ints


class ATree(Updatable):
    """Predicates, subexpressions and expressions as shared nodes, evaluated level by level."""

    name: ClassVar = "A-Tree"
    paper: ClassVar = "Ji and Jacobsen 2021, §4 and §5"

    def __init__(self, trees: Mapping[int, Tree], n_leaves: int, design: Design = WHOLE) -> None:
        self.design = design
        super().__init__(trees, n_leaves)

    def build(self, trees: Mapping[int, Tree]) -> None:
        """Insert all trees, in order."""
        self._tree = new_arrays(self.n_leaves, LEAF)
        self._always: set[int] = set()
        self._never: set[int] = set()
        self._known: set[int] = set()
        self._take_in(trees)

    def insert(self, ordinal: int, tree: Tree) -> None:
        """Algorithm 4."""
        if ordinal in self._known:
            raise InputError(f"subscription {ordinal} is in the index already")
        self._take_in({ordinal: tree})

    def _take_in(self, trees: Mapping[int, Tree]) -> None:
        formed = {ordinal: self._form(tree) for ordinal, tree in trees.items()}
        self._always |= {ordinal for ordinal, tree in formed.items() if tree == ALWAYS}
        self._never |= {ordinal for ordinal, tree in formed.items() if tree == NEVER}
        constant = self._always | self._never
        ordinals = np.array([at for at in formed if at not in constant], dtype=np.int64)
        encoding = encode(formed[ordinal] for ordinal in ordinals.tolist())
        n_parts = len(encoding.kinds)
        ids, ends = np.zeros((2, n_parts), dtype=np.int64)
        parts = encoding[1:]
        name_parts(*parts, self._tree.ids, self.design.unique_id, ids, ends)
        program = Program(*parts, ids, ends, np.zeros(n_parts, dtype=np.bool_))
        self._insert_all(program, encoding.starts, ordinals)
        self._known.update(formed)

    def _form(self, tree: Tree) -> Tree:
        """The tree in the form that the design needs: the zero-suppression filter supports neither
        XOR nor k of n.
        """
        if self.design.zero_suppression:
            tree = plain(tree)
        if tree in (ALWAYS, NEVER) or self.design.multitree:
            return tree
        return to_binary(tree)

    def _insert_all(self, program: Program, starts: Ints, ordinals: Ints) -> None:
        if len(ordinals) == 0:
            return
        n_ordinals = int(ordinals.max()) + 1
        if n_ordinals > len(self._tree.nodes_of):
            n_ordinals = max(n_ordinals, len(self._tree.nodes_of) * 5 // 4)
            self._tree = grow_ordinals(self._tree, n_ordinals)
        done = 0
        while done < len(ordinals):
            self._make_room(int(starts[done + 1] - starts[done]))
            done = insert_all(self._tree, program, starts, ordinals, done, self.design)

    def _make_room(self, n_parts: int) -> None:
        """Grow the arrays so that an expression of that many parts fits, with room for more."""
        sizes = self._tree.sizes
        n_nodes = int(sizes[N_NODES]) + n_parts
        if n_nodes > len(self._tree.ids):
            self._tree = grow_nodes(self._tree, n_nodes + n_nodes // 2)
        self._make_room_for_links(n_parts * (5 * int(sizes[MOST_LINKS]) + 16))
        n_inner = int(sizes[N_INNER]) + n_parts
        if n_inner > len(self._tree.buckets):
            buckets = np.full(1 << n_inner.bit_length(), NONE, dtype=np.int32)
            self._tree = self._tree._replace(buckets=buckets)
            rehash(self._tree, self.n_leaves)

    def _make_room_for_links(self, n_links: int) -> None:
        n_needed = int(self._tree.sizes[POOL_TOP]) + n_links
        if n_needed > len(self._tree.pool):
            self._tree = grow_pool(self._tree, n_needed + n_needed // 2)

    def delete(self, ordinal: int) -> None:
        """Algorithm 5."""
        if ordinal not in self._known:
            raise InputError(f"subscription {ordinal} is not in the index")
        self._known.discard(ordinal)
        for constant in (self._always, self._never):
            if ordinal in constant:
                constant.discard(ordinal)
                return
        self._tree.sizes[STACK_TOP] = 0
        unsubscribe(self._tree, ordinal)
        while n_links := int(remove_unused(self._tree, self.design)):
            self._make_room_for_links(n_links)

    def match(self, satisfied: Rows, unsatisfied: Rows | None = None) -> Rows:
        """The ordinals that each event matches, ascending."""
        return rising(self.find(satisfied, unsatisfied))

    def find(self, satisfied: Rows, unsatisfied: Rows | None = None) -> Rows:
        """Algorithm 6; without the zero-suppression filter, leaves known to be false are needed."""
        n_events = len(satisfied)
        if unsatisfied is None:
            unsatisfied = Rows(np.zeros(n_events + 1, np.int64), np.empty(0, np.int32))
        tree, state, design = self._tree, self._new_state(), self.design

        def find(first: int, starts: Ints, found: Ints) -> int:
            if design.zero_suppression:
                return int(match_events(tree, state, satisfied, first, design, starts, found))
            leaves = (satisfied, unsatisfied)
            return int(match_events_fully(tree, state, *leaves, first, design, starts, found))

        rows = collect_rows(find, n_events, len(tree.nodes_of))
        names = ("nodes", "propagations", "queue operations", "pulled results")
        self.counts = dict(zip(names, state.counts.tolist(), strict=True))
        return self._add_always(rows)

    def _add_always(self, found: Rows) -> Rows:
        """The matches found, with the expressions that always match added."""
        if not self._always:
            return found
        always = np.array(sorted(self._always), dtype=np.int32)
        return as_rows([np.concatenate((found[row], always)) for row in range(len(found))])

    def _new_state(self) -> State:
        n_nodes, n_levels = int(self._tree.sizes[N_NODES]), int(self._tree.sizes[MAX_LEVEL]) + 1
        per_node = (np.zeros(n_nodes, dtype=np.int32) for _ in range(6))
        queues = np.full(n_levels, NONE, dtype=np.int32)
        return State._make([*per_node, queues, np.zeros(4, dtype=np.int64)])

    @property
    def n_nodes(self) -> int:
        """Inner nodes in use."""
        return int(self._tree.sizes[N_INNER])

    @property
    def n_bytes(self) -> int:
        """The nodes, links and hash table."""
        return n_bytes(self._tree)
