"""The records of the archive: entries, pages, settings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from tamis.arguments import expect_count
from tamis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    import numpy as np
    import pyarrow as pa

DIGEST_BYTES: Final = 32
Keep = Literal["all", "matched", "none"]


class JsonEvents(NamedTuple):
    """Events as they came: one JSON object for each."""

    buffer: Any  # bytes, or an array of them: the texts, one after the other
    starts: np.ndarray  # int64[n_events]: where each text begins in the buffer
    ends: np.ndarray  # int64[n_events]


class ArrowEvents(NamedTuple):
    """Events as rows."""

    batch: pa.RecordBatch  # a column per attribute; NULL is a missing attribute


Events = JsonEvents | ArrowEvents


class Answer(NamedTuple):
    """The answer to a request that has an idempotency key."""

    key: bytes  # 32 bytes: a digest of the publisher and the key
    request: bytes  # 32 bytes: a digest of the request's body
    answer: bytes  # what to answer again


class Entry(NamedTuple):
    """Events that were published together, and their matches; written completely or not at all."""

    events: Events
    moment: int  # microseconds since 1970, UTC; raised to that of the entry before it
    change: int  # the set of subscriptions by which the events were matched
    match_starts: np.ndarray  # int64[n_events + 1]
    matches: np.ndarray  # int64: numbers of subscriptions by event, each once for an event
    # Called with the number of the first event just before the entry is written.
    make_answer: Callable[[int], Answer | None] | None = None


class ArchivedEvent(NamedTuple):
    """One published event."""

    number: int
    moment: datetime
    change: int
    event: bytes | None  # its JSON text; None if the archive does not keep it


class HeldSegment(NamedTuple):
    """Neighbouring events that are stored together."""

    serial: int
    first_event: int
    last_event: int  # one less than the first if there is none
    is_closed: bool  # its files never change


class EventPage(NamedTuple):
    """Some events in order of their numbers."""

    events: list[ArchivedEvent]
    after: int  # the cursor for the next page
    missed: range | None  # numbers after the cursor that retention has removed


class Match(NamedTuple):
    """An event and those of the wanted subscriptions that it matched."""

    event: int
    moment: datetime
    change: int
    subscriptions: tuple[int, ...]  # ascending


class MatchPage(NamedTuple):
    """Some matches in order of event numbers."""

    matches: list[Match]
    after: int  # the cursor for the next page: all events up to it have been looked at
    missed: range | None  # numbers after the cursor that retention has removed


@dataclass(frozen=True)
class ArchiveSettings:
    """What is kept, and for how long."""

    keep: Keep = "all"  # the events whose texts are kept
    segment_bytes: int = 64 << 20  # the open segment is closed when it is larger
    segment_age: timedelta = timedelta(hours=1)  # or older
    retain_for: timedelta | None = None  # closed segments that are older are removed
    retain_bytes: int | None = None  # the oldest ones are removed while all are larger
    answers_for: timedelta = timedelta(hours=24)  # how long answers are found

    def __post_init__(self) -> None:
        if self.keep not in get_args(Keep):
            allowed = ", ".join(map(repr, get_args(Keep)))
            raise InputError(f"keep is {self.keep!r}; one of {allowed} is expected")
        expect_count(self.segment_bytes, "segment_bytes")
        if self.retain_bytes is not None:
            expect_count(self.retain_bytes, "retain_bytes", least=0)
        for name in ("segment_age", "retain_for", "answers_for"):
            _expect_duration(getattr(self, name), name, is_optional=name == "retain_for")


def _expect_duration(value: Any, argument: str, *, is_optional: bool) -> None:
    if value is None and is_optional:
        return
    if not isinstance(value, timedelta) or value < timedelta(0):
        raise InputError(
            f"{argument} is {value!r}; a timedelta that is not negative is expected",
            hint=f"write {argument}=timedelta(hours=1)",
        )
