"""Converts instructions to nodes of one shared DAG, in negation normal form.

A reference identifies a node: a leaf by its number, an inner node i by -1 - i. Equal inner nodes
are shared: a hash table finds them by operator and children, and compares the contents, so a
collision of hashes is harmless. An instruction may be needed as it is, negated, or both (under
XOR), and is converted once for each: so the cost of nested XORs is linear.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.index import layout
from tamis.index.kernels import scan
from tamis.index.kernels.folding import (
    DECIDED,
    HOW,
    N_CHILDREN,
    NO_ROOM,
    OPERATOR,
    PRESENCE,
    VALUES_MEET,
    copy_run,
    drop_repeated,
    fold_presence,
    fold_values,
    holds_presence,
    is_in,
    leaves_meet,
)
from tamis.kernels.compiled import kernel
from tamis.kernels.sorting import sort_run

MEETS = np.iinfo(np.int32).min  # instead of a reference: leaves must be folded first
FALSE = 0  # leaves: see `bases`
TRUE = 1


class Inner(NamedTuple):
    """Inner nodes by content, with room for more."""

    table: np.ndarray  # int64[power of two], -1 or part of the hash above a node in 32 bits
    operators: np.ndarray  # uint8[:], of `layout`
    required: np.ndarray  # int32[:]
    child_starts: np.ndarray  # int64[:], one more than nodes
    children: np.ndarray  # int32[:], references
    n_inner: np.ndarray  # int64[1]


class Making(NamedTuple):
    """Scratch space for converting one program, large enough for the longest one."""

    wanted: np.ndarray  # uint8[longest], bit 0 as it is, bit 1 negated
    sides: np.ndarray  # int32[longest, 2], references as it is, and negated
    links: np.ndarray  # int32[longest], the step of each operand
    link_starts: np.ndarray  # int32[longest + 1]
    stack: np.ndarray  # int32[longest]
    references: np.ndarray  # int32[2 * longest]


def new_making(longest: int) -> Making:
    """Scratch space for programs of at most this number of steps."""
    return Making(
        np.empty(longest, dtype=np.uint8),
        np.empty((longest, 2), dtype=np.int32),
        np.empty(longest, dtype=np.int32),
        np.empty(longest + 1, dtype=np.int32),
        np.empty(longest, dtype=np.int32),
        np.empty(2 * longest, dtype=np.int32),
    )


@kernel
def hash_node(operator, need, children, begin, end):
    """A hash of a node's content, not negative."""
    mixed = np.uint64(operator) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(need)
    for i in range(begin, end):
        mixed ^= np.uint64(np.int64(children[i]))
        mixed *= np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed >> np.uint64(1))


@kernel
def rehash_nodes(inner):
    """Insert all nodes into an empty, larger table."""
    mask = len(inner.table) - 1
    for node in range(inner.n_inner[0]):
        hashed = hash_node(
            inner.operators[node],
            inner.required[node],
            inner.children,
            inner.child_starts[node],
            inner.child_starts[node + 1],
        )
        slot = hashed & mask
        while inner.table[slot] >= 0:
            slot = (slot + 1) & mask
        inner.table[slot] = (hashed >> 32 << 32) | node


@kernel
def find_node(inner, operator, need, n_children):
    """The reference of the node, new or known, whose children are stored after the last node's."""
    begin = inner.child_starts[inner.n_inner[0]]
    end = begin + n_children
    mask = len(inner.table) - 1
    hashed = hash_node(operator, need, inner.children, begin, end)
    slot = hashed & mask
    while inner.table[slot] >= 0:
        other = inner.table[slot] & 0xFFFFFFFF
        if inner.table[slot] >> 32 == hashed >> 32:
            start = inner.child_starts[other]
            is_same = (
                inner.child_starts[other + 1] - start == n_children
                and inner.operators[other] == operator
                and inner.required[other] == need
            )
            for i in range(n_children if is_same else 0):
                if inner.children[start + i] != inner.children[begin + i]:
                    is_same = False
                    break
            if is_same:
                return -1 - other
        slot = (slot + 1) & mask
    node = inner.n_inner[0]
    inner.table[slot] = (hashed >> 32 << 32) | node
    inner.operators[node] = operator
    inner.required[node] = need
    inner.child_starts[node + 1] = end
    inner.n_inner[0] = node + 1
    return -1 - node


