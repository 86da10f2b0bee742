"""Who asked, until when, and what was delivered to them?

    with SubscriptionStore.open("people.live") as store:
        broker = Broker(store, ServerSecret.load(Path("people.live")))
        made = broker.keys.create(LOCAL, "ann", ["subscribe", "read"])

Everything small that a match server remembers, in the database of its subscriptions. Events and
matches are in the archive; a mailbox is a cursor over it. Neither HTTP nor matching is here.
"""

from tamis.broker.audit_log import Action, AuditEntry
from tamis.broker.channels import Channel, Member
from tamis.broker.cursors import Cursor, find_missed
from tamis.broker.dead_letters import DeadLetter
from tamis.broker.deliveries import Delivery
from tamis.broker.digest_times import DigestTime, Period, find_next_due
from tamis.broker.digests import Digest
from tamis.broker.ending import EndedMailbox, EndedOwner
from tamis.broker.keys import NO_LIMITS, Key, KeyLimits, NewKey
from tamis.broker.mailbox import Mailbox, MailboxKind, Position
from tamis.broker.pages import Page
from tamis.broker.result_feeds import Feed, FeedKind
from tamis.broker.retries import (
    Attempt,
    Decision,
    DeliveryResult,
    RetryPolicy,
    Verdict,
    decide_next,
)
from tamis.broker.rights import LOCAL, Actor, Role
from tamis.broker.secrets import Secret, ServerSecret, redact
from tamis.broker.states import LetterState, WebhookState
from tamis.broker.store import Broker, Pruned
from tamis.broker.subscriptions import KnownSubscription
from tamis.broker.tickets import Ticket
from tamis.broker.webhooks import NewWebhook, Recorded, Sent, Webhook

__all__ = [
    "LOCAL",
    "NO_LIMITS",
    "Action",
    "Actor",
    "Attempt",
    "AuditEntry",
    "Broker",
    "Channel",
    "Cursor",
    "DeadLetter",
    "Decision",
    "Delivery",
    "DeliveryResult",
    "Digest",
    "DigestTime",
    "EndedMailbox",
    "EndedOwner",
    "Feed",
    "FeedKind",
    "Key",
    "KeyLimits",
    "KnownSubscription",
    "LetterState",
    "Mailbox",
    "MailboxKind",
    "Member",
    "NewKey",
    "NewWebhook",
    "Page",
    "Period",
    "Position",
    "Pruned",
    "Recorded",
    "RetryPolicy",
    "Role",
    "Secret",
    "Sent",
    "ServerSecret",
    "Ticket",
    "Verdict",
    "Webhook",
    "WebhookState",
    "decide_next",
    "find_missed",
    "find_next_due",
    "redact",
]
