"""Result feeds: found by their token, until they are revoked."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from tamis.broker.mailbox import Mailbox
from tamis.broker.rights import Actor
from tamis.broker.tables import FEEDS
from tamis.errors import InputError, NotAllowedError, UnknownItemError
from tamis.subscriptions import Subscribe
from tests.broker.places import ADMIN, ANN, BOB, read_all
from tests.subscriptions.places import START, after


@pytest.fixture
def box(store) -> Mailbox:
    store.apply([Subscribe("a", "x = 1", owner="ann")])
    return Mailbox.of_subscription(1)


def test_a_feed_is_found_by_its_token(broker, box, store, clock):
    made = broker.feeds.create(ANN, box, "News & <more>", "json")
    feed, token = made.feed, made.token.reveal()
    assert (feed.mailbox, feed.owner, feed.title, feed.kind) == (
        box,
        "ann",
        "News & <more>",
        "json",
    )
    assert (feed.created, feed.revoked) == (START, None)
    assert broker.feeds.authenticate(token) == broker.feeds.get(feed.number) == feed
    for wrong in ("", None, token[:-1], token + "x", broker.tickets.make().secret.reveal()):
        assert broker.feeds.authenticate(wrong) is None
    with store.read() as connection:
        assert token.removeprefix("feed_") not in repr(connection.execute(select(FEEDS)).all())
    assert token not in repr(made)
    clock.move(5)
    revoked = broker.feeds.revoke(ANN, feed.number)
    assert revoked == feed._replace(revoked=after(5))
    assert broker.feeds.authenticate(token) is None
    clock.move(5)
    assert broker.feeds.revoke(ANN, feed.number) == revoked


def test_rights(broker, box):
    feed = broker.feeds.create(ANN, box, "news").feed
    for wrong in (BOB, Actor("")):
        with pytest.raises(NotAllowedError):
            broker.feeds.create(wrong, box, "news")
        with pytest.raises(NotAllowedError):
            broker.feeds.revoke(wrong, feed.number)
    ticket = Actor("", mailboxes=frozenset({box}))
    assert broker.feeds.create(ticket, box, "mine").feed.owner == "ann"
    assert broker.feeds.revoke(ADMIN, feed.number).revoked is not None
    assert [one.action for one in broker.audit_log.list().items] == ["feed.revoke"]


def test_wrong_values(broker, box):
    with pytest.raises(InputError, match='did you mean "atom"'):
        broker.feeds.create(ANN, box, "news", "atoms")
    with pytest.raises(InputError, match="title is empty"):
        broker.feeds.create(ANN, box, "")
    with pytest.raises(UnknownItemError, match="no mailbox subscription/9"):
        broker.feeds.create(ANN, Mailbox.of_subscription(9), "news")
    with pytest.raises(UnknownItemError, match="no feed 9"):
        broker.feeds.revoke(ANN, 9)


def test_lists(broker, box):
    channel = broker.channels.create(BOB, "news").mailbox
    made = [broker.feeds.create(ADMIN, (box, channel)[n % 2], "t").feed for n in range(5)]
    assert read_all(broker.feeds.list) == made
    assert read_all(broker.feeds.list, mailbox=channel) == made[1::2]
    assert read_all(broker.feeds.list, owner="ann") == made[::2]
