"""The Aho–Corasick automaton: finds every literal in a text in one pass over its bytes.

Nodes are numbered breadth first, so a node's children are neighbours and its failure link goes to a
lower number. The first nodes, where a pass spends most of its time, have a dense row: the next node
for every byte, failures resolved. From any other node the pass searches the labels of the children
and follows failure links until a node has such a child, or a row.

Existing packages make a Python object of every match, and a text has a hundred matches: on the
15,000 patterns of the Sigma rules' command lines and texts of 200 characters, ahocorasick_rs 1.0.3
takes 26 µs a text and pyahocorasick 2.3.1 21 µs to find the literals alone; all of `match_texts`
takes 9 µs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tamis.kernels.compiled import kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.kernels.arrays import Int32, Int32Rows, UInt8

# Entries of all dense rows, 1 MB: about the size of a core's private cache. With the 15,000
# literals of the Sigma rules' command lines (128,000 nodes), a text of 200 characters takes 7.8 µs
# in total; with a row for the root only 9.1 µs, with a row for every node (76 MB) 9.7 to 19 µs.
DENSE_ENTRIES: Final = 1 << 18

# Fields of a node, stored together: a step reads all of them.
FIRST_CHILD: Final = 0  # the next node's is the end of the children
FAILURE: Final = 1  # the node of the longest proper suffix that is a node
LITERAL: Final = 2  # the longest literal that the node's text ends with, or -1
LABEL: Final = 3  # the byte that leads to the node
N_FIELDS: Final = 4

NO_LITERAL: Final = -1


class Automaton(NamedTuple):
    """The automaton of a set of literals."""

    nodes: Int32Rows  # [n_nodes + 1, N_FIELDS]; the last only ends the children before it
    byte_classes: UInt8  # [256], the column of dense rows; 0 for bytes in no literal
    dense_rows: Int32Rows  # [n_dense, n_classes], the next node; n_dense >= 1


def build_automaton(literals: Sequence[bytes], first_literal: int) -> tuple[Automaton, Int32]:
    """The automaton of distinct literals in ascending order, none empty, and their links.

    Literals are numbered from `first_literal`. A literal's link is the longest other literal that
    is a suffix of it, or -1.
    """
    text = np.frombuffer(b"".join(literals), dtype=np.uint8)
    starts = np.zeros(len(literals) + 1, dtype=np.int64)
    np.cumsum([len(literal) for literal in literals], out=starts[1:])
    nodes = np.zeros((len(text) + 2, N_FIELDS), dtype=np.int32)
    own_literals = np.empty(len(text) + 1, dtype=np.int32)
    n_nodes = grow_trie(text, starts, nodes, own_literals)
    byte_classes = np.zeros(256, dtype=np.uint8)
    used = np.unique(text)
    # UTF-8 never uses the bytes above 0xF4: the classes fit one byte.
    byte_classes[used] = np.arange(1, len(used) + 1)
    n_dense = max(1, min(n_nodes, DENSE_ENTRIES // (len(used) + 1)))
    dense_rows = np.zeros((n_dense, len(used) + 1), dtype=np.int32)
    automaton = Automaton(nodes[: n_nodes + 1].copy(), byte_classes, dense_rows)
    links = np.empty(len(literals), dtype=np.int32)
    link_nodes(automaton, own_literals, first_literal, links)
    return automaton, links


@kernel(_nrt=True)
def grow_trie(
    text,  # uint8[:], the literals in ascending order, concatenated
    starts,  # int64[n_literals + 1]
    nodes,  # int32[len(text) + 2, N_FIELDS], zero on entry; children and labels are written
    own_literals,  # int32[len(text) + 1], output: the literal that ends at each node, or -1
):
    """Write the nodes breadth first; return their number."""
    # The literals below each node are a range of the sorted ones.
    begins = np.empty(len(own_literals), dtype=np.int32)
    ends = np.empty(len(own_literals), dtype=np.int32)
    depths = np.empty(len(own_literals), dtype=np.int32)
    begins[0], ends[0], depths[0] = 0, len(starts) - 1, 0
    n_nodes = 1
    node = 0
    while node < n_nodes:
        nodes[node, FIRST_CHILD] = n_nodes
        literal, end, depth = begins[node], ends[node], depths[node]
        own_literals[node] = NO_LITERAL
        if literal < end and starts[literal + 1] - starts[literal] == depth:
            own_literals[node] = literal  # the shortest comes first
            literal += 1
        while literal < end:
            label = text[starts[literal] + depth]
            nodes[n_nodes, LABEL] = label
            begins[n_nodes] = literal
            depths[n_nodes] = depth + 1
            while literal < end and text[starts[literal] + depth] == label:
                literal += 1
            ends[n_nodes] = literal
            n_nodes += 1
        node += 1
    nodes[n_nodes, FIRST_CHILD] = n_nodes
    return n_nodes


@kernel(_nrt=True)
def link_nodes(
    automaton,  # Automaton; failures, literals and dense rows are written
    own_literals,  # int32[n_nodes or more], of grow_trie
    first_literal,  # number of the first one
    links,  # int32[n_literals], output
):
    """Link every node and literal to its longest proper suffix, in order of depth."""
    nodes, byte_classes, dense_rows = automaton
    for node in range(len(nodes) - 1):
        failure = nodes[node, FAILURE]
        nodes[node, LITERAL] = nodes[failure, LITERAL] if node > 0 else NO_LITERAL
        own = own_literals[node]
        if own != NO_LITERAL:
            links[own] = nodes[node, LITERAL]
            nodes[node, LITERAL] = first_literal + own
        begin, end = nodes[node, FIRST_CHILD], nodes[node + 1, FIRST_CHILD]
        if node > 0:
            for child in range(begin, end):
                nodes[child, FAILURE] = next_node(automaton, failure, nodes[child, LABEL])
        if node < len(dense_rows):
            dense_rows[node] = dense_rows[failure]
            for child in range(begin, end):
                dense_rows[node, byte_classes[nodes[child, LABEL]]] = child


@kernel(inline="always")
def next_node(automaton, node, byte):
    """The node of the longest suffix of the text read so far, with `byte` appended, that is a
    node.
    """
    nodes = automaton.nodes
    n_dense = len(automaton.dense_rows)
    while node >= n_dense:
        low, high = nodes[node, FIRST_CHILD], nodes[node + 1, FIRST_CHILD]
        while low < high:
            middle = (low + high) >> 1
            label = nodes[middle, LABEL]
            if label == byte:
                return middle
            if label < byte:
                low = middle + 1
            else:
                high = middle
        node = nodes[node, FAILURE]
    return automaton.dense_rows[node, automaton.byte_classes[byte]]