@kernel
def join(inner, operator, references, n_references, heads, met):
    """The node of an AND or OR of these references: flat, sorted, distinct, folded."""
    children = inner.children
    begin = inner.child_starts[inner.n_inner[0]]
    neutral, decisive = (TRUE, FALSE) if operator == layout.AND else (FALSE, TRUE)
    n_children = 0
    for i in range(n_references):
        reference = references[i]
        if reference < 0 and inner.operators[-1 - reference] == operator:
            below = -1 - reference
            for at in range(inner.child_starts[below], inner.child_starts[below + 1]):
                children[begin + n_children] = children[at]
                n_children += 1
        elif reference == decisive:
            return decisive
        elif reference != neutral:
            children[begin + n_children] = reference
            n_children += 1
    sort_run(children, begin, n_children)
    n_kept = 0
    for i in range(n_children):
        child = children[begin + i]
        if n_kept == 0 or child != children[begin + n_kept - 1]:
            # A leaf and its negation are neighbours, and are never both true.
            if (
                operator == layout.AND
                and n_kept > 0
                and child > 0
                and child & 1 == 1
                and children[begin + n_kept - 1] == child - 1
            ):
                return FALSE
            children[begin + n_kept] = child
            n_kept += 1
    n_kept = absorb(inner, operator, begin, n_kept)
    if n_kept > 1:
        how = leaves_meet(children, begin, n_kept, operator, heads, met)
        if how:
            met.node[HOW], met.node[OPERATOR], met.node[N_CHILDREN] = how, operator, n_kept
            return MEETS
    return find_joined(inner, operator, n_kept)


@kernel
def fold(inner, bases, texts, met, meeting):
    """The node for the children that `join` did not finish because leaves meet."""
    children = inner.children
    begin = inner.child_starts[inner.n_inner[0]]
    how, operator, n_children = met.node[HOW], met.node[OPERATOR], met.node[N_CHILDREN]
    # A folded leaf may absorb more than the original ones.
    if how & VALUES_MEET:
        n_children = fold_values(children, begin, n_children, operator, bases, texts, met, meeting)
        n_children = absorb(inner, operator, begin, n_children)
        if operator == layout.OR and holds_presence(children, begin, n_children, bases):
            how |= PRESENCE
    if how & PRESENCE and n_children > 0:
        n_children = fold_presence(children, begin, n_children, operator, bases, met, meeting)
        n_children = absorb(inner, operator, begin, n_children)
    if n_children == DECIDED or n_children == NO_ROOM:
        return FALSE if operator == layout.AND else TRUE
    return find_joined(inner, operator, n_children)


@kernel
def find_joined(inner, operator, n_children):
    """The node of an AND or OR of children that are flat, sorted, distinct and folded."""
    if n_children == 0:
        return TRUE if operator == layout.AND else FALSE
    if n_children == 1:
        return inner.children[inner.child_starts[inner.n_inner[0]]]
    return find_node(inner, operator, 0, n_children)


@kernel
def absorb(inner, operator, begin, n_children):
    """Drop inner nodes that contain a sibling: p AND (p OR q) is p; return how many are left."""
    children = inner.children
    if n_children < 2 or children[begin] >= 0:
        return n_children
    dual = layout.OR if operator == layout.AND else layout.AND
    last = begin + n_children - 1
    is_changed = False
    for at in range(last, begin - 1, -1):
        node = -1 - children[at]
        if node < 0 or inner.operators[node] != dual:
            continue
        first, end = inner.child_starts[node], inner.child_starts[node + 1]
        if holds_one_of(children, first, end, begin, last + 1):
            # The run stays sorted. No sibling can contain the dropped node, since nodes are flat.
            is_changed = True
            if at == last:
                last -= 1
            else:
                children[at] = children[at + 1]
    return drop_repeated(children, begin, last + 1 - begin) if is_changed else n_children


