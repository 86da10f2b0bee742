"""Random lives of a store, against a dictionary: both databases, restarts and pruning included."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tamis.errors import HistoryError
from tamis.subscriptions import (
    KEEP,
    Accepted,
    Renew,
    Replace,
    State,
    Subscribe,
    SubscriptionStore,
    Unsubscribe,
)
from tests.effort import examples
from tests.subscriptions.model_store import ModelStore
from tests.subscriptions.places import Clock, after, follow, new_folder

NAMES = ["a", "B", "ä", "\U0001f600", "a b", "%"]
names = st.sampled_from(NAMES)
owners = st.sampled_from(["", "ann", "Ann"])
tags = st.lists(st.sampled_from(["news", "new", "ü,"]), unique=True, max_size=3).map(tuple)
attributes = st.dictionaries(
    st.text(max_size=3), st.integers(-9, 9) | st.text(max_size=3) | st.none(), max_size=2
)
# Databases hold all text but NUL and lone surrogates.
expressions = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=9)
moments = st.none() | st.integers(-5, 60).map(after)
hashes = st.none() | st.binary(max_size=4)
revisions = st.none() | st.integers(1, 12)


def or_kept(values: st.SearchStrategy) -> st.SearchStrategy:
    return st.just(KEEP) | values


requests = st.one_of(
    st.builds(Subscribe, names, expressions, owners, tags, attributes, moments, moments, hashes),
    st.builds(
        Replace,
        names,
        or_kept(expressions),
        or_kept(owners),
        or_kept(tags),
        or_kept(attributes),
        or_kept(moments),
        or_kept(moments),
        or_kept(hashes),
        revisions,
    ),
    st.builds(Renew, names, moments, revisions),
    st.builds(Unsubscribe, names, revisions),
)


class StoreMachine(RuleBasedStateMachine):
    """One store, its model, and a follower in another connection."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place
        self.clock = Clock()
        self.model = ModelStore()
        self.store = SubscriptionStore.open(place, clock=self.clock)
        self.follower = SubscriptionStore.open(place, read_only=True, clock=self.clock)
        self.copy: dict = {}
        self.reached = 0

    def teardown(self) -> None:
        self.follower.close()
        self.store.close()

    def see(self) -> ModelStore:
        """The model, at the moment at which the store is asked."""
        self.model.see(self.clock.now)
        return self.model

    @rule(asked=st.lists(requests, max_size=8))
    def apply(self, asked):
        model = self.see()
        expected = [model.apply(request) for request in asked]
        results = self.store.apply(asked)
        found = [one.number if isinstance(one, Accepted) else one.reason for one in results]
        assert found == expected

    @rule(seconds=st.integers(-40, 40))
    def move_clock(self, seconds):
        self.clock.move(seconds)

    @rule()
    def expire(self):
        assert self.store.expire() == self.see().expire()

    @precondition(lambda self: self.model.last_change > self.model.horizon)
    @rule(data=st.data())
    def prune(self, data):
        before = data.draw(st.integers(self.model.horizon, self.model.last_change))
        self.store.prune(before)
        self.model.prune(before)

    @rule()
    def reopen(self):
        self.store.close()
        self.store = SubscriptionStore.open(self.place, clock=self.clock)
        self.model.restart(self.store.moment)

    @rule()
    def follow(self):
        if self.reached < self.model.horizon:
            with pytest.raises(HistoryError):
                self.follower.changes(after=self.reached)
            self.reached = self.follower.last_change
            self.copy = {one.id: one for one in self.follower.state_at(self.reached)}
        self.reached = follow(self.follower, self.copy, self.reached)
        assert self.reached == self.model.last_change
        assert self.copy == self.model.held

    @rule(data=st.data())
    def rebuild_a_state(self, data):
        number = data.draw(st.integers(self.model.horizon, self.model.last_change))
        found = {one.id: one for one in self.follower.state_at(number)}
        assert found == self.model.states[number]

    @rule()
    def read_the_log(self):
        changes = self.store.changes(after=self.model.horizon)
        found = [(one.kind, one.subscription_id, one.moment) for one in changes]
        assert found == self.model.log[self.model.horizon :]
        for change in changes:
            state = self.model.states[change.number].get(change.subscription_id)
            assert change.subscription == state

    @rule(
        owner=st.none() | owners,
        tag=st.none() | st.sampled_from(["news", "new", "ü,", "n"]),
        text=st.none() | st.sampled_from(["%", "ä", "1"]),
        state=st.none() | st.sampled_from(State),
        limit=st.integers(1, 4),
    )
    def list(self, owner, tag, text, state, limit):
        filters = {"owner": owner, "tag": tag, "text": text, "state": state}
        found, cursor, is_more = [], None, True
        while is_more:
            page = self.store.list(after=cursor, limit=limit, **filters)
            found += [one.id for one in page.subscriptions]
            cursor, is_more = page.cursor, page.cursor is not None
        assert found == self.see().list(**filters)
        assert self.store.count(**filters) == len(found)

    @invariant()
    def set_is_that_of_the_model(self):
        model = self.see()
        held = {name: one for name, one in model.held.items() if not model.has_ended(one)}
        assert self.store.get_many(NAMES) == held
        assert self.store.last_change == model.last_change


@pytest.mark.parametrize(("kind", "n_lives"), [("sqlite", 40), ("postgres", 10)])
def test_random_lives(kind, n_lives, request):
    folders = []

    def make() -> StoreMachine:
        if kind == "postgres":
            return StoreMachine(request.getfixturevalue("postgres").new_place())
        folders.append(new_folder())
        return StoreMachine(str(folders[-1]))

    try:
        run_state_machine_as_test(
            make, settings=settings(max_examples=examples(n_lives), stateful_step_count=30)
        )
    finally:
        for folder in folders:
            shutil.rmtree(folder)
