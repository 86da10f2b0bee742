"""Records of arrays that a kernel is given by address."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from tamis.kernels.compiled import kernel
from tamis.kernels.records import Records, bind, recall


class Inner(NamedTuple):
    numbers: np.ndarray
    grid: np.ndarray


class Outer(NamedTuple):
    inner: Inner
    sums: np.ndarray


@kernel
def add_up(records, at, factor):
    """The sum of all arrays of one record, which is also written to it."""
    own = recall(records, at)
    total = own.inner.numbers.sum() + own.inner.grid[1, 0] + len(own.inner.grid)
    own.sums[at] = factor * total
    return factor * total


def make_outer(first: int) -> Outer:
    numbers = np.arange(first, first + 4, dtype=np.int32)
    numbers.flags.writeable = False
    return Outer(Inner(numbers, np.array([[1, 2], [30, 4], [5, 6]])), np.zeros(3, dtype=np.int64))


def test_a_kernel_reads_and_writes_records():
    outers = [make_outer(first) for first in (0, 10)]
    records = Records(outers)
    enter = bind(add_up, (records,), 2)
    assert enter(records.address, 0, 1) == 6 + 30 + 3
    assert enter(records.address, 1, 2) == 2 * (46 + 30 + 3)
    assert [own.sums.tolist() for own in outers] == [[39, 0, 0], [0, 158, 0]]


def test_joined_records_are_those_of_all():
    several = [Records([make_outer(0), make_outer(10)]), Records([make_outer(20)])]
    joined = Records.join(several)
    enter = bind(add_up, (joined,), 2)
    assert [enter(joined.address, at, 1) for at in range(3)] == [39, 79, 119]
    assert Records.join(several[:1]) is several[0]


def test_records_of_other_types_are_not_alike():
    wide = make_outer(0)
    wide = wide._replace(inner=wide.inner._replace(numbers=np.arange(4)))
    if Records([wide]).type is None:
        pytest.skip("without a compiler there are no types")
    assert not Records.are_alike([Records([make_outer(0)]), Records([wide])])
