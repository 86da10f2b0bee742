"""Random lives of keys, channels, feeds and digests, against dictionaries."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tamis.broker.digest_times import DigestTime, Period, find_next_due
from tamis.broker.mailbox import Mailbox, Position
from tamis.broker.rights import Role
from tamis.errors import NameTakenError, NotAllowedError, UnknownItemError
from tamis.subscriptions import Replace, Subscribe, Unsubscribe
from tests.broker.machine import BrokerMachine, actors, may
from tests.broker.places import ADMIN, read_all
from tests.broker.running import run_lives

owners = st.sampled_from(["ann", "bob"])
roles = st.sets(st.sampled_from(Role), min_size=1)
names = st.sampled_from(["a", "b", "c"])


class KeyMachine(BrokerMachine):
    """Keys and the audit log."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.keys: dict[str, list] = {}  # by text: owner, roles, end, whether it is revoked
        self.ids: dict[str, str] = {}
        self.log: list[tuple[str, str]] = []

    @rule(owner=owners, roles=roles, seconds=st.none() | st.integers(1, 90_000), actor=actors)
    def create(self, owner, roles, seconds, actor):
        end = None if seconds is None else self.clock.now + timedelta(seconds=seconds)
        if not actor.is_admin:
            with pytest.raises(NotAllowedError):
                self.broker.keys.create(actor, owner, roles, expires=end)
            return
        made = self.broker.keys.create(actor, owner, roles, expires=end)
        self.keys[made.secret.reveal()] = [owner, roles, end, False]
        self.ids[made.secret.reveal()] = made.key.id
        self.log.append(("key.create", made.key.id))

    @precondition(lambda self: self.keys)
    @rule(data=st.data(), actor=actors)
    def revoke(self, data, actor):
        text = data.draw(st.sampled_from(sorted(self.keys)))
        key_id, known = self.ids[text], self.keys[text]
        if not may(actor, known[0]):
            with pytest.raises(NotAllowedError):
                self.broker.keys.revoke(actor, key_id)
            return
        assert self.broker.keys.revoke(actor, key_id).revoked is not None
        if not known[3]:
            self.log.append(("key.revoke", key_id))
        known[3] = True

    @rule(owner=owners)
    def end_owner(self, owner):
        ended = self.broker.end_owner(ADMIN, owner)
        valid = [text for text, one in self.keys.items() if one[0] == owner and not one[3]]
        assert list(ended.keys) == sorted(self.ids[text] for text in valid)
        for text in valid:
            self.keys[text][3] = True
        self.log.append(("owner.end", owner))

    @invariant()
    def keys_are_those_of_the_model(self):
        for text, (owner, granted, end, is_revoked) in self.keys.items():
            is_valid = not is_revoked and (end is None or end > self.clock.now)
            key = self.broker.keys.authenticate(text)
            assert (key is not None) == is_valid
            if key is not None:
                assert (key.owner, key.roles, key.expires) == (owner, granted, end)
        listed = read_all(self.broker.keys.list, owner="ann")
        assert [one.id for one in listed] == [
            self.ids[text] for text, one in self.keys.items() if one[0] == "ann"
        ]
        entries = read_all(self.broker.audit_log.list, cursor="before", limit=3)
        assert [(one.action, one.target) for one in reversed(entries)] == self.log


