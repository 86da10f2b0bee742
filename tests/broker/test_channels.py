"""Channels: owners, members, and what ends with them."""

from __future__ import annotations

import pytest

from tamis.broker.mailbox import Mailbox, MailboxKind
from tamis.broker.rights import LOCAL, Actor
from tamis.errors import InputError, NameTakenError, NotAllowedError, UnknownItemError
from tamis.subscriptions import Subscribe
from tests.broker.places import ADMIN, ANN, BOB, read_all
from tests.subscriptions.places import START


@pytest.fixture
def numbers(store) -> list[int]:
    owners = ["ann", "ann", "bob", ""]
    results = store.apply([Subscribe(f"s{n}", "x = 1", owner=o) for n, o in enumerate(owners)])
    return [result.number for result in results]


def test_members_share_a_mailbox(broker, numbers):
    channel = broker.channels.create(ANN, "news")
    assert (channel.name, channel.owner, channel.created) == ("news", "ann", START)
    assert broker.channels.get("news") == channel
    assert broker.channels.numbers(channel.mailbox) == []
    assert broker.channels.add(ANN, "news", numbers[:2]) == 2
    assert broker.channels.add(ANN, "news", numbers[1:2]) == 0
    assert broker.channels.numbers(channel.mailbox) == numbers[:2]
    members = read_all(lambda **rest: broker.channels.members(channel.number, **rest), limit=1)
    assert [(one.subscription, one.subscription_id) for one in members] == [
        (numbers[0], "s0"),
        (numbers[1], "s1"),
    ]
    own = [Mailbox.of_subscription(number) for number in numbers]
    assert broker.channels.numbers(own[0]) == [numbers[0]]
    assert broker.channels.remove(ANN, "news", [numbers[0], 999]) == 1
    assert broker.channels.numbers(channel.mailbox) == [numbers[1]]


def test_a_name_may_be_used_again_and_a_number_not(broker, numbers):
    first = broker.channels.create(ANN, "news")
    with pytest.raises(NameTakenError, match='a channel "news" already'):
        broker.channels.create(BOB, "news")
    broker.channels.add(ANN, "news", numbers[:1])
    ended = broker.channels.delete(ANN, "news")
    assert (ended.mailbox, ended.n_members) == (first.mailbox, 1)
    second = broker.channels.create(BOB, "news")
    assert second.number > first.number
    assert broker.channels.numbers(second.mailbox) == []


def test_rights(broker, numbers):
    broker.channels.create(ANN, "news")
    for wrong in (BOB, Actor("")):
        for act in (
            lambda actor: broker.channels.delete(actor, "news"),
            lambda actor: broker.channels.add(actor, "news", []),
            lambda actor: broker.channels.remove(actor, "news", []),
            lambda actor: broker.channels.create(actor, "mine", owner="ann"),
        ):
            with pytest.raises(NotAllowedError, match="belongs to another owner"):
                act(wrong)
    with pytest.raises(NotAllowedError, match='subscription "s2" belongs to another owner'):
        broker.channels.add(ANN, "news", [numbers[0], numbers[2]])
    with pytest.raises(NotAllowedError, match='subscription "s3"'):
        broker.channels.add(ANN, "news", [numbers[3]])
    assert broker.channels.members(1).items == []
    ticket = ANN._replace(mailboxes=frozenset({Mailbox.of_subscription(numbers[3])}))
    assert broker.channels.add(ticket, "news", [numbers[3]]) == 1
    assert broker.channels.add(ADMIN, "news", numbers) == 3
    assert broker.channels.create(ADMIN, "bobs", owner="bob").owner == "bob"
    broker.channels.delete(LOCAL, "news")
    actions = [one.action for one in broker.audit_log.list().items]
    assert actions == ["channel.delete", "channel.create", "channel.add"]


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda c: c.create(ANN, ""), InputError, "name is empty"),
        (lambda c: c.create(ANN, "x" * 513), InputError, "at most 512"),
        (lambda c: c.create(Actor(""), "x"), InputError, "owner is empty"),
        (lambda c: c.delete(ANN, "none"), UnknownItemError, 'no channel "none"'),
        (lambda c: c.add(ANN, "news", [77]), UnknownItemError, "with the number 77"),
        (lambda c: c.add(ANN, "news", ["s0"]), InputError, "a whole number"),
        (lambda c: c.add(ANN, "news", range(1, 1002)), InputError, "at most 1,000 at once"),
    ],
)
def test_wrong_values(broker, act, error, message):
    broker.channels.create(ANN, "news")
    with pytest.raises(error, match=message):
        act(broker.channels)


def test_lists(broker):
    made = [broker.channels.create((ANN, BOB)[n % 2], f"c{n}") for n in range(5)]
    assert read_all(broker.channels.list) == made
    assert read_all(broker.channels.list, owner="bob") == made[1::2]


def test_names_of_mailboxes():
    for mailbox in (Mailbox.of_channel(3), Mailbox.of_subscription(17)):
        assert Mailbox.parse(str(mailbox)) == mailbox
    assert Mailbox.parse("channel/3").kind is MailboxKind.CHANNEL
    for wrong in ("", "channel", "channel/", "channel/x", "box/3", "channel/-1", "channel/²", 5):
        with pytest.raises(InputError, match="is not a mailbox"):
            Mailbox.parse(wrong)
