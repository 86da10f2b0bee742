"""The bodies of requests and answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

# Paths are matched as they came, so that an encoded slash is a part of an id.
PathText = Annotated[str, BeforeValidator(lambda text: unquote(text, errors="strict"))]


class Asked(BaseModel):
    """A body; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


def _group_similar() -> Any:
    return Field(
        None,
        description="For this long, such as 3d, a match says to which earlier match it is similar. "
        "It is stored as the attribute of this name; null: not at all.",
    )


class NewSubscription(Asked):
    """A subscription to make."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"expression": "age >= 18 AND country = 'FR'"},
                {"id": "adults", "expression": "age >= 18", "tags": ["news"], "lease": 86_400},
            ]
        },
    )

    expression: str
    id: str | None = None
    owner: str | None = Field(None, description="Only an admin may name another owner.")
    tags: list[str] = []
    attributes: dict[str, Any] = {}
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    lease: float | None = Field(None, gt=0, description="Seconds; instead of valid_until.")
    group_similar: str | None = _group_similar()
    history: Annotated[int, Field(ge=0, le=(1 << 63) - 1)] | str | None = Field(
        None,
        description="The mailbox begins with the archived events that it would have matched: "
        "since an age, such as 7d, or after the event with this number.",
    )


class ChangedSubscription(Asked):
    """Fields to change; the others stay as they are."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"expression": "age >= 21"}, {"tags": ["news", "urgent"]}]},
    )

    expression: str | None = None
    tags: list[str] | None = None
    attributes: dict[str, Any] | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    group_similar: str | None = _group_similar()


class Renewal(Asked):
    """How long a lease goes on: until a moment, or for so many seconds from now."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"lease": 86_400}]})

    valid_until: datetime | None = None
    lease: float | None = Field(None, gt=0, description="Seconds; instead of valid_until.")


class SubscriptionAnswer(BaseModel):
    """A subscription."""

    id: str
    number: int
    revision: int
    expression: str
    owner: str
    tags: list[str]
    attributes: dict[str, Any]
    valid_from: datetime | None
    valid_until: datetime | None
    expires_soon: datetime | None = Field(
        description="After this moment, it is in the state expiring: less than a tenth of its "
        "validity is left, and less than a day. Null if it has no end."
    )


class NewSubscriptionAnswer(SubscriptionAnswer):
    """A new subscription, with its ticket, which is shown once."""

    ticket: str
    notes: list[str] = Field([], description="About attributes that look misspelt.")


class SubscriptionPage(BaseModel):
    """A page of subscriptions."""

    subscriptions: list[SubscriptionAnswer]
    cursor: str | None


class RejectedRow(BaseModel):
    """A row that is not an event; it was not published."""

    row: int
    code: str
    message: str


class IgnoredValue(BaseModel):
    """Values of an attribute that do not have its type; they count as missing."""

    attribute: str
    count: int
    example: str
    message: str


class PublishedAnswer(BaseModel):
    """What became of published events."""

    epoch: str
    first_event: int | None
    accepted: int
    change: int
    moment: datetime
    matched: int | None = Field(description="null if a stream matches the events later.")
    matches: int | None = Field(description="null if a stream matches the events later.")
    rejected: list[RejectedRow]
    ignored_values: list[IgnoredValue]
    notes: list[str] = Field(description="About events that have a key twice.")
    ids: list[list[str]] | None = None


class DeliveredMatch(BaseModel):
    """An event that matched."""

    event: int
    moment: datetime
    change: int
    subscriptions: list[str]
    content: Any = Field(description="The event; null if the archive does not have it.")
    highlights: dict[str, list[list[int]]] | None = Field(
        None,
        description="If they were asked for, by attribute: where found words begin and end, in "
        "characters.",
    )
    similar_to: int | None = Field(
        None, description="The earlier event that is similar, if the subscription groups them."
    )


class MissedEvents(BaseModel):
    """Events that retention removed before they were read."""

    first: int
    last: int


class LostHistoryAnswer(BaseModel):
    """A subscription whose history cannot be read; its live matches are not affected."""

    subscription: str
    reason: str


class MatchesAnswer(BaseModel):
    """A page of a mailbox."""

    epoch: str
    matches: list[DeliveredMatch]
    cursor: str
    missed: MissedEvents | None
    is_complete: bool = Field(
        description="Whether all events were looked at; otherwise there may be more after the "
        "cursor, even if the page has no matches."
    )
    lost_histories: list[LostHistoryAnswer]


class ProblemAnswer(BaseModel):
    """An error (RFC 9457)."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:tamis:problem:unexpected-token",
                    "title": "Invalid content",
                    "status": 422,
                    "detail": "expected a value, found =",
                    "code": "unexpected-token",
                    "span": [7, 8],
                    "line": 1,
                    "column": 8,
                    "request_id": "4f1c2a9be0d35577",
                }
            ]
        },
    )

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="For programs; it does not change.")
    hint: str | None = None
    request_id: str | None = None
    span: list[int] | None = Field(None, description="The place in an expression: from, to.")
    line: int | None = None
    column: int | None = None
    picture: str | None = Field(None, description="The line with a caret below the place.")
    errors: list[dict[str, Any]] | None = Field(None, description="All that is wrong, by place.")
    limit: int | None = None
    revision: int | None = Field(None, description="That of the subscription now.")
