"""What a server answers, as dicts with known names: they are passed on as they came.

Moments are texts such as 2030-01-31T12:00:00Z.
"""

from __future__ import annotations

from typing import Any, TypedDict

# ── questions ───────────────────────────────────────────────────────────────────────────────


class ExplainedPart(TypedDict, total=False):
    """A part of an expression, and its truth for the event; the first two are always there."""

    expression: str
    truth: str  # true, false or undefined
    values: dict[str, Any]
    notes: list[str]
    operands: list[ExplainedPart]


class Explanation(TypedDict):
    """Why an expression matches an event, or why not."""

    subscription_id: str | None  # None for a draft
    matches: bool
    truth: str
    valid: bool  # whether the subscription is valid now
    sentence: str
    changes: list[str]  # the fewest tests that would have to be true
    tree: ExplainedPart


class FoundProblem(TypedDict, total=False):
    """An error or a warning, with its place; the first three are always there."""

    severity: str
    code: str
    message: str
    hint: str | None
    line: int | None
    column: int | None
    span: list[int] | None


class CheckedAttribute(TypedDict):
    """An attribute of a draft."""

    name: str
    type: str
    is_known: bool  # the set fixes its type; otherwise the draft implies it


class SimilarSubscriptions(TypedDict):
    """Subscriptions that are certainly similar, by id."""

    equal: list[str]
    wider: list[str]  # they match every event that the draft matches
    narrower: list[str]
    is_complete: bool


class CheckedDraft(TypedDict):
    """What is known of a draft."""

    is_valid: bool
    problems: list[FoundProblem]
    canonical: str | None
    digest: str | None
    attributes: list[CheckedAttribute]
    similar: SimilarSubscriptions | None


class ForecastDay(TypedDict):
    """One day, in UTC."""

    day: str
    events: int
    matches: int


class ForecastEvent(TypedDict):
    """An archived event."""

    event: int
    moment: str
    content: Any


class ForecastMatches(TypedDict):
    """Some events: how many, and the newest of them."""

    events: int
    sample: list[ForecastEvent]


class ForecastPart(TypedDict):
    """An operand of the AND or OR that the draft is."""

    expression: str
    matches: int
    microseconds: float | None  # CPU time for each event


class LookedAt(TypedDict):
    """The events of the archive that were looked at, the newest."""

    first: int | None
    last: int | None
    events: int
    without_text: int
    is_complete: bool
    stopped_by: str | None


class Forecast(TypedDict):
    """What a draft would have matched."""

    looked_at: LookedAt
    days: list[ForecastDay]
    matches: ForecastMatches
    parts: list[ForecastPart]
    combined_by: str | None
    rarest: str | None
    slowest: str | None
    newly_matching: ForecastMatches | None
    no_longer_matching: ForecastMatches | None
    notes: list[str]


# ── archived events ─────────────────────────────────────────────────────────────────────────


class SearchHit(TypedDict):
    """An event that a search found."""

    event: int
    moment: str
    content: Any
    score: float | None
    highlights: dict[str, list[list[int]]]


class SearchPage(TypedDict):
    """A page of hits."""

    epoch: str
    expression: str
    notes: list[str]
    hits: list[SearchHit]
    cursor: str | None  # None for the last page
    is_complete: bool
    events: int
    scanned: int


class ArchivedEvent(TypedDict, total=False):
    """A published event; without `subscriptions`, if they were not asked for."""

    event: int
    moment: str
    change: int
    content: Any  # None if the archive does not keep it
    subscriptions: list[str] | None


class MissedEvents(TypedDict):
    """Events that retention removed."""

    first: int
    last: int


class ArchivePage(TypedDict):
    """Published events, in order of their numbers."""

    epoch: str
    events: list[ArchivedEvent]
    cursor: str  # `after` of the next page
    missed: MissedEvents | None


# ── ways of delivery ────────────────────────────────────────────────────────────────────────


class Channel(TypedDict):
    """A mailbox that subscriptions share."""

    name: str
    number: int
    owner: str
    created: str


class Member(TypedDict):
    """A subscription of a channel."""

    id: str
    number: int
    added: str


class Webhook(TypedDict):
    """A webhook, and how its deliveries stand."""

    number: int
    mailbox: str
    mailbox_name: str | None
    owner: str
    url: str
    created: str
    state: str
    reason: str | None  # why it is disabled
    cursor: str  # events up to this one are delivered or given up
    failed_attempts: int
    next_attempt: str | None
    last_status: int | None
    last_error: str | None
    failing_since: str | None


class NewWebhook(Webhook):
    """A new webhook, with its signing secret, which is shown once."""

    secret: str


class WebhookTest(TypedDict):
    """What came of a test."""

    delivered: bool
    status: int | None
    milliseconds: int
    error: str | None


class Delivery(TypedDict):
    """One attempt to call a webhook."""

    number: int
    moment: str
    event: int
    attempt: int
    status: int | None
    milliseconds: int
    error: str | None


class DeadLetter(TypedDict):
    """An event that was given up."""

    number: int
    event: int
    epoch: str
    died: str
    attempts: int
    state: str
    last_status: int | None
    last_error: str | None


class Feed(TypedDict):
    """An Atom and JSON feed, without its address."""

    number: int
    mailbox: str
    mailbox_name: str | None
    owner: str
    title: str
    created: str
    revoked: str | None


class NewFeed(Feed):
    """A new feed, with its addresses, which are shown once."""

    atom: str
    json_feed: str


class Digest(TypedDict):
    """E-mail for all matches of an hour or a day."""

    number: int
    mailbox: str
    mailbox_name: str | None
    owner: str
    address: str
    period: str
    hour: int
    minute: int
    zone: str
    created: str
    next_due: str
    last_sent: str | None
    confirmed: str | None  # None until the address has confirmed it
    failed_attempts: int
    last_error: str | None


# ── keys ────────────────────────────────────────────────────────────────────────────────────


class Key(TypedDict):
    """An API key, without its text."""

    id: str
    owner: str
    roles: list[str]
    limits: dict[str, float]
    created: str
    expires: str | None
    revoked: str | None


class NewKey(Key):
    """A new key, with its text, which is shown once."""

    key: str
