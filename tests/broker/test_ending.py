"""What ends with a channel, a subscription or an owner, and what that leaves."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from tamis.broker.digest_times import DigestTime, Period
from tamis.broker.mailbox import Mailbox, Position
from tamis.broker.retries import DELAYS, DeliveryResult
from tamis.broker.rights import LOCAL
from tamis.broker.tables import METADATA
from tamis.broker.webhooks import Sent
from tamis.errors import NotAllowedError
from tamis.subscriptions import Subscribe, Unsubscribe
from tests.broker.places import ADMIN, ANN, BOB

ARCHIVE = Position("one", 10)
HOURLY = DigestTime(Period.HOURLY)
KEPT = {"tamis_broker": 1}


def hang(broker, actor, mailbox) -> tuple[int, int, int]:
    """A webhook with a dead letter, a feed, a digest and a cursor."""
    hook = broker.webhooks.create(actor, mailbox, "https://example.com", ARCHIVE).webhook.number
    for n in range(len(DELAYS)):
        result = DeliveryResult(500, 1)
        broker.webhooks.record(Sent(hook, Position("one", 11), [1], n, result))
    feed = broker.feeds.create(actor, mailbox, "news").feed.number
    digest = broker.digests.create(actor, mailbox, "a@b", HOURLY, ARCHIVE).number
    broker.cursors.acknowledge(mailbox, "me", ARCHIVE, ARCHIVE)
    return hook, feed, digest


def count_rows(store) -> dict[str, int]:
    with store.read() as connection:
        counts = {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in METADATA.sorted_tables
        }
    return {name: n_rows for name, n_rows in counts.items() if n_rows}


def test_with_a_channel(broker, store):
    store.apply([Subscribe("a", "x = 1", owner="ann")])
    channel = broker.channels.create(ANN, "news")
    broker.channels.add(ANN, "news", [1])
    hook, feed, digest = hang(broker, ANN, channel.mailbox)
    other = Mailbox.of_subscription(1)
    hang(broker, ANN, other)
    ended = broker.channels.delete(ANN, "news")
    assert ended == (channel.mailbox, [hook], [feed], [digest], 1, 1, 1)
    assert broker.webhooks.get(hook) is broker.feeds.get(feed) is None
    assert len(broker.webhooks.list().items) == len(broker.feeds.list().items) == 1
    assert len(broker.digests.list().items) == len(broker.cursors.list(other).items) == 1


def test_with_a_subscription_that_has_no_more_mail(broker, store):
    store.apply([Subscribe("a", "x = 1", owner="ann")])
    box = Mailbox.of_subscription(1)
    hook, feed, digest = hang(broker, ANN, box)
    store.apply([Unsubscribe("a")])
    assert broker.webhooks.get(hook).state == "active"  # it may still have something to deliver
    assert broker.prune(store.last_change, set).mailboxes == []
    assert broker.feeds.get(feed) is not None
    (ended,) = broker.prune(store.last_change, lambda _numbers: []).mailboxes
    assert ended == (box, [hook], [feed], [digest], 1, 1, 0)
    assert count_rows(store) == KEPT


def test_with_an_owner(broker, store):
    store.apply([Subscribe("a", "x = 1", owner="ann"), Subscribe("b", "x = 1", owner="bob")])
    key = broker.keys.create(LOCAL, "ann", ["read"])
    bobs_key = broker.keys.create(LOCAL, "bob", ["read"])
    assert broker.keys.authenticate(key.secret.reveal()) is not None
    channel = broker.channels.create(ANN, "news").mailbox
    hang(broker, ANN, channel)
    hook, feed, digest = hang(broker, ANN, Mailbox.of_subscription(1))
    bobs = hang(broker, BOB, Mailbox.of_subscription(2))
    for wrong in (ANN, BOB):
        with pytest.raises(NotAllowedError, match="only an administrator may remove owners"):
            broker.end_owner(wrong, "ann")
    ended = broker.end_owner(ADMIN, "ann")
    assert ended.keys == [key.key.id]
    assert [one.mailbox for one in ended.mailboxes] == [channel]
    assert (ended.webhooks, ended.feeds, ended.digests) == ([hook], [feed], [digest])
    assert broker.keys.authenticate(key.secret.reveal()) is None
    assert broker.keys.authenticate(bobs_key.secret.reveal()) == bobs_key.key
    assert broker.webhooks.get(bobs[0]).owner == "bob"
    assert [one.number for one in broker.feeds.list().items] == [bobs[1]]
    entry = broker.audit_log.list(limit=1).items[0]
    assert (entry.action, entry.target, entry.detail["n_keys"]) == ("owner.end", "ann", 1)
    again = broker.end_owner(ADMIN, "ann")
    assert not any((again.keys, again.mailboxes, again.webhooks, again.feeds, again.digests))
