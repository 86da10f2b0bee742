"""Does the memory of a server grow with the events that are published?"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import NamedTuple

# A server may remember so much for each event: indexes of the archive, members of its caches. A
# copy of the event, or of its matches, is more.
BYTES_PER_EVENT = 512
# What an allocator, a merge or a page of a mailbox takes for a while, whatever the events are.
NOISE = 16_000_000
_MOST_SAMPLES = 150


class Sample(NamedTuple):
    """The memory of a server after some events."""

    n_events: int
    n_bytes: int


def measure_memory(process: int) -> int:
    """The memory of a process, in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found is not None
    return int(found[1]) * 1024


def expect_flat(samples: list[Sample]) -> None:
    """The last third of a run needs little more than the first, and the second half does not grow
    with its events: the first half fills caches.
    """
    third = len(samples) // 3
    first = max(own.n_bytes for own in samples[: third + 1])
    last = max(own.n_bytes for own in samples[-third - 1 :])
    half = list_second_half(samples)
    n_events = half[-1].n_events - half[0].n_events
    slope = find_slope(half)
    print(f"memory: {first / 1e6:.0f} MB, then {last / 1e6:.0f} MB, {slope:.0f} bytes per event")
    assert last < 1.5 * first + 64e6
    assert slope * n_events <= BYTES_PER_EVENT * n_events + NOISE


def list_second_half(samples: list[Sample]) -> list[Sample]:
    """The samples after half of the events."""
    middle = (samples[0].n_events + samples[-1].n_events) / 2
    return [own for own in samples if own.n_events >= middle]


def find_slope(samples: list[Sample]) -> float:
    """Bytes per event: the median of the slopes between all pairs of samples (Theil and Sen),
    which single peaks do not change. 0 if there are too few.
    """
    chosen = samples[:: max(1, len(samples) // _MOST_SAMPLES)]
    slopes = [
        (after.n_bytes - before.n_bytes) / (after.n_events - before.n_events)
        for before, after in combinations(chosen, 2)
        if after.n_events > before.n_events
    ]
    return median(slopes) if slopes else 0.0
