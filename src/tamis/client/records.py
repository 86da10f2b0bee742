"""What a server answers, as records."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from tamis.errors import TamisError


class ServerError(TamisError):
    """The server refused a request. `code` is for programs; `problem` has all that it said."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(str(problem.get("detail", f"status {status}")), hint=problem.get("hint"))
        self.status = status
        self.code = str(problem.get("code", "error"))
        self.problem = problem


class ConnectionFailedError(TamisError):
    """The server cannot be reached, or it broke off."""


class Subscription(NamedTuple):
    """A subscription, as the server has it."""

    id: str
    number: int  # never used for another subscription, unlike the id
    revision: int
    expression: str
    owner: str
    tags: tuple[str, ...]
    attributes: dict[str, Any]
    valid_from: datetime | None
    valid_until: datetime | None
    ticket: str | None = None  # only in the answer to `subscribe`
    notes: tuple[str, ...] = ()  # about attributes that look misspelt, in the same answer

    @classmethod
    def of(cls, given: dict[str, Any]) -> Subscription:
        """The record of an answer."""
        return cls(
            given["id"],
            given["number"],
            given["revision"],
            given["expression"],
            given["owner"],
            tuple(given["tags"]),
            given["attributes"],
            _read_moment(given["valid_from"]),
            _read_moment(given["valid_until"]),
            given.get("ticket"),
            tuple(given.get("notes", ())),
        )


class Rejected(NamedTuple):
    """A row that is not an event."""

    row: int
    code: str
    message: str


class Ignored(NamedTuple):
    """Values of an attribute that do not have its type: they count as missing."""

    attribute: str
    n_values: int
    example: str
    message: str

    @classmethod
    def of(cls, given: dict[str, Any]) -> Ignored:
        """The record of an answer."""
        return cls(given["attribute"], given["count"], given["example"], given["message"])

    def describe(self) -> str:
        """One sentence with an example."""
        were = "value of {} was" if self.n_values == 1 else "values of {} were"
        return (
            f"{self.n_values:,} {were.format(self.attribute)} not read and treated as missing, "
            f"such as {self.example}: {self.message}"
        )


class Published(NamedTuple):
    """What became of published events."""

    epoch: str
    first_event: int | None  # accepted events have consecutive numbers
    accepted: int
    change: int  # they were matched by the set as of this change
    moment: datetime
    matched: int | None  # events with at least one match; None if a stream matches them later
    matches: int | None
    rejected: tuple[Rejected, ...]
    ignored: tuple[Ignored, ...]
    ids: tuple[tuple[str, ...], ...] | None  # of the matching subscriptions, if asked for
    notes: tuple[str, ...] = ()  # about events that have a key twice

    @classmethod
    def of(cls, given: dict[str, Any]) -> Published:
        """The record of an answer."""
        ids = given["ids"]
        return cls(
            given["epoch"],
            given["first_event"],
            given["accepted"],
            given["change"],
            datetime.fromisoformat(given["moment"]),
            given["matched"],
            given["matches"],
            tuple(Rejected(own["row"], own["code"], own["message"]) for own in given["rejected"]),
            tuple(map(Ignored.of, given["ignored_values"])),
            None if ids is None else tuple(map(tuple, ids)),
            tuple(given.get("notes", ())),
        )


class Match(NamedTuple):
    """An event that matched."""

    event: int
    moment: datetime
    change: int
    subscriptions: tuple[str, ...]
    content: Any  # the event; None if the archive does not keep it
    cursor: str  # reading after it continues with the next match
    similar_to: int | None = None  # an earlier event, if similar ones are grouped

    @classmethod
    def of(cls, given: dict[str, Any], epoch: str) -> Match:
        """The record of an answer."""
        return cls(
            given["event"],
            datetime.fromisoformat(given["moment"]),
            given["change"],
            tuple(given["subscriptions"]),
            given["content"],
            f"{epoch}:{given['event']}",
            given.get("similar_to"),
        )


class Missed(NamedTuple):
    """Events that retention removed before they were read."""

    first: int
    last: int


class LostHistory(NamedTuple):
    """A subscription whose history cannot be read; its live matches are not affected."""

    subscription: str
    reason: str


class Matches(NamedTuple):
    """A page of a mailbox."""

    matches: tuple[Match, ...]
    cursor: str  # `after` of the next page
    missed: Missed | None
    is_complete: bool = True  # otherwise there may be more after the cursor, even if this is empty
    lost_histories: tuple[LostHistory, ...] = ()

    @classmethod
    def of(cls, given: dict[str, Any]) -> Matches:
        """The record of an answer."""
        missed, epoch = given["missed"], given["epoch"]
        return cls(
            tuple(Match.of(own, epoch) for own in given["matches"]),
            given["cursor"],
            None if missed is None else Missed(missed["first"], missed["last"]),
            given["is_complete"],
            tuple(LostHistory(**own) for own in given["lost_histories"]),
        )


class SubscriptionPage(NamedTuple):
    """A page of a list of subscriptions."""

    subscriptions: tuple[Subscription, ...]
    cursor: str | None  # None for the last page

    @classmethod
    def of(cls, given: dict[str, Any]) -> SubscriptionPage:
        """The record of an answer."""
        return cls(tuple(map(Subscription.of, given["subscriptions"])), given["cursor"])


def _read_moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
