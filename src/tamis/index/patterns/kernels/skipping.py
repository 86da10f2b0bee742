"""Passes over the parts of a text in which no literal begins (Wu and Manber, 1994).

While no literal is begun, the automaton need not read every byte. A window as long as the shortest
literal is laid on the text, and its last bytes are looked up: if no literal has them among its
first bytes, or only further left, the window moves on. Most of a long text is passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tamis.index.patterns.kernels.automaton import (
    FIRST_CHILD,
    LABEL,
    LITERAL,
    NO_LITERAL,
    Automaton,
)
from tamis.kernels.compiled import kernel

if TYPE_CHECKING:
    from tamis.kernels.arrays import Int64, UInt8

# Indices into Skips.sizes.
WINDOW: Final = 0  # bytes: the length of the shortest literal, or less; 0 for no skips
BLOCK: Final = 1  # bytes that are looked up, at the end of the window
N_SINGLE: Final = 2  # nodes of at most one byte
N_SHALLOW: Final = 3  # nodes of fewer bytes than a block
N_SIZES: Final = 4

MOST_WINDOW: Final = 128  # a shift fits one byte
MOST_BLOCK: Final = 3
# The shift for blocks that occur in no literal. It is not the number of bytes, which would make
# each lookup wait for the one before.
FAR: Final = 255
# With a shorter window, most positions would be candidates.
LEAST_WINDOW: Final = 2
LEAST_SHIFTS: Final = 1 << 8
MOST_SHIFTS: Final = 1 << 14  # half of a core's first cache
_PRIME: Final = 0x9E3779B1
_BYTE: Final = 8
_MASK: Final = (1 << (_BYTE * MOST_BLOCK)) - 1


class Skips(NamedTuple):
    """How far the window may move, by the bytes at its end."""

    shifts: UInt8  # a power of two of them, by a hash of the block
    sizes: Int64  # [N_SIZES]


def find_skips(automaton: Automaton) -> Skips:
    """The skips of an automaton's literals."""
    n_nodes = len(automaton.nodes)
    n_shifts = min(MOST_SHIFTS, max(LEAST_SHIFTS, 1 << (4 * n_nodes).bit_length()))
    skips = Skips(np.empty(n_shifts, dtype=np.uint8), np.zeros(N_SIZES, dtype=np.int64))
    depths, blocks = (np.zeros(n_nodes, dtype=np.int32) for _ in range(2))
    fill_skips(automaton.nodes, depths, blocks, skips)
    for array in skips:
        array.flags.writeable = False
    return skips


@kernel(inline="always")
def hash_block(block, n_shifts):
    """The shift of a block."""
    return ((block * _PRIME) >> 20) & (n_shifts - 1)


@kernel
def fill_skips(
    nodes,  # int32[n_nodes + 1, N_FIELDS], of the automaton
    depths,  # int32[n_nodes + 1], scratch, zero on entry
    blocks,  # int32[n_nodes + 1], scratch, zero on entry: the last bytes of each node's text
    skips,  # Skips, output; sizes are zero on entry
):
    """Fill the skips."""
    shifts, sizes = skips
    n_nodes = len(nodes) - 1
    window = MOST_WINDOW
    n_known = n_nodes
    for node in range(n_nodes):
        if nodes[node, LITERAL] != NO_LITERAL:
            # The shortest literal: nodes are numbered breadth first.
            window = min(window, int(depths[node]))
            n_known = nodes[node, FIRST_CHILD]
            break
        for child in range(nodes[node, FIRST_CHILD], nodes[node + 1, FIRST_CHILD]):
            depths[child] = depths[node] + 1
            blocks[child] = ((blocks[node] << _BYTE) | nodes[child, LABEL]) & _MASK
    if window < LEAST_WINDOW:
        return
    block = min(window, MOST_BLOCK)
    mask = (1 << (_BYTE * block)) - 1
    sizes[WINDOW], sizes[BLOCK] = window, block
    shifts[:] = FAR
    for node in range(n_known):
        depth = depths[node]
        sizes[N_SINGLE] += depth <= 1
        sizes[N_SHALLOW] += depth < block
        if block <= depth <= window:
            at = hash_block(np.int64(blocks[node]) & mask, len(shifts))
            shifts[at] = min(np.int64(shifts[at]), window - depth)


@kernel(inline="always")
def find_start(text, at, end, skips):
    """The first position from `at` on at which a literal may begin, or `end`."""
    shifts, sizes = skips
    window, block = sizes[WINDOW], sizes[BLOCK]
    if window == 0:
        return at
    n_shifts = len(shifts)
    far = window - block + 1
    while at + window <= end:
        last = at + window - 1
        word = np.int64(text[last]) | (np.int64(text[last - 1]) << 8)
        if block == MOST_BLOCK:
            word |= np.int64(text[last - 2]) << 16
        shift = shifts[hash_block(word, n_shifts)]
        if shift == FAR:
            at += far
        elif shift == 0:
            return at
        else:
            at += np.int64(shift)
    return end


@kernel(inline="always")
def begin_of(node, at, sizes):
    """Where the text of a shallow node begins that ends before `at`."""
    return at - (node > 0) - (node >= sizes[N_SINGLE])
