"""A client of a match server, synchronous and asynchronous.

from tamis.client import Client

with Client("http://127.0.0.1:8080") as client:
    client.subscribe("age >= 18", id="adults")
    client.publish({"age": 20})
    client.matches("adults")
"""

from tamis.errors import MissingDependencyError

try:
    import httpx2  # noqa: F401
except ImportError:
    raise MissingDependencyError(
        "the client needs the package httpx2", hint="pip install 'tamis[client]'"
    ) from None

from tamis.client.answers import (
    ArchivedEvent,
    ArchivePage,
    Channel,
    CheckedAttribute,
    CheckedDraft,
    DeadLetter,
    Delivery,
    Digest,
    ExplainedPart,
    Explanation,
    Feed,
    Forecast,
    ForecastDay,
    ForecastEvent,
    ForecastMatches,
    ForecastPart,
    FoundProblem,
    Key,
    LookedAt,
    Member,
    MissedEvents,
    NewFeed,
    NewKey,
    NewWebhook,
    SearchHit,
    SearchPage,
    SimilarSubscriptions,
    Webhook,
    WebhookTest,
)
from tamis.client.asynchronous import AsyncClient
from tamis.client.records import (
    ConnectionFailedError,
    Ignored,
    LostHistory,
    Match,
    Matches,
    Missed,
    Published,
    Rejected,
    ServerError,
    Subscription,
    SubscriptionPage,
)
from tamis.client.synchronous import Client

__all__ = [
    "ArchivePage",
    "ArchivedEvent",
    "AsyncClient",
    "Channel",
    "CheckedAttribute",
    "CheckedDraft",
    "Client",
    "ConnectionFailedError",
    "DeadLetter",
    "Delivery",
    "Digest",
    "ExplainedPart",
    "Explanation",
    "Feed",
    "Forecast",
    "ForecastDay",
    "ForecastEvent",
    "ForecastMatches",
    "ForecastPart",
    "FoundProblem",
    "Ignored",
    "Key",
    "LookedAt",
    "LostHistory",
    "Match",
    "Matches",
    "Member",
    "Missed",
    "MissedEvents",
    "NewFeed",
    "NewKey",
    "NewWebhook",
    "Published",
    "Rejected",
    "SearchHit",
    "SearchPage",
    "ServerError",
    "SimilarSubscriptions",
    "Subscription",
    "SubscriptionPage",
    "Webhook",
    "WebhookTest",
]
