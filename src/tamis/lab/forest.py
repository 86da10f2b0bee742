"""The input of the lab's machines: a tree per subscription, and the leaves an event satisfies.

The machines differ in how they use trees, not in how they read attributes. So the product reads,
types and simplifies the expressions and numbers their predicates; here they are trees over those
numbers, and an event is the set of leaves that it makes true. Negations are at the leaves, as
separate leaves, so that three-valued logic needs no third value: a tree is true or not.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

import tamis
from tamis.errors import TamisError
from tamis.index.layout import AND, AT_LEAST, OR
from tamis.lab.kernels.leaves import find_false_leaves, find_leaves
from tamis.match.single_scratch import make_single_scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tamis.index.contents import Contents
    from tamis.kernels.arrays import Int32, Int64
    from tamis.match.index import Index


class RanOutError(TamisError):
    """The form that an algorithm needs exceeds its size limit."""


class Node(NamedTuple):
    """An inner node of a tree."""

    operator: int  # AND, OR, AT_LEAST or XOR, as in `tamis.index.layout`
    required: int  # the threshold of AT_LEAST; the parity of true operands for XOR
    children: tuple[Tree, ...]  # for XOR, pairs: the operand, and its negation


Tree: TypeAlias = int | Node  # a leaf is an integer
ALWAYS: Final = Node(AND, 0, ())
NEVER: Final = Node(OR, 0, ())
MOST_NODES: Final = 10_000  # of a tree, with XOR and AT_LEAST written as AND and OR


class Rows(NamedTuple):
    """A run of numbers for each event: the leaves it satisfies, or the ordinals it matches."""

    starts: Int64  # [n_events + 1]
    values: Int32

    def __getitem__(self, row: Any) -> Any:
        return self.values[self.starts[row] : self.starts[row + 1]]

    def __len__(self) -> int:
        return len(self.starts) - 1


class Forest:
    """The subscriptions as trees, by ordinal, together with the product's index of them."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.n_leaves = index.contents.n_leaves
        self.trees = read_trees(index.contents)

    @classmethod
    def of(
        cls,
        subscriptions: Mapping[str, str] | Iterable[tuple[str, str]],
        *args: Any,
        **options: Any,
    ) -> Forest:
        """The forest of expressions as text; the arguments are those of `tamis.build`."""
        return cls(tamis.build(subscriptions, *args, **options))

    @property
    def opposites(self) -> dict[int, int]:
        """Leaves that are true for exactly the events for which another, their opposite, is not."""
        leaves = self.index.contents.leaves
        first = int(leaves.column_complements[-1])
        pairs = (leaves.complement_leaves[first:], leaves.complement_bases[first:])
        return dict(zip(*(array.tolist() for array in pairs), strict=True))

    def satisfied(self, events: Sequence[Mapping[str, Any]]) -> Rows:
        """The leaves that each event makes true, ascending."""
        return self._leaves(events, find_leaves)

    def unsatisfied(self, events: Sequence[Mapping[str, Any]]) -> Rows:
        """The leaves that each event makes false, not undefined: their attributes are present."""
        return self._leaves(events, find_false_leaves)

    def _leaves(self, events: Sequence[Mapping[str, Any]], find: Any) -> Rows:
        index = self.index
        contents, scratch = index.contents, make_single_scratch(index.contents)
        found = np.empty(self.n_leaves, dtype=np.int32)
        runs: list[np.ndarray] = []
        for event in events:
            read = index.view.encoder.encode_event(event)
            n_found = find(read, contents.leaves, contents.triggers, scratch, found)
            runs.append(found[:n_found].copy())
        return as_rows(runs)


def as_rows(runs: Sequence[np.ndarray]) -> Rows:
    """Concatenate the runs."""
    starts = np.zeros(len(runs) + 1, dtype=np.int64)
    np.cumsum([len(run) for run in runs], out=starts[1:])
    values = np.concatenate([np.empty(0, dtype=np.int32), *runs])
    return Rows(starts, values.astype(np.int32, copy=False))


