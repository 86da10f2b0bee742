"""Random lives of webhooks and dead letters: every event is delivered, waiting or a dead letter."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tamis.broker.mailbox import Mailbox, Position
from tamis.broker.retries import Attempt, DeliveryResult, Verdict, decide_next
from tamis.broker.webhooks import Sent
from tamis.errors import NotAllowedError
from tamis.subscriptions import Subscribe
from tests.broker.machine import BrokerMachine, actors, may
from tests.broker.places import ANN, read_all
from tests.broker.running import run_lives

BOX = Mailbox.of_subscription(1)
results = st.sampled_from(
    [
        DeliveryResult(200, 1),
        DeliveryResult(500, 2, "x"),
        DeliveryResult(503, 2, "x", retry_after=100),
        DeliveryResult(None, 3, "timeout"),
        DeliveryResult(410, 1, "gone"),
    ]
)
# Few successes: dead letters need ten failures in a row.
failures = st.sampled_from([DeliveryResult(500, 2, "x"), DeliveryResult(None, 3, "timeout")])


class WebhookMachine(BrokerMachine):
    """One webhook, of which events 1, 2, 3 … are to be delivered in order."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.state, self.attempt, self.position = "active", Attempt(), 0
        self.dead: list[int] = []  # events
        self.queued: dict[int, Attempt] = {}  # by event
        self.delivered: set[int] = set()
        self.n_sent = 0

    @initialize()
    def register(self):
        self.store.apply([Subscribe("a", "x", owner="ann")])
        made = self.broker.webhooks.create(ANN, BOX, "https://example.com", Position("one", 0))
        self.hook = made.webhook.number

    def decide(self, attempt: Attempt, result: DeliveryResult):
        return decide_next(attempt, result, self.clock.now, 0.0)

    def send(self, event: int, begun: int, result: DeliveryResult) -> Verdict | None:
        self.n_sent += 1
        sent = Sent(self.hook, Position("one", event), [1], begun, result)
        return self.broker.webhooks.record(sent).verdict

    @rule(result=results)
    def deliver(self, result):
        is_counted = self.state == "active" or result.is_success()
        event, decision = self.position + 1, self.decide(self.attempt, result)
        verdict = self.send(event, self.attempt.n_failed, result)
        assert verdict == (decision.verdict if is_counted else None)
        if not is_counted:
            return
        self.attempt = decision.attempt
        if verdict is Verdict.DELIVERED:
            self.position = event
            self.delivered.add(event)
        elif verdict is Verdict.DEAD:
            self.position = event
            self.dead.append(event)
        elif verdict is Verdict.DISABLE:
            self.state = "disabled"

    @precondition(lambda self: self.state == "active")
    @rule(result=failures)
    def fail_until_it_is_given_up(self, result):
        event = self.position + 1
        while self.position < event and self.state == "active":
            self.deliver(result)

    @rule(result=results, ago=st.integers(0, 3))
    def come_late(self, result, ago):
        event = max(self.position - ago, 0)
        assert self.send(event, self.attempt.n_failed, result) is None
        failure = DeliveryResult(500, 1)
        assert self.send(self.position + 1, self.attempt.n_failed + 1, failure) is None

    @rule(actor=actors, is_paused=st.booleans())
    def pause_or_resume(self, actor, is_paused):
        act = self.broker.webhooks.pause if is_paused else self.broker.webhooks.resume
        if not may(actor, "ann"):
            with pytest.raises(NotAllowedError):
                act(actor, self.hook)
            return
        act(actor, self.hook)
        self.state, self.attempt = "paused" if is_paused else "active", Attempt()

    @rule()
    def skip_events_of_others(self):
        moved = self.broker.webhooks.advance(self.hook, Position("one", self.position + 1))
        assert moved == (self.attempt.n_failed == 0)
        if moved:
            self.position += 1
            self.delivered.add(self.position)

    @precondition(lambda self: self.dead)
    @rule()
    def send_again(self):
        assert self.broker.webhooks.dead_letters.send_again(ANN, self.hook) == len(self.dead)
        self.queued |= {event: Attempt(next_at=self.clock.now) for event in self.dead}
        self.dead.clear()

    @precondition(lambda self: self.queued and self.state == "active")
    @rule(result=results)
    def deliver_letters(self, result):
        for letter in self.broker.webhooks.dead_letters.list_due():
            event = letter.position.event
            attempt = self.queued[event]
            assert letter.attempt.n_failed == attempt.n_failed
            decision = self.decide(letter.attempt, result)
            self.n_sent += 1
            verdict = self.broker.webhooks.dead_letters.record(
                letter.number, attempt.n_failed, result
            )
            assert verdict is decision.verdict
            self.queued[event] = decision.attempt
            if verdict is Verdict.DELIVERED:
                del self.queued[event]
                self.delivered.add(event)
            elif verdict is Verdict.DEAD:
                del self.queued[event]
                self.dead.append(event)
            elif verdict is Verdict.DISABLE:
                self.state = "disabled"

    @invariant()
    def no_event_is_lost(self):
        if not hasattr(self, "hook"):
            return
        webhook = self.broker.webhooks.get(self.hook)
        assert (webhook.state, webhook.position.event) == (self.state, self.position)
        assert webhook.attempt == self.attempt
        letters = self.broker.webhooks.dead_letters
        found = read_all(lambda **rest: letters.list(self.hook, **rest), limit=3)
        by_state = {
            state: sorted(one.position.event for one in found if one.state == state)
            for state in ("dead", "queued")
        }
        assert by_state == {"dead": sorted(self.dead), "queued": sorted(self.queued)}
        assert set(range(1, self.position + 1)) == {*self.delivered, *self.dead, *self.queued}
        due = self.attempt.next_at is not None and self.attempt.next_at <= self.clock.now
        is_due = due and self.state == "active"
        assert [one.number for one in self.broker.webhooks.list_due()] == [self.hook] * is_due
        log = self.broker.webhooks.deliveries(self.hook, limit=100).items
        assert len(log) == min(self.n_sent, 100)


@pytest.mark.parametrize(("kind", "n_lives"), [("sqlite", 15), ("postgres", 4)])
def test_random_lives(kind, n_lives, request):
    run_lives(WebhookMachine, kind, n_lives, request)
