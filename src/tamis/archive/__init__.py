"""What was published, and whom did it match?

    archive = Archive.open("people.archive")
    first, = archive.append([Entry(events, moment, change, match_starts, matches)])
    page = archive.read_matches([17], after=0, limit=100)

A durable log of events and of the subscriptions that they matched. New events are in a journal;
closed segments are Parquet files, which Spark reads as they are. A mailbox is a cursor: the number
of the last event that was read.
"""

from tamis.archive.archive import Archive
from tamis.archive.model import (
    Answer,
    ArchivedEvent,
    ArchiveSettings,
    ArrowEvents,
    Entry,
    EventPage,
    Events,
    HeldSegment,
    JsonEvents,
    Match,
    MatchPage,
)

__all__ = [
    "Answer",
    "Archive",
    "ArchiveSettings",
    "ArchivedEvent",
    "ArrowEvents",
    "Entry",
    "EventPage",
    "Events",
    "HeldSegment",
    "JsonEvents",
    "Match",
    "MatchPage",
]
