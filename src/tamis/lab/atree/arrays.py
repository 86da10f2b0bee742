"""The A-Tree as growing arrays; nodes below `n_leaves` are l-nodes, numbered by predicate."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[Any]

NONE: Final = -1
PRIME: Final = (1 << 61) - 1  # ids are smaller
# Indices into `ATreeArrays.sizes`.
N_NODES, POOL_TOP, FREE_NODE, STACK_TOP, LAST_MARK, MAX_LEVEL, MOST_LINKS, N_INNER = range(8)
# A list of class c has room for CAPACITIES[c] links.
CAPACITIES: Final = np.array(
    [0, 1, 2, 3, *(size << step for step in range(1, 28) for size in (2, 3))], dtype=np.int64
)


class Design(NamedTuple):
    """The design elements of the paper; each can be switched off (§6.3)."""

    sharing: bool = True  # equal subexpressions are one node
    multitree: bool = True  # nodes with any number of children, or else two
    unique_id: bool = True  # the order of operands does not matter (§4.2.1)
    reorganisation: bool = True  # of new expressions (§4.2.2)
    self_adjustment: bool = True  # of existing expressions (§4.2.3)
    zero_suppression: bool = True  # only TRUE is propagated (§5.2.1)
    propagation_on_demand: bool = True  # only its access child reaches an AND (§5.2.2)


class ATreeArrays(NamedTuple):
    """Nodes, their links, and the expression-to-node hash table."""

    sizes: Ints  # int64[8], see above
    # A row per node.
    ids: Ints  # int64
    operators: Ints  # uint8
    required: Ints  # int32, of AT_LEAST and XOR
    levels: Ints  # int32
    use_counts: Ints  # int32
    child_starts: Ints  # int32, positions in the pool
    n_children: Ints  # int32
    child_classes: Ints  # uint8
    parent_starts: Ints  # int32
    n_parents: Ints  # int32
    n_pushed: Ints  # int32: results are propagated to that many parents, stored first
    parent_classes: Ints  # uint8
    chained: Ints  # int32, the next node in the bucket; for free nodes, the next free one
    subscribed: Ints  # int32, an ordinal that ends here
    # Scratch space of updates, a row per node.
    marks: Ints  # int64
    seen: Ints  # int64
    stack: Ints  # int32, two rows per node
    # Lists of links: parents as numbers; a child added by self-adjustment as ~child.
    pool: Ints  # int32
    free_lists: Ints  # int32, by class: the first free list
    buckets: Ints  # int32, by id: the first node
    # A row per ordinal.
    nodes_of: Ints  # int32
    next_ordinals: Ints  # int32, others of the same node
    previous_ordinals: Ints  # int32


# Types of the fields from `ids` to `pool`.
_ROW_TYPES: Final = (
    *(np.int64, np.uint8, np.int32, np.int32, np.int32),
    *(np.int32, np.int32, np.uint8),
    *(np.int32, np.int32, np.int32, np.uint8),
    *(np.int32, np.int32),
    *(np.int64, np.int64, np.int32),
    np.int32,
)

PER_NODE: Final = slice(1, 15)  # the fields with a row per node, without scratch
NODE_BYTES: Final = sum(np.dtype(kind).itemsize for kind in _ROW_TYPES[:14])
_FILLS: Final = {"subscribed": NONE, "nodes_of": NONE, "next_ordinals": NONE}


def new_arrays(n_leaves: int, operator_of_leaves: int) -> ATreeArrays:
    """An A-Tree with its l-nodes."""
    sizes = np.zeros(8, dtype=np.int64)
    sizes[[N_NODES, FREE_NODE, MAX_LEVEL]] = n_leaves, NONE, 1
    tree = ATreeArrays._make(
        [
            sizes,
            *(np.zeros(0, dtype=dtype) for dtype in _ROW_TYPES),
            np.full(len(CAPACITIES), NONE, dtype=np.int32),
            np.full(16, NONE, dtype=np.int32),
            *(np.zeros(0, dtype=np.int32) for _ in range(3)),
        ]
    )
    tree = grow_nodes(tree, n_leaves + 16)
    tree.ids[:n_leaves] = np.random.default_rng(2021).integers(2, PRIME, n_leaves)
    tree.operators[:n_leaves] = operator_of_leaves
    tree.levels[:n_leaves] = 1
    return tree


def grow_nodes(tree: ATreeArrays, n_nodes: int) -> ATreeArrays:
    """The same tree with room for more nodes."""
    names = ATreeArrays._fields[PER_NODE]
    rows = dict.fromkeys((*names, "marks", "seen"), n_nodes) | {"stack": 2 * n_nodes}
    return _resize(tree, rows)


def grow_pool(tree: ATreeArrays, n_links: int) -> ATreeArrays:
    """The same tree with room for more links."""
    return _resize(tree, {"pool": n_links})


def grow_ordinals(tree: ATreeArrays, n_ordinals: int) -> ATreeArrays:
    """The same tree with room for more subscriptions."""
    names = ("nodes_of", "next_ordinals", "previous_ordinals")
    return _resize(tree, dict.fromkeys(names, n_ordinals))


def _resize(tree: ATreeArrays, rows: dict[str, int]) -> ATreeArrays:
    changed = {}
    for name, n_rows in rows.items():
        old = getattr(tree, name)
        changed[name] = np.full(n_rows, _FILLS.get(name, 0), dtype=old.dtype)
        changed[name][: len(old)] = old
    return tree._replace(**changed)


def n_bytes(tree: ATreeArrays) -> int:
    """The arrays in use, without spare room and scratch."""
    n_nodes, n_links = int(tree.sizes[N_NODES]), int(tree.sizes[POOL_TOP])
    rest = (tree.buckets, tree.nodes_of, tree.next_ordinals, tree.previous_ordinals)
    return int(n_nodes * NODE_BYTES + n_links * 4 + sum(array.nbytes for array in rest))