@kernel
def holds_one_of(children, first, end, begin, stop):
    """Whether two sorted runs of children have a child in common."""
    # Usually, one ends before the other begins.
    if children[first] > children[stop - 1] or children[end - 1] < children[begin]:
        return False
    for at in range(first, end):
        if is_in(children, begin, stop, children[at]):
            return True
    return False


@kernel
def join_at_least(inner, k, references, n_references, heads, met):
    """The node of at_least(k, …), with constants folded."""
    n_children = 0
    for i in range(n_references):
        if references[i] == TRUE:
            k -= 1
        elif references[i] != FALSE:
            references[n_children] = references[i]
            n_children += 1
    if k <= 0:
        return TRUE
    if k > n_children:
        return FALSE
    if k == 1:
        return join(inner, layout.OR, references, n_children, heads, met)
    if k == n_children:
        return join(inner, layout.AND, references, n_children, heads, met)
    begin = inner.child_starts[inner.n_inner[0]]
    copy_run(references, 0, n_children, inner.children, begin)
    sort_run(inner.children, begin, n_children)
    return find_node(inner, layout.AT_LEAST, k, n_children)


@kernel
def join_xor(inner, parity, references, n_references):
    """The node of an XOR over pairs (where true, where false), sorted, with constants folded.

    Swapping the sides of a pair changes the parity, so the smaller side of each pair is first.
    """
    children = inner.children
    begin = inner.child_starts[inner.n_inner[0]]
    n_children = 0
    for i in range(0, n_references, 2):
        first, second = references[i], references[i + 1]
        if first > second:
            first, second = second, first
            parity = 1 - parity
        if first == FALSE and second == TRUE:
            continue
        at = begin + n_children
        n_children += 2
        while at > begin and (
            children[at - 2] > first or (children[at - 2] == first and children[at - 1] > second)
        ):
            children[at], children[at + 1] = children[at - 2], children[at - 1]
            at -= 2
        children[at], children[at + 1] = first, second
    if n_children == 0:
        return FALSE if parity else TRUE
    if n_children == 2:
        return children[begin] if parity else children[begin + 1]
    return find_node(inner, layout.XOR, parity, n_children)


@kernel
def add_programs(
    programs,  # Programs
    inner,  # Inner
    bases,  # Bases
    texts,  # TextConstants
    met,  # Met
    meeting,  # Meeting
    making,  # Making
    begin,  # the first program
    roots,  # int32[n_programs], output: references
):
    """Add the nodes of the programs from `begin` on; return the first one that has no room."""
    starts, wanted, sides = programs.starts, making.wanted, making.sides
    for program in range(begin, len(starts) - 1):
        if programs.is_left[program]:
            continue
        first, n_steps = starts[program], starts[program + 1] - starts[program]
        n_nodes, n_children = room_needed(programs, first, n_steps, making.stack)
        if not has_room(inner, n_nodes, n_children):
            return program
        link_operands(programs, first, n_steps, making)
        want(programs, first, n_steps, making)
        for step in range(n_steps):
            for side in range(2):
                if wanted[step] >> side & 1:
                    reference = make(programs, first, step, side, making, inner, bases.heads, met)
                    if reference == MEETS:
                        reference = fold(inner, bases, texts, met, meeting)
                    sides[step, side] = reference
        if meeting.n_lacking[0]:
            return program
        roots[program] = sides[n_steps - 1, 0]
    return len(starts) - 1


@kernel
def room_needed(programs, first, n_steps, stack):
    """The largest number of nodes and children that one program can add."""
    operators, operands = programs.operators, programs.operands
    n_nodes = 0
    n_children = 0
    height = 0
    for at in range(first, first + n_steps):
        n_below = 1
        if operators[at] != scan.STEP_LEAF:
            n_below = 0
            for _ in range(operands[at]):
                height -= 1
                n_below += stack[height]
            # Both sides, each with all leaves below it; XOR needs both sides of these too.
            n_nodes += 2
            n_children += 4 * n_below
        stack[height] = n_below
        height += 1
    return n_nodes, n_children


