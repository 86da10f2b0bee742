"""The Dewey evaluation algorithm (Algorithms 1–3), expression by expression.

EVALUATEAND and EVALUATEOR call each other down to the leaf and return from it. Here their variables
are stored by level, the root's at 0: a node at an even level is an AND, at an odd one an OR. An id
shares some steps with the previous id; the nodes below those are closed, from the deepest up, each
passing its result to its parent, and the nodes of the new id are opened.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel

ANDS = np.int64(0x5555555555555555)  # the even levels
# Rows of the stack.
STEP = 0  # the step to the node at this level
RESULT = 1
LAST_EXPLORED = 2  # of an AND's children
LAST_CHILD = 3  # whether that step was marked with *


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
            expression = np.int64(keys[at] >> np.uint64(32))
            end = at + 1
            while end < starts[row + 1] and np.int64(keys[end] >> np.uint64(32)) == expression:
                end += 1
            bits = np.int64(layouts.step_bits[expression])
            if bits > 0:
                is_true = evaluate_packed(keys, at, end, bits, stack[LAST_EXPLORED])
            else:
                first = layouts.first_ids[expression]
                is_true = evaluate_written(keys, at, end, first, layouts, stack)
            if is_true:
                found[n_found] = expression
                n_found += 1
            at = end
        found_starts[row + 1] = n_found


@kernel
def evaluate_packed(keys, at, end, bits, last_explored):
    """Whether an expression is true, given ids with that many bits per step.

    The result of each level, and whether its last child was the marked one, are bits of two
    numbers.
    """
    mask = (np.int64(1) << bits) - 1
    results, last_child = ANDS, np.int64(0)
    last_explored[0] = 0
    before, depth = np.int64(0), 0  # the previous id, and its number of steps
    while True:
        field = np.int64(keys[at] & np.uint64(0xFFFFFFFF)) if at < end else np.int64(0)
        common = depth
        differ = before ^ field
        while common > 0 and differ >> (32 - bits * common) != 0:
            common -= 1
        for level in range(depth, common, -1):
            above = np.int64(1) << (level - 1)
            result = results >> level & 1
            if level & 1 == 0:  # an AND below an OR
                results |= above * (result & last_child >> level)
            else:
                step = before >> (32 - bits * level) & mask
                last_explored[level - 1] += 1
                if result == 0 or step >> 1 != last_explored[level - 1]:
                    results &= ~above
                last_child = last_child | above if step & 1 else last_child & ~above
        if at == end:
            return results & last_child & 1 != 0
        depth = common
        while bits * (depth + 1) <= 32 and field >> (32 - bits * (depth + 1)) & mask != 0:
            depth += 1
            last_explored[depth] = 0
        # Initial values: an AND is true until a child is not, an OR false until a child is true.
        # The leaf is true, whatever the initial value of its level.
        kept = (np.int64(2) << common) - 1
        leaf = np.int64(1) << depth
        results = results & kept | ANDS & ~kept | leaf
        last_child = last_child & kept | leaf
        before = field
        at += 1


@kernel
def evaluate_written(keys, at, end, first_id, layouts, stack):
    """Whether an expression is true, given the positions of ids whose steps are stored
    separately.
    """
    depth = 0  # the level of the last leaf
    enter(0, stack)
    for slot in range(at, end):
        number = first_id + np.int64(keys[slot] & np.uint64(0xFFFFFFFF))
        begin, stop = layouts.step_starts[number], layouts.step_starts[number + 1]
        common = 0
        while common < depth and layouts.steps[begin + common] == stack[STEP, common + 1]:
            common += 1
        leave_to(common, depth, stack)
        depth = stop - begin
        for level in range(common + 1, depth + 1):
            stack[STEP, level] = layouts.steps[begin + level - 1]
            enter(level, stack)
        # A leaf is true, whatever the initial value of its level.
        stack[RESULT, depth] = 1
        stack[LAST_CHILD, depth] = 1
    leave_to(0, depth, stack)
    return stack[RESULT, 0] == 1 and stack[LAST_CHILD, 0] == 1


@kernel
def enter(level, stack):
    """Open a node: an AND is true until a child is not, an OR is false until a child is true."""
    stack[RESULT, level] = 1 - (level & 1)
    stack[LAST_EXPLORED, level] = 0
    stack[LAST_CHILD, level] = 0


@kernel
def leave_to(level, depth, stack):
    """Close the nodes below `level`, from the deepest up, each passing its result to its parent."""
    for child in range(depth, level, -1):
        parent = child - 1
        result = stack[RESULT, child]
        if child & 1 == 0:  # an AND below an OR
            stack[RESULT, parent] |= result & stack[LAST_CHILD, child]
            continue
        stack[LAST_EXPLORED, parent] += 1
        if stack[STEP, child] >> 1 != stack[LAST_EXPLORED, parent]:
            result = 0
        stack[RESULT, parent] &= result
        stack[LAST_CHILD, parent] = stack[STEP, child] & 1
