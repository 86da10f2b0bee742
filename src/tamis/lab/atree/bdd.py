"""BDD (§2): every expression is a root of one binary decision diagram over all predicates.

OxiDD builds the diagram, which is then converted to arrays for matching. Predicates are ordered
like leaves, by attribute. A diagram that exceeds its limit of nodes has run out, as in the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tamis.index.layout import AND, AT_LEAST, OR
from tamis.lab.atree.kernels.bdd import walk_roots
from tamis.lab.forest import Node, RanOutError, Rows, collect_rows
from tamis.lab.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.lab.atree.arrays import Ints
    from tamis.lab.forest import Tree

MOST_NODES: Final = 1 << 18  # of any diagram, plus some for each expression
MOST_PER_TREE: Final = 250
CACHED: Final = 1 << 18  # results of operations
FALSE: Final = 0  # numbers of the terminals
TRUE: Final = 1


class BDD(Machine):
    """Equal parts of diagrams are shared; a root is true if the event's path ends in TRUE."""

    name: ClassVar = "BDD"
    paper: ClassVar = "Ji and Jacobsen 2021, §2"

    def __init__(
        self, trees: Mapping[int, Tree], n_leaves: int, most_nodes: int | None = None
    ) -> None:
        self.most_nodes = most_nodes or MOST_NODES + MOST_PER_TREE * len(trees)
        super().__init__(trees, n_leaves)

    def build(self, trees: Mapping[int, Tree]) -> None:
        """Build the diagram and write its nodes to arrays."""
        self._ordinals = np.array(sorted(trees), dtype=np.int32)
        diagram = _Diagram(self.n_leaves, self.most_nodes)
        roots = [diagram.root(trees[ordinal]) for ordinal in self._ordinals.tolist()]
        functions = list(dict.fromkeys(roots))
        numbers, nodes = _number(functions)
        self._nodes = np.array(nodes, dtype=np.int32).reshape(-1, 3)
        self._roots = np.array([numbers[function] for function in functions], dtype=np.int32)
        places = {function: place for place, function in enumerate(functions)}
        self._root_of = np.array([places[root] for root in roots], dtype=np.int32)

    def match(self, satisfied: Rows) -> Rows:
        """The ordinals that each event matches."""
        is_true = np.zeros(self.n_leaves, dtype=np.bool_)
        holds = np.zeros(len(self._roots), dtype=np.bool_)
        n_nodes = np.zeros(1, dtype=np.int64)
        diagram = (self._roots, self._nodes, self._root_of)

        def find(first: int, starts: Ints, found: Ints) -> int:
            into = (starts, found, n_nodes)
            return int(walk_roots(first, satisfied, *diagram, is_true, holds, *into))

        rows = collect_rows(find, len(satisfied), len(self._ordinals))
        self.counts = {"nodes": int(n_nodes[0])}
        return Rows(rows.starts, self._ordinals[rows.values])

    @property
    def n_nodes(self) -> int:
        """Inner nodes of the diagram."""
        return len(self._nodes) - 2

    @property
    def n_bytes(self) -> int:
        """The nodes and roots, without the data needed to build them."""
        arrays = (self._ordinals, self._nodes, self._roots, self._root_of)
        return sum(array.nbytes for array in arrays)


class _Diagram:
    """Builds functions from trees; each distinct part is built once."""

    def __init__(self, n_leaves: int, most_nodes: int) -> None:
        from oxidd.bdd import BDDManager
        from oxidd.util import DDMemoryError

        self.most_nodes = most_nodes
        self._ran_out = DDMemoryError
        self._manager = BDDManager(most_nodes, CACHED, 1)
        self._manager.add_vars(n_leaves)
        self._made: dict[Tree, Any] = {}

    def root(self, tree: Tree) -> Any:
        """The function of a whole tree."""
        try:
            return self._make(tree)
        except self._ran_out:
            raise RanOutError(f"the diagram needs more than {self.most_nodes:,} nodes") from None

    def _make(self, tree: Tree) -> Any:
        made = self._made.get(tree)
        if made is None:
            is_leaf = isinstance(tree, int)
            made = self._manager.var(tree) if is_leaf else self._combine(tree)  # type: ignore[arg-type]
            self._made[tree] = made
        return made

    def _combine(self, node: Node) -> Any:
        false, true = self._manager.false(), self._manager.true()
        parts = [self._make(child) for child in node.children]
        if node.operator == AND:
            whole = true
            for part in parts:
                whole = whole & part
            return whole
        if node.operator == OR:
            whole = false
            for part in parts:
                whole = whole | part
            return whole
        if node.operator == AT_LEAST:
            # one function per number of true operands seen, up to the threshold
            reached = [true] + [false] * node.required
            for part in parts:
                for k in range(node.required, 0, -1):
                    reached[k] = reached[k] | (part & reached[k - 1])
            return reached[node.required]
        even, odd = true, false
        for is_true, is_negation_true in zip(parts[::2], parts[1::2], strict=True):
            # No event makes both true; if one did, the first would count.
            is_false = is_negation_true & ~is_true
            even, odd = (even & is_false) | (odd & is_true), (odd & is_false) | (even & is_true)
        return odd if node.required else even


def _number(functions: list[Any]) -> tuple[dict[Any, int], list[tuple[int, int, int]]]:
    """The number of each function and, by number, its predicate and its successors for false and
    true. Numbering goes from each root down, false branches first, as most events do.
    """
    numbers: dict[Any, int] = {}
    below: list[Any] = []
    for function in functions:
        pending = [function]
        while pending:
            node = pending.pop()
            if node in numbers:
                continue
            if (cofactors := node.cofactors()) is None:
                numbers[node] = TRUE if node.satisfiable() else FALSE
                continue
            numbers[node] = 2 + len(below)
            below.append((node.node_var(), *cofactors))
            pending.extend(cofactors)
    nodes = [(-1, FALSE, FALSE), (-1, TRUE, TRUE)]
    nodes.extend((var, numbers[if_false], numbers[if_true]) for var, if_true, if_false in below)
    return numbers, nodes