@kernel
def has_room(inner, n_nodes, n_children):
    """Whether there is room for this number of nodes and children."""
    n_inner = inner.n_inner[0]
    return (
        n_inner + n_nodes < len(inner.operators)
        and 2 * (n_inner + n_nodes) < len(inner.table)
        and inner.child_starts[n_inner] + n_children < len(inner.children)
    )


@kernel
def link_operands(programs, first, n_steps, making):
    """Find the instruction of each operand; none is wanted yet."""
    links, link_starts, stack = making.links, making.link_starts, making.stack
    height = 0
    n_links = 0
    for step in range(n_steps):
        link_starts[step] = n_links
        making.wanted[step] = 0
        if programs.operators[first + step] != scan.STEP_LEAF:
            n_operands = programs.operands[first + step]
            for i in range(n_operands):
                links[n_links] = stack[height - n_operands + i]
                n_links += 1
            height -= n_operands
        stack[height] = step
        height += 1
    link_starts[n_steps] = n_links


@kernel
def want(programs, first, n_steps, making):
    """Mark which instructions are needed as they are, and which negated, from the root down."""
    wanted, link_starts = making.wanted, making.link_starts
    wanted[n_steps - 1] = 1
    for step in range(n_steps - 1, -1, -1):
        operator = programs.operators[first + step]
        sides = wanted[step]
        if operator == scan.STEP_NOT:
            sides = (sides >> 1) | ((sides & 1) << 1)
        elif operator == scan.STEP_XOR or operator == scan.STEP_XNOR:
            sides = 3
        for at in range(link_starts[step], link_starts[step + 1]):
            wanted[making.links[at]] |= sides


@kernel(inline="always")
def make(programs, first, step, side, making, inner, heads, met):
    """The reference of one instruction, as it is (side 0) or negated (side 1)."""
    operator = programs.operators[first + step]
    if operator == scan.STEP_LEAF:
        return programs.operands[first + step] ^ side
    links, sides, references = making.links, making.sides, making.references
    begin, end = making.link_starts[step], making.link_starts[step + 1]
    if operator == scan.STEP_NOT:
        return sides[links[begin], 1 - side]
    n_operands = end - begin
    if operator == scan.STEP_XOR or operator == scan.STEP_XNOR:
        for i in range(n_operands):
            references[2 * i] = sides[links[begin + i], 0]
            references[2 * i + 1] = sides[links[begin + i], 1]
        parity = (operator == scan.STEP_XOR) ^ side
        return join_xor(inner, parity, references, 2 * n_operands)
    for i in range(n_operands):
        references[i] = sides[links[begin + i], side]
    if operator == scan.STEP_AT_LEAST:
        need = programs.required[first + step]
        k = n_operands - need + 1 if side else need
        return join_at_least(inner, k, references, n_operands, heads, met)
    is_and = (operator == scan.STEP_AND) ^ side
    joined = layout.AND if is_and else layout.OR
    return join(inner, joined, references, n_operands, heads, met)


@kernel
def mark_reachable(inner, roots, is_reached, is_named):
    """Mark the inner nodes and leaves that some root needs; return how many links they have."""
    n_links = 0
    for root in roots:
        if root < 0:
            is_reached[-1 - root] = 1
        else:
            is_named[root] = True
    for node in range(inner.n_inner[0] - 1, -1, -1):
        if is_reached[node]:
            n_links += inner.child_starts[node + 1] - inner.child_starts[node]
            for at in range(inner.child_starts[node], inner.child_starts[node + 1]):
                child = inner.children[at]
                if child < 0:
                    is_reached[-1 - child] = 1
                else:
                    is_named[child] = True
    return n_links


@kernel
def renumber_children(
    inner,  # Inner
    kept,  # int64[:], the nodes to keep
    leaf_numbers,  # int32[:], by leaf
    inner_numbers,  # int32[:], by inner node
    children,  # int32[:], output: of all nodes kept
):
    """Write the children of nodes by their final numbers."""
    n_children = 0
    for node in kept:
        for at in range(inner.child_starts[node], inner.child_starts[node + 1]):
            child = inner.children[at]
            children[n_children] = leaf_numbers[child] if child >= 0 else inner_numbers[-1 - child]
            n_children += 1
