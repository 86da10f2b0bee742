"""What became of published events: the answer to a publisher."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.events.oddities import describe_repeated
from tamis.language.moments import spell_moment

if TYPE_CHECKING:
    from tamis.events.rejects import Rejects


class BadRow(NamedTuple):
    """A row of a request that is not an event: it was not published."""

    row: int  # of the request, from 0
    code: str
    message: str


class IgnoredValues(NamedTuple):
    """Values of an attribute that have another type than it: they count as missing."""

    attribute: str
    n_values: int
    example: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "attribute": self.attribute,
            "count": self.n_values,
            "example": self.example,
            "message": self.message,
        }


class Published(NamedTuple):
    """What became of the events of a request. Those that were accepted have consecutive numbers."""

    epoch: str  # of the event numbers
    first_event: int | None  # the number of the first accepted event; None if there is none
    n_events: int  # accepted
    change: int  # they were matched by the set as of this change
    moment: datetime
    # Events that match at least one subscription, and their matches; None if a stream matches them.
    n_matched: int | None
    n_matches: int | None
    rejected: list[BadRow]
    ignored: list[IgnoredValues]
    ids: list[list[str]] | None = None  # of the matching subscriptions, by accepted event
    notes: tuple[str, ...] = ()  # about events that are read in another way than some may expect

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON values."""
        return {
            "epoch": self.epoch,
            "first_event": self.first_event,
            "accepted": self.n_events,
            "change": self.change,
            "moment": spell_moment(self.moment),
            "matched": self.n_matched,
            "matches": self.n_matches,
            "rejected": [own._asdict() for own in self.rejected],
            "ignored_values": [own.to_json() for own in self.ignored],
            "notes": self.notes,
            "ids": self.ids,
        }

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Published:
        """The answer that `to_json` wrote."""
        return cls(
            given["epoch"],
            given["first_event"],
            given["accepted"],
            given["change"],
            datetime.fromisoformat(given["moment"]),
            given["matched"],
            given["matches"],
            [BadRow(**own) for own in given["rejected"]],
            [IgnoredValues(*own.values()) for own in given["ignored_values"]],
            given["ids"],
            tuple(given.get("notes", ())),  # answers of earlier versions have none
        )


@dataclass
class PublishCounts:
    """What was published since the server started; changed by one thread only."""

    n_requests: int = 0
    n_events: int = 0
    n_matched: int = 0  # events that match at least one subscription
    n_matches: int = 0
    n_rejected: int = 0  # rows that are not an event
    n_ignored: int = 0  # values that have another type than their attribute
    n_failed: int = 0  # requests whose events could not be stored

    def add(self, published: Published) -> None:
        """Count an answer."""
        self.n_requests += 1
        self.n_events += published.n_events
        self.n_matched += published.n_matched or 0
        self.n_matches += published.n_matches or 0
        self.n_rejected += len(published.rejected)
        self.n_ignored += sum(own.n_values for own in published.ignored)


def list_bad_rows(rejects: Rejects) -> list[BadRow]:
    """The rows that are not an event, in order."""
    return [
        BadRow(row, error.code, error.message) for row, error in sorted(rejects.row_errors.items())
    ]


def describe_rejects(rejects: Rejects) -> list[IgnoredValues]:
    """The values that could not be read, by attribute, with an example each."""
    found: dict[str, IgnoredValues] = {}
    for (attribute, _kind), count in rejects.counts.items():
        if attribute is None:
            continue
        earlier = found.get(attribute)
        if earlier is not None:
            found[attribute] = earlier._replace(n_values=earlier.n_values + count)
            continue
        own = (one for one in rejects.examples if one.attribute == attribute)
        example = next(own, None)  # of very many attributes, only the first have one
        value, reason = ("", "") if example is None else (example.value, example.reason)
        found[attribute] = IgnoredValues(attribute, count, value, reason)
    return list(found.values())


def describe_repeated_keys(rejects: Rejects) -> tuple[str, ...]:
    """A note on events that have a key twice, if there are any."""
    odd = rejects.oddities
    if odd.repeated is None:
        return ()
    return (describe_repeated(odd.n_repeated, *odd.repeated),)
