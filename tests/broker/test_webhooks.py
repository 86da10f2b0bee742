"""Webhooks: rights, positions, late results, dead letters, secrets that are replaced."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from tamis.broker.deliveries import LOG_SIZE
from tamis.broker.mailbox import Mailbox, Position
from tamis.broker.retries import DELAYS, Attempt, DeliveryResult, Verdict
from tamis.broker.rights import Actor
from tamis.broker.store import Broker
from tamis.broker.tables import DEAD_LETTERS, DELIVERIES, SIGNING_SECRETS
from tamis.broker.webhooks import Sent, WebhookState
from tamis.errors import EpochError, InputError, NotAllowedError, UnknownItemError
from tamis.language.moments import spell_moment
from tamis.subscriptions import Subscribe
from tests.broker.places import ADMIN, ANN, BOB, SECRET, read_all
from tests.subscriptions.places import START, after

URL = "https://example.com/hook?x=1"
ARCHIVE = Position("one", 10)
GOOD = DeliveryResult(204, 12)
BAD = DeliveryResult(500, 30, "Internal Server Error")


@pytest.fixture
def broker(store) -> Broker:
    return Broker(store, SECRET, dice=lambda: 0.0)


@pytest.fixture
def box(store, broker) -> Mailbox:
    store.apply([Subscribe("a", "x = 1", owner="ann"), Subscribe("b", "x = 1")])
    return Mailbox.of_subscription(1)


@pytest.fixture
def hook(broker, box) -> int:
    return broker.webhooks.create(ANN, box, URL, ARCHIVE).webhook.number


def send(broker, hook: int, event: int, result=GOOD, begun: int | None = None, epoch="one"):
    begun = broker.webhooks.get(hook).attempt.n_failed if begun is None else begun
    sent = Sent(hook, Position(epoch, event), [1, 4], begun, result)
    recorded = broker.webhooks.record(sent)
    assert recorded.webhook == broker.webhooks.get(hook)
    return recorded.verdict


def test_registering(broker, box, clock):
    made = broker.webhooks.create(ANN, box, URL, ARCHIVE)
    webhook = made.webhook
    assert broker.webhooks.get(webhook.number) == webhook
    assert (webhook.mailbox, webhook.owner, webhook.url) == (box, "ann", URL)
    assert (webhook.state, webhook.position, webhook.created) == ("active", ARCHIVE, START)
    assert webhook.attempt == Attempt()
    assert broker.webhooks.secrets(webhook.number) == [made.secret]
    assert made.secret.reveal() not in repr(made)
    assert broker.webhooks.get(999) is None


def test_deliveries_move_the_position(broker, hook, clock):
    assert send(broker, hook, 12) is Verdict.DELIVERED
    assert send(broker, hook, 15, BAD) is Verdict.RETRY
    webhook = broker.webhooks.get(hook)
    assert webhook.position == ("one", 12)
    assert webhook.attempt == Attempt(1, after(5), 500, "Internal Server Error", START)
    assert broker.webhooks.list_due() == []
    clock.move(5)
    assert broker.webhooks.list_due() == [webhook]
    assert send(broker, hook, 15) is Verdict.DELIVERED
    assert broker.webhooks.get(hook).position == ("one", 15)
    assert broker.webhooks.get(hook).attempt == Attempt()
    assert broker.webhooks.list_due() == []


def test_late_results_are_not_credited_to_another_delivery(broker, hook):
    send(broker, hook, 12)
    assert send(broker, hook, 12) is None
    assert send(broker, hook, 11, BAD) is None
    assert send(broker, hook, 15, BAD, begun=0) is Verdict.RETRY
    assert send(broker, hook, 15, BAD, begun=0) is None
    assert broker.webhooks.get(hook).attempt.n_failed == 1
    assert send(broker, hook, 99, epoch="two") is None
    assert send(broker, hook, 15, GOOD, begun=0) is Verdict.DELIVERED  # it came, if late
    assert broker.webhooks.get(hook).position == ("one", 15)
    events = [one.event for one in broker.webhooks.deliveries(hook).items]
    assert events == [15, 99, 15, 15, 11, 12, 12]
    broker.webhooks.delete(ANN, hook)
    assert broker.webhooks.record(Sent(hook, ARCHIVE, [], 0, GOOD)) is None


def give_up(broker, hook: int, event: int) -> None:
    for n in range(len(DELAYS)):
        assert send(broker, hook, event, BAD) is (
            Verdict.DEAD if n + 1 == len(DELAYS) else Verdict.RETRY
        )


def test_dead_letters(broker, hook, clock):
    letters = broker.webhooks.dead_letters
    give_up(broker, hook, 11)
    give_up(broker, hook, 12)
    assert send(broker, hook, 13) is Verdict.DELIVERED
    first, second = read_all(lambda **rest: letters.list(hook, **rest), limit=1)
    assert (first.position, first.subscriptions) == (("one", 11), (1, 4))
    assert (first.total_attempts, first.attempt.last_status) == (10, 500)
    assert letters.list_due() == []

    assert letters.send_again(ANN, hook, [first.number]) == 1
    assert [one.number for one in letters.list_due()] == [first.number]
    assert letters.record(first.number, 0, BAD) is Verdict.RETRY
    assert letters.record(first.number, 0, BAD) is None  # late
    assert letters.list_due() == []
    clock.move(5)
    assert letters.list_due()[0].attempt.n_failed == 1
    assert letters.record(first.number, 1, GOOD) is Verdict.DELIVERED
    assert letters.record(first.number, 1, GOOD) is None
    assert [one.number for one in letters.list(hook).items] == [second.number]

    assert letters.send_again(ANN, hook) == 1
    for n in range(len(DELAYS)):
        verdict = letters.record(second.number, n, BAD)
    assert verdict is Verdict.DEAD
    (dead,) = letters.list(hook).items
    assert (dead.state, dead.total_attempts) == ("dead", 20)
    assert broker.webhooks.get(hook).position == ("one", 13)
    assert letters.delete(ANN, hook, [999]) == 0
    assert letters.delete(ANN, hook) == 1


def test_letters_of_a_webhook_that_is_gone_for_good(broker, hook):
    letters = broker.webhooks.dead_letters
    give_up(broker, hook, 11)
    letters.send_again(ANN, hook)
    (due,) = letters.list_due()
    assert letters.record(due.number, 0, DeliveryResult(410, 1)) is Verdict.DISABLE
    assert broker.webhooks.get(hook).state is WebhookState.DISABLED
    assert letters.list_due() == []
    broker.webhooks.resume(ANN, hook)
    assert [one.number for one in letters.list_due()] == [due.number]


def test_old_letters_are_pruned(broker, hook, clock):
    give_up(broker, hook, 11)
    clock.move(10)
    give_up(broker, hook, 12)
    assert broker.webhooks.dead_letters.prune(before=after(10)) == 1
    assert [one.position.event for one in broker.webhooks.dead_letters.list(hook).items] == [12]


def test_disabling_keeps_the_event(broker, hook, clock):
    assert send(broker, hook, 11, BAD) is Verdict.RETRY
    clock.move(5 * 86400)
    assert send(broker, hook, 11, BAD) is Verdict.DISABLE
    webhook = broker.webhooks.get(hook)
    assert (webhook.state, webhook.position) == ("disabled", ARCHIVE)
    assert webhook.reason == f"no success since {spell_moment(START)}"
    assert broker.webhooks.list_due() == []
    assert send(broker, hook, 11, BAD) is None
    webhook = broker.webhooks.resume(ANN, hook)
    assert (webhook.state, webhook.reason, webhook.attempt) == ("active", None, Attempt())
    assert send(broker, hook, 11, DeliveryResult(None, 5, "private", is_final=True)) == "disable"
    assert broker.webhooks.get(hook).reason == "not allowed: private"
    broker.webhooks.resume(ANN, hook)
    broker.webhooks.disable(hook, "the mailbox\nis gone")
    assert broker.webhooks.get(hook).reason == "the mailbox is gone"


def test_pausing(broker, hook):
    send(broker, hook, 11, BAD)
    assert broker.webhooks.pause(ANN, hook).state is WebhookState.PAUSED
    assert send(broker, hook, 11, BAD) is None
    assert send(broker, hook, 11) is Verdict.DELIVERED  # on its way when it was paused
    assert broker.webhooks.get(hook).state is WebhookState.PAUSED


def test_changes_by_the_owner(broker, hook):
    send(broker, hook, 11, BAD)
    changed = broker.webhooks.set_url(ANN, hook, "http://other.example:8080/")
    assert (changed.url, changed.attempt) == ("http://other.example:8080/", Attempt())
    restored = Position("two", 5)
    assert broker.webhooks.move(ANN, hook, Position("two", 3), restored).position == ("two", 3)
    with pytest.raises(EpochError):
        broker.webhooks.move(ANN, hook, ARCHIVE, restored)
    with pytest.raises(InputError, match="the last event is 5"):
        broker.webhooks.move(ANN, hook, Position("two", 6), restored)


def test_events_of_others_are_passed(broker, hook):
    assert broker.webhooks.advance(hook, Position("one", 20))
    assert not broker.webhooks.advance(hook, Position("one", 15))
    assert not broker.webhooks.advance(hook, Position("two", 30))
    send(broker, hook, 21, BAD)
    assert not broker.webhooks.advance(hook, Position("one", 30))
    assert broker.webhooks.get(hook).position == ("one", 20)


def test_secrets_are_replaced_with_an_overlap(broker, hook, clock):
    (first,) = broker.webhooks.secrets(hook)
    second = broker.webhooks.rotate(ANN, hook, overlap_seconds=10)
    assert broker.webhooks.secrets(hook) == [second, first]
    clock.move(5)
    third = broker.webhooks.rotate(ANN, hook, overlap_seconds=10)
    assert broker.webhooks.secrets(hook) == [third, second, first]
    clock.move(5)
    assert broker.webhooks.secrets(hook) == [third, second]
    clock.move(5)
    given = "whsec_" + "A" * 32
    assert broker.webhooks.rotate(ANN, hook, overlap_seconds=0, secret=given).reveal() == given
    assert [one.reveal() for one in broker.webhooks.secrets(hook)] == [given]
    for _ in range(3):
        broker.webhooks.rotate(ANN, hook)
    with pytest.raises(InputError, match="4 signing secrets are valid at once"):
        broker.webhooks.rotate(ANN, hook)
    assert len(broker.webhooks.secrets(hook)) == 4


def test_the_log_of_deliveries_is_bounded(broker, hook, clock):
    for n in range(LOG_SIZE + 7):
        clock.move(1)
        broker.webhooks.submit(Sent(hook, Position("one", 11 + n), [1], 0, GOOD)).result()
    found = read_all(
        lambda **rest: broker.webhooks.deliveries(hook, **rest), limit=40, cursor="before"
    )
    assert [one.number for one in found] == list(range(LOG_SIZE + 7, 7, -1))
    assert found[0] == (107, after(107), 117, 1, 204, 12, None)


def test_errors_are_kept_without_secrets_and_control_characters(broker, hook):
    ticket = broker.tickets.make().secret.reveal()
    error = f"line\r\nline \x1b[31m {ticket} \ud800 " + "x" * 5000
    send(broker, hook, 11, DeliveryResult(None, 1, error))
    for kept in (
        broker.webhooks.get(hook).attempt.last_error,
        broker.webhooks.deliveries(hook).items[0].error,
    ):
        assert kept.startswith("line  line  [31m tkt_… ? xxx")
        assert len(kept) == 500


def test_rights(broker, box, hook):
    webhooks, letters = broker.webhooks, broker.webhooks.dead_letters
    acts = [
        lambda actor: webhooks.set_url(actor, hook, URL),
        lambda actor: webhooks.pause(actor, hook),
        lambda actor: webhooks.resume(actor, hook),
        lambda actor: webhooks.move(actor, hook, ARCHIVE, ARCHIVE),
        lambda actor: webhooks.rotate(actor, hook),
        lambda actor: letters.send_again(actor, hook),
        lambda actor: letters.delete(actor, hook),
        lambda actor: webhooks.create(actor, box, URL, ARCHIVE),
    ]
    ticket = Actor("", mailboxes=frozenset({box}))
    other = Actor("", mailboxes=frozenset({Mailbox.of_subscription(2)}))
    for act in [*acts, lambda actor: webhooks.delete(actor, hook)]:
        for wrong in (BOB, Actor(""), other):
            with pytest.raises(NotAllowedError, match="belongs to another owner"):
                act(wrong)
    for act in acts:
        for right in (ANN, ticket, ADMIN):
            act(right)
    anonymous = Mailbox.of_subscription(2)
    for wrong in (ANN, Actor(""), ticket):
        with pytest.raises(NotAllowedError):
            webhooks.create(wrong, anonymous, URL, ARCHIVE)
    assert webhooks.create(other, anonymous, URL, ARCHIVE).webhook.owner == ""
    assert len(read_all(broker.audit_log.list, cursor="before")) == len(acts)
    webhooks.delete(ticket, hook)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "url is empty"),
        ("example.com/hook", "a URL is expected"),
        ("ftp://example.com/", "a URL is expected"),
        ("file:///etc/passwd", "a URL is expected"),
        ("https://", "a URL is expected"),
        ("https://user:hunter2@example.com/", "user name or a password"),
        ("https://hunter2@example.com:x/", "user name or a password"),
        ("https://example.com/#top", "fragment"),
        ("https://example.com:x/", "Port could not be cast"),
        ("https://example.com:99999/", "out of range"),
        ("https://[::1/", "Invalid IPv6 URL"),
        ("https://example.com/a b", "a URL is expected"),
        ("https://example.com/\r\nX: y", "control character"),
        ("https://example.com/" + "x" * 2048, "at most 2,048"),
        (None, "text is expected"),
    ],
)
def test_wrong_urls(broker, box, hook, url, message):
    for act in (
        lambda: broker.webhooks.create(ANN, box, url, ARCHIVE),
        lambda: broker.webhooks.set_url(ANN, hook, url),
    ):
        with pytest.raises(InputError) as raised:
            act()
        assert message in str(raised.value)
        assert "hunter2" not in str(raised.value)


def test_unknown_webhooks_and_mailboxes(broker, box):
    for mailbox in (Mailbox.of_subscription(77), Mailbox.of_channel(77)):
        with pytest.raises(UnknownItemError, match=f"no mailbox {mailbox}"):
            broker.webhooks.create(ADMIN, mailbox, URL, ARCHIVE)
    for act in (broker.webhooks.pause, broker.webhooks.delete, broker.webhooks.dead_letters.delete):
        with pytest.raises(UnknownItemError, match="no webhook 77"):
            act(ADMIN, 77)
    with pytest.raises(InputError, match="one of active, paused, disabled"):
        broker.webhooks.list(state="activ")


def test_lists(broker, box):
    channel = broker.channels.create(BOB, "news").mailbox
    made = [
        broker.webhooks.create(ADMIN, (box, channel)[n % 2], URL, ARCHIVE).webhook for n in range(5)
    ]
    assert read_all(broker.webhooks.list) == made
    assert read_all(broker.webhooks.list, mailbox=channel) == made[1::2]
    assert read_all(broker.webhooks.list, owner="ann") == made[::2]
    paused = broker.webhooks.pause(BOB, made[1].number)
    assert read_all(broker.webhooks.list, state="paused") == [paused]


def test_deleting_leaves_nothing(broker, box, hook, store):
    give_up(broker, hook, 11)
    other = broker.webhooks.create(ANN, box, URL, ARCHIVE).webhook.number
    send(broker, other, 11)
    assert broker.webhooks.delete(ANN, hook) == 1
    with store.read() as connection:
        for table, n_rows in ((DEAD_LETTERS, 0), (DELIVERIES, 1), (SIGNING_SECRETS, 1)):
            assert len(connection.execute(select(table)).all()) == n_rows


def test_webhooks_do_not_touch_each_other(broker, box, hook, clock):
    other = broker.webhooks.create(ANN, box, URL, ARCHIVE).webhook.number
    secrets = broker.webhooks.secrets(other)
    for number in (hook, other):
        give_up(broker, number, 11)
    before = broker.webhooks.get(other), broker.webhooks.dead_letters.list(other)
    broker.webhooks.rotate(ANN, hook, overlap_seconds=0)
    assert broker.webhooks.dead_letters.send_again(ANN, hook) == 1
    theirs = [letter.number for letter in before[1].items]
    assert broker.webhooks.dead_letters.delete(ANN, hook, theirs) == 0
    broker.webhooks.pause(ANN, hook)
    broker.webhooks.delete(ANN, hook)
    clock.move(1)
    assert broker.webhooks.secrets(other) == secrets
    assert (broker.webhooks.get(other), broker.webhooks.dead_letters.list(other)) == before
