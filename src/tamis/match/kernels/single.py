"""Matches one event that comes as words: codes, leaves and subscriptions in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tamis.events.event_arrays import EventArrays
from tamis.events.kernels.single import encode_values
from tamis.index.patterns.kernels.matching import N_PAIRS
from tamis.kernels.compiled import kernel
from tamis.kernels.records import recall
from tamis.match.kernels.event import match_event

if TYPE_CHECKING:
    from tamis.index.layout import LeafArrays, NodeArrays, RootArrays
    from tamis.index.triggers import TriggerArrays
    from tamis.kernels.arrays import Int64, UInt8

UNDECIDED = -1  # regular expressions must be tested first


class PartArrays(NamedTuple):
    """The arrays of one part that the single-event kernel reads."""

    leaves: LeafArrays
    nodes: NodeArrays
    roots: RootArrays
    triggers: TriggerArrays


class Wanted(NamedTuple):
    """Which subscriptions answer."""

    flags: UInt8  # [n_subscriptions], by ordinal; empty: all


class Joint(NamedTuple):
    """What the parts that are matched together have."""

    first_patterns: Int64  # [n_parts], the number of the first pattern column among those of all
    n_found: Int64  # [n_parts], output


@kernel
def match_parts(
    arrays,  # Records of PartArrays, by part as all but patterns, `joints` and events
    ranks,  # Records of PartRanks
    patterns,  # Records of Search
    wanted,  # Records of Wanted
    pattern_scratches,  # Records of PatternScratch
    spaces,  # Records of PartSpace
    scratches,  # Records of SingleScratch
    joints,  # Records of Joint
    events,  # Records of EventSpace
    n_words,
    n_entries,  # codes of the only part that are in the event's space already
    n_marks,
):
    """Write the positions of the wanted matches in `roots.subscriptions` to the scratch of each
    part, and their number, or UNDECIDED, to `n_found`; return how many numbers are not zero.
    """
    event, joint = recall(events, 0), recall(joints, 0)
    n_answers = 0
    for part in range(len(joint.n_found)):
        space = recall(spaces, part)
        encode_values(
            n_words,
            n_entries,
            n_marks,
            event,
            recall(ranks, part),
            patterns,
            joint.first_patterns[part],
            pattern_scratches,
            space,
        )
        n_found = UNDECIDED
        if space.counts[N_PAIRS] == 0:
            n_found = match_codes(
                event, space, recall(arrays, part), recall(wanted, part), recall(scratches, part)
            )
        joint.n_found[part] = n_found
        n_answers += n_found != 0
    return n_answers


@kernel
def match_settled(arrays, wanted, spaces, scratches, joints, events):
    """The same for one part, and an event that is encoded."""
    n_found = match_codes(
        recall(events, 0),
        recall(spaces, 0),
        recall(arrays, 0),
        recall(wanted, 0),
        recall(scratches, 0),
    )
    recall(joints, 0).n_found[0] = n_found
    return int(n_found != 0)


@kernel(forceinline=True)
def match_codes(event, space, part, wanted, scratch):
    """Match an event that is encoded; return the number of wanted matches."""
    encoded = EventArrays(
        event.row_starts,
        event.columns,
        event.codes,
        space.text_starts,
        space.found.leaves,
        event.mark_starts,
        event.mark_rows,
        event.mark_columns,
        event.mark_has_null,
    )
    n_found = match_event(0, encoded, part.leaves, part.nodes, part.roots, part.triggers, scratch)
    flags = wanted.flags
    if len(flags) == 0:
        return n_found
    n_kept = 0
    for at in range(n_found):
        place = scratch.found[at]
        if flags[part.roots.subscriptions[place]]:
            scratch.found[n_kept] = place
            n_kept += 1
    return n_kept