def collect_rows(find: Callable[[int, Int64, Int32], int], n_events: int, n_most: int) -> Rows:
    """The numbers that a kernel finds for each event, at most `n_most`.

    `find(first, starts, found)` continues from an event while there is room; it returns the next
    event.
    """
    starts = np.zeros(n_events + 1, dtype=np.int64)
    found = np.empty(2 * n_most + 1024, dtype=np.int32)
    done = find(0, starts, found)
    while done < n_events:
        found = np.concatenate((found, np.empty_like(found)))
        done = find(done, starts, found)
    return Rows(starts, found[: starts[-1]])


def rising(found: Rows) -> Rows:
    """The same numbers, sorted for each event."""
    events = np.repeat(np.arange(len(found)), np.diff(found.starts))
    keys = np.sort(events << 32 | found.values)
    return Rows(found.starts, (keys & 0xFFFFFFFF).astype(np.int32))


def read_trees(contents: Contents) -> list[Tree]:
    """The tree of every subscription; equal parts are the same object."""
    nodes, n_leaves = contents.nodes, contents.n_leaves
    starts, children = nodes.child_starts.tolist(), nodes.children.tolist()
    made: list[Tree] = list(range(n_leaves))
    columns = zip(nodes.operators.tolist(), nodes.required.tolist(), strict=True)
    for inner, (operator, required) in enumerate(columns):
        below = tuple(made[child] for child in children[starts[inner] : starts[inner + 1]])
        made.append(Node(operator, required, below))
    trees: list[Tree] = [NEVER] * len(contents.ids)
    for ordinal in contents.roots.always.tolist():
        trees[ordinal] = ALWAYS
    roots = contents.roots
    owners = np.repeat(roots.nodes, np.diff(roots.subscription_starts))
    for node, ordinal in zip(owners.tolist(), roots.subscriptions.tolist(), strict=True):
        trees[ordinal] = made[node]
    return trees


def holds(tree: Tree, satisfied: set[int] | frozenset[int]) -> bool:
    """Whether the tree is true if exactly these leaves are true: the definition."""
    if isinstance(tree, int):
        return tree in satisfied
    truths = [holds(child, satisfied) for child in tree.children]
    if tree.operator == AND:
        return all(truths)
    if tree.operator == OR:
        return any(truths)
    if tree.operator == AT_LEAST:
        return sum(truths) >= tree.required
    is_known = all(a or b for a, b in zip(truths[::2], truths[1::2], strict=True))
    return is_known and sum(truths[::2]) % 2 == tree.required


def to_and_or(tree: Tree, most_nodes: int = MOST_NODES) -> Tree:
    """The same condition with alternating AND and OR only, for papers without other operators.

    Raises `RanOutError` if it would have more than `most_nodes` nodes.
    """
    left = [most_nodes]

    def spend(n_nodes: int) -> None:
        left[0] -= n_nodes
        if left[0] < 0:
            raise RanOutError(f"the tree needs more than {most_nodes:,} nodes of AND and OR")

    def convert(node: Tree) -> Tree:
        spend(1)
        if isinstance(node, int):
            return node
        if node.operator in (AND, OR):
            return gather(node.operator, [convert(child) for child in node.children])
        if node.operator == AT_LEAST:
            chosen = combinations(node.children, node.required)
            return gather(OR, [gather(AND, [convert(c) for c in some]) for some in chosen])
        pairs = list(zip(node.children[::2], node.children[1::2], strict=True))
        return parity(pairs, node.required)

    def parity(pairs: list[tuple[Tree, Tree]], wanted: int) -> Tree:
        """Whether the number of true operands is odd (1) or even (0), by recursive halving."""
        if len(pairs) == 1:
            return convert(pairs[0][0 if wanted else 1])
        half = len(pairs) // 2
        sides = [
            gather(AND, [parity(pairs[:half], odd), parity(pairs[half:], odd ^ wanted)])
            for odd in (0, 1)
        ]
        return gather(OR, sides)

    return convert(tree)


def gather(operator: int, children: Sequence[Tree]) -> Tree:
    """AND or OR of the children: nested operands of the same operator are merged, and a single
    child is returned itself.
    """
    below: list[Tree] = []
    for child in children:
        is_same = isinstance(child, Node) and child.operator == operator
        below.extend(child.children if is_same else (child,))  # type: ignore[union-attr]
    below = list(dict.fromkeys(below))
    zero = NEVER if operator == AND else ALWAYS
    if zero in below:
        return zero
    return below[0] if len(below) == 1 else Node(operator, 0, tuple(below))
