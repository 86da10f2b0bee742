"""What a live index is doing, in numbers: for those who watch it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tamis.live.live_set import LiveSet


class PartStats(NamedTuple):
    """One part of the set."""

    n_shown: int  # subscriptions that answer
    n_hidden: int  # subscriptions that were replaced or removed


class LiveStats(NamedTuple):
    """The state of a live index."""

    change: int  # the last change that the next match sees
    saved_change: int  # the last change that a saved version includes; 0 if there is no version
    parts: tuple[PartStats, ...]  # the oldest first
    n_merges: int  # since the index was opened
    n_failures: int  # of the work in the background, since the index was opened
    last_failure: str | None


def part_stats(live_set: LiveSet) -> tuple[PartStats, ...]:
    """The parts of a set, the oldest first."""
    return tuple(PartStats(part.n_shown, part.n_hidden) for part in live_set.parts)
