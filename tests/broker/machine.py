"""What the machines of random lives share: a store that is closed and opened again, and a clock."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tamis.broker.store import Broker
from tamis.subscriptions import SubscriptionStore
from tests.broker.places import ADMIN, ANN, BOB, SECRET, Timer
from tests.subscriptions.places import Clock

actors = st.sampled_from([ANN, BOB, ADMIN])


class BrokerMachine(RuleBasedStateMachine):
    """A broker that restarts. Its clock goes forward only."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place
        self.clock = Clock()
        self.open()

    def open(self) -> None:
        self.store = SubscriptionStore.open(self.place, clock=self.clock)
        self.broker = Broker(self.store, SECRET, timer=Timer(), dice=lambda: 0.0)

    def teardown(self) -> None:
        self.store.close()

    @rule()
    def restart(self):
        self.store.close()
        self.open()

    @rule(seconds=st.sampled_from([1, 5, 60, 3600, 40_000, 500_000]))
    def wait(self, seconds):
        self.clock.move(seconds)


def may(actor, owner: str) -> bool:
    return actor.is_admin or actor.owner == owner
