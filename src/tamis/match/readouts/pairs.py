"""Combines the matches of several parts event by event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.match.batch import Pairs, allocate
from tamis.match.kernels.readout import append_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.kernels.arrays import Int64
    from tamis.match.question import BlockRead


def joined_pairs(block: BlockRead[list[Pairs]]) -> Iterator[Pairs]:
    """The matches of a block, by row of all events, a group of events at a time."""
    for group in zip(*block.parts, strict=True):
        pairs = group[0] if len(group) == 1 else join_pairs(group)
        yield pairs._replace(first_row=block.batch_row + pairs.first_row)


def join_pairs(parts: Sequence[Pairs]) -> Pairs:
    """The matches of the same events in several parts: each event's in the order of parts."""
    starts: Int64 = np.add.reduce([pairs.starts for pairs in parts])
    found = allocate(int(starts[-1]), parts[0].subscriptions.dtype)
    offsets = starts[:-1].copy()
    for pairs in parts:
        append_runs(pairs.starts, pairs.subscriptions, offsets, found)
    has_bindings = any(pairs.bindings is not None for pairs in parts)
    bindings = _join_bindings(parts) if has_bindings else None
    return Pairs(parts[0].first_row, starts, found, bindings)


def _join_bindings(parts: Sequence[Pairs]) -> list[dict[str, Any] | None]:
    found: list[dict[str, Any] | None] = []
    for event in range(len(parts[0].starts) - 1):
        for pairs in parts:
            begin, end = pairs.starts[event : event + 2].tolist()
            own = pairs.bindings
            found += [None] * (end - begin) if own is None else own[begin:end]
    return found