class ChannelMachine(BrokerMachine):
    """Channels, subscriptions that come and go, and pruning."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.channels: dict[str, tuple[int, str, set[int]]] = {}  # number, owner, members
        self.held: dict[str, int] = {}
        self.owners: dict[int, str] = {}  # of the known subscriptions, ended ones too
        self.taken: set[int] = set()

    @rule(name=names, owner=owners)
    def subscribe(self, name, owner):
        if name in self.held:
            self.store.apply([Replace(name, owner=owner)])
        else:
            (result,) = self.store.apply([Subscribe(name, "x = 1", owner=owner)])
            self.held[name] = result.number
        self.owners[self.held[name]] = owner

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def unsubscribe(self, data):
        name = data.draw(st.sampled_from(sorted(self.held)))
        self.store.apply([Unsubscribe(name)])
        del self.held[name]

    @rule(data=st.data())
    def prune(self, data):
        mail = data.draw(st.sets(st.sampled_from(sorted(self.owners) or [0])))
        pruned = self.broker.prune(self.store.last_change, lambda asked: mail & set(asked))
        gone = set(self.owners) - set(self.held.values()) - mail
        assert {one.mailbox.number for one in pruned.mailboxes} == gone
        for number in gone:
            del self.owners[number]
        for _, _, members in self.channels.values():
            members.difference_update(gone)

    @rule(name=names, actor=actors)
    def create(self, name, actor):
        if name in self.channels:
            with pytest.raises(NameTakenError):
                self.broker.channels.create(actor, name)
            return
        made = self.broker.channels.create(actor, name)
        assert made.number not in self.taken
        self.taken.add(made.number)
        self.channels[name] = (made.number, actor.owner, set())

    def is_refused(self, name, actor, act) -> bool:
        if name in self.channels and may(actor, self.channels[name][1]):
            return False
        error = NotAllowedError if name in self.channels else UnknownItemError
        with pytest.raises(error):
            act()
        return True

    @rule(name=names, actor=actors)
    def delete(self, name, actor):
        if not self.is_refused(name, actor, lambda: self.broker.channels.delete(actor, name)):
            ended = self.broker.channels.delete(actor, name)
            number, _, members = self.channels.pop(name)
            assert (ended.mailbox.number, ended.n_members) == (number, len(members))

    @rule(name=names, actor=actors, data=st.data())
    def add(self, name, actor, data):
        numbers = data.draw(st.sets(st.integers(1, self.store.last_change + 1), max_size=3))
        if self.is_refused(name, actor, lambda: self.broker.channels.add(actor, name, numbers)):
            return
        members = self.channels[name][2]
        new = numbers - members
        is_right = all(one in self.owners and may(actor, self.owners[one]) for one in new)
        if not is_right:
            with pytest.raises((NotAllowedError, UnknownItemError)):
                self.broker.channels.add(actor, name, numbers)
            return
        assert self.broker.channels.add(actor, name, numbers) == len(new)
        members |= new

    @rule(name=names, actor=actors, data=st.data())
    def remove(self, name, actor, data):
        numbers = data.draw(st.sets(st.integers(1, self.store.last_change + 1), max_size=3))
        if self.is_refused(name, actor, lambda: self.broker.channels.remove(actor, name, numbers)):
            return
        members = self.channels[name][2]
        assert self.broker.channels.remove(actor, name, numbers) == len(numbers & members)
        members -= numbers

    @invariant()
    def channels_are_those_of_the_model(self):
        channels = self.broker.channels
        listed = {one.name: (one.number, one.owner) for one in read_all(channels.list)}
        assert listed == {name: one[:2] for name, one in self.channels.items()}
        for number, _, members in self.channels.values():
            mailbox = Mailbox.of_channel(number)
            assert list(channels.numbers(mailbox)) == sorted(members)


times = st.builds(
    DigestTime,
    st.sampled_from(Period),
    st.integers(0, 59),
    st.integers(0, 23),
    st.sampled_from(["UTC", "America/New_York"]),
)


class FeedMachine(BrokerMachine):
    """Feeds and digests."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.feeds: dict[str, tuple[int, str]] = {}  # by token: number, owner
        self.revoked: set[int] = set()
        self.digests: dict[int, list] = {}  # by number: owner, time, event, next moment, failures

    @initialize()
    def subscribe(self):
        self.store.apply([Subscribe("a", "x", owner="ann"), Subscribe("b", "x", owner="bob")])

    @rule(which=st.integers(1, 2), actor=actors)
    def make_feed(self, which, actor):
        owner, box = ("ann", "bob")[which - 1], Mailbox.of_subscription(which)
        if not may(actor, owner):
            with pytest.raises(NotAllowedError):
                self.broker.feeds.create(actor, box, "t")
            return
        made = self.broker.feeds.create(actor, box, "t")
        self.feeds[made.token.reveal()] = (made.feed.number, owner)

    @precondition(lambda self: self.feeds)
    @rule(data=st.data(), actor=actors)
    def revoke(self, data, actor):
        number, owner = self.feeds[data.draw(st.sampled_from(sorted(self.feeds)))]
        if not may(actor, owner):
            with pytest.raises(NotAllowedError):
                self.broker.feeds.revoke(actor, number)
            return
        self.broker.feeds.revoke(actor, number)
        self.revoked.add(number)

    @rule(which=st.integers(1, 2), at=times)
    def make_digest(self, which, at):
        box = Mailbox.of_subscription(which)
        made = self.broker.digests.create(ADMIN, box, "a@b", at, Position("one", 0))
        due = find_next_due(at, self.clock.now)
        self.digests[made.number] = [("ann", "bob")[which - 1], at, 0, due, 0]

    @precondition(lambda self: self.digests)
    @rule(data=st.data(), event=st.integers(0, 99), is_empty=st.booleans())
    def send(self, data, event, is_empty):
        number = data.draw(st.sampled_from(sorted(self.digests)))
        self.broker.digests.record_sent(number, Position("one", event), is_empty=is_empty)
        one = self.digests[number]
        one[2:] = [event, find_next_due(one[1], self.clock.now), 0]

    @precondition(lambda self: self.digests)
    @rule(data=st.data())
    def fail(self, data):
        number = data.draw(st.sampled_from(sorted(self.digests)))
        self.broker.digests.record_failure(number, "x")
        one = self.digests[number]
        regular, one[4] = find_next_due(one[1], self.clock.now), one[4] + 1
        found = self.broker.digests.get(number).next_due
        assert self.clock.now < found <= regular
        one[3] = found

    @precondition(lambda self: self.digests)
    @rule(data=st.data(), actor=actors)
    def delete(self, data, actor):
        number = data.draw(st.sampled_from(sorted(self.digests)))
        if not may(actor, self.digests[number][0]):
            with pytest.raises(NotAllowedError):
                self.broker.digests.delete(actor, number)
            return
        self.broker.digests.delete(actor, number)
        del self.digests[number]

    @invariant()
    def all_is_as_in_the_model(self):
        for token, (number, owner) in self.feeds.items():
            feed = self.broker.feeds.authenticate(token)
            assert (feed is None) == (number in self.revoked)
            assert feed is None or (feed.number, feed.owner) == (number, owner)
        found = {
            one.number: [one.owner, one.at, one.position.event, one.next_due, one.n_failed]
            for one in read_all(self.broker.digests.list)
        }
        assert found == self.digests
        due = [one for one in self.digests if self.digests[one][3] <= self.clock.now]
        assert sorted(one.number for one in self.broker.digests.list_due()) == sorted(due)


@pytest.mark.parametrize(("kind", "n_lives"), [("sqlite", 15), ("postgres", 4)])
@pytest.mark.parametrize("machine", [KeyMachine, ChannelMachine, FeedMachine])
def test_random_lives(machine, kind, n_lives, request):
    run_lives(machine, kind, n_lives, request)
