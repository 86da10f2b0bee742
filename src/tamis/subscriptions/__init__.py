"""Which subscriptions exist, until when, and how did they change?

    store = SubscriptionStore.open("people.live")
    store.apply([Subscribe("s1", "age >= 18"), Unsubscribe("s0")])

A durable set of subscriptions, in a folder (SQLite) or in PostgreSQL, and the log of its changes.
Expressions are stored as text and not parsed.
"""

from tamis.errors import MissingDependencyError

try:
    import sqlalchemy  # noqa: F401
except ImportError:
    raise MissingDependencyError(
        "a store of subscriptions needs the package sqlalchemy", hint="pip install 'tamis[live]'"
    ) from None

from tamis.subscriptions.model import (
    KEEP,
    Accepted,
    Change,
    ChangeKind,
    Page,
    Reason,
    Refused,
    Renew,
    Replace,
    State,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from tamis.subscriptions.store import SubscriptionStore

__all__ = [
    "KEEP",
    "Accepted",
    "Change",
    "ChangeKind",
    "Page",
    "Reason",
    "Refused",
    "Renew",
    "Replace",
    "State",
    "Subscribe",
    "Subscription",
    "SubscriptionStore",
    "Unsubscribe",
]
