"""The Dewey evaluation algorithm (Algorithms 1–3) for one expression after the other.

EVALUATEAND and EVALUATEOR call each other down to the leaf and return from it; here their variables
are in a stack by level. A node at an even level is an AND, at an odd one an OR; the root is at 0.
"""

from __future__ import annotations

import numpy as np

from tamis.index.kernels.compiled import kernel

# Rows of the stack.
STEP = 0  # that led to the node at this level
RESULT = 1
LAST_EXPLORED = 2  # of an AND's children
LAST_CHILD = 3  # whether that was marked with *


@kernel
def evaluate_dewey(
    starts,  # int64[n_events + 1]
    keys,  # uint64[:], expression and Dewey ID; sorted for each event
    layouts,  # Layouts
    stack,  # int32[4, longest id + 2], scratch
    found_starts,  # int64[n_events + 1], output
    found,  # int32[:], output
):
    """Write the expressions that are true."""
    n_found = 0
    for row in range(len(starts) - 1):
        at = starts[row]
        while at < starts[row + 1]:
            expression = keys[at] >> np.uint64(32)
            depth = 0  # the level of the leaf that was reached last
            enter(0, stack)
            while at < starts[row + 1] and keys[at] >> np.uint64(32) == expression:
                depth = follow(depth, np.uint32(keys[at]), np.int64(expression), layouts, stack)
                at += 1
            leave_to(0, depth, stack)
            if stack[RESULT, 0] and stack[LAST_CHILD, 0]:
                found[n_found] = expression
                n_found += 1
        found_starts[row + 1] = n_found


@kernel
def follow(depth, field, expression, layouts, stack):
    """Leave what the id has not in common with the last one, go down to its leaf; its level."""
    bits = layouts.step_bits[expression]
    number = np.int64(layouts.first_ids[expression]) + np.int64(field)
    level = 0
    is_new = False
    while True:
        step = read_step(level, bits, field, number, layouts)
        if step == 0:
            break
        level += 1
        if not is_new and (level > depth or step != stack[STEP, level]):
            leave_to(level - 1, depth, stack)
            is_new = True
        if is_new:
            stack[STEP, level] = step
            enter(level, stack)
    # A leaf is true, whichever of the two its level would make it.
    stack[RESULT, level] = 1
    stack[LAST_CHILD, level] = 1
    return level


@kernel
def read_step(level, bits, field, number, layouts):
    """A step of an id; 0 after the last."""
    if bits == 0:
        slot = layouts.step_starts[number] + level
        return layouts.steps[slot] if slot < layouts.step_starts[number + 1] else 0
    shift = 32 - (level + 1) * np.int64(bits)
    if shift < 0:
        return 0
    return np.int64(field >> np.uint32(shift)) & ((1 << np.int64(bits)) - 1)


@kernel
def enter(level, stack):
    """Begin a node: an AND is true until a child is not, an OR is false until one is."""
    stack[RESULT, level] = 1 - level % 2
    stack[LAST_EXPLORED, level] = 0
    stack[LAST_CHILD, level] = 0


@kernel
def leave_to(level, depth, stack):
    """End the nodes below `level`, from the deepest one up, each telling its parent."""
    for child in range(depth, level, -1):
        parent = child - 1
        result = stack[RESULT, child]
        if child % 2 == 0:
            result &= stack[LAST_CHILD, child]
        if parent % 2 == 1:
            stack[RESULT, parent] |= result
        else:
            stack[LAST_EXPLORED, parent] += 1
            if stack[STEP, child] >> 1 != stack[LAST_EXPLORED, parent]:
                result = 0
            stack[RESULT, parent] &= result
            stack[LAST_CHILD, parent] = stack[STEP, child] & 1
