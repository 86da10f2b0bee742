"""Unique ids (§4.2.1): AND is a sum, OR a product, so the order of operands does not matter.

The paper computes with machine words, in which products of even numbers soon become zero; here it
is a field, in which two expressions that are not equal by the laws of a distributive lattice have
the same id with a probability of about their size in 2^61. If the order matters (XOR, at_least, or
every operator if ids are not unique), operands are the digits of a number, which is then hashed:
otherwise its last digit would act as a summand of an AND above it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tamis.index.layout import AND, OR
from tamis.kernels.compiled import kernel
from tamis.lab.atree.arrays import PRIME
from tamis.lab.atree.encoding import LEAF

_LOW_31: Final = (1 << 31) - 1
_LOW_30: Final = (1 << 30) - 1
_BASE: Final = 0x1B873593CC9E2D51  # any number below PRIME


@kernel
def multiply(a, b):
    """The product of two numbers below 2^61 - 1, modulo it; no part overflows 63 bits."""
    a_high, a_low = a >> 31, a & _LOW_31
    b_high, b_low = b >> 31, b & _LOW_31
    middle = a_high * b_low + a_low * b_high
    low = a_low * b_low
    total = 2 * a_high * b_high + (middle >> 30) + ((middle & _LOW_30) << 31)
    total += (low & PRIME) + (low >> 61)
    total = (total & PRIME) + (total >> 61)
    return total - PRIME if total >= PRIME else total


@kernel
def add(a, b):
    """The sum of two numbers below 2^61 - 1, modulo it."""
    total = a + b
    return total - PRIME if total >= PRIME else total


@kernel
def close(a):
    """A hash of the number, so that sums and products outside cannot mix with those inside."""
    return multiply(multiply(a, a), add(a, _BASE))


@kernel
def name_parts(kinds, values, required, leaf_ids, is_unique, ids, ends):
    """Write the id of every part of the expressions, and the end of each part."""
    for at in range(len(kinds) - 1, -1, -1):
        if kinds[at] == LEAF:
            ids[at] = leaf_ids[values[at]]
            ends[at] = at + 1
            continue
        is_commutative = is_unique and (kinds[at] == AND or kinds[at] == OR)
        identity = np.int64(kinds[at] == OR)
        if not is_commutative:
            identity = 2 + np.int64(kinds[at]) + 8 * np.int64(required[at])
        child = at + 1
        for _ in range(values[at]):
            if not is_commutative:
                identity = add(multiply(identity, _BASE), ids[child])
            elif kinds[at] == AND:
                identity = add(identity, ids[child])
            else:
                identity = multiply(identity, ids[child])
            child = ends[child]
        ids[at] = identity if is_commutative else close(identity)
        ends[at] = child
