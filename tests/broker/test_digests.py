"""Digests: due at local times, also when clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from tamis.broker import tables
from tamis.broker.digest_times import DigestTime, Period, find_next_due
from tamis.broker.mailbox import Mailbox, Position
from tamis.broker.rights import Actor
from tamis.errors import InputError, NotAllowedError, UnknownItemError
from tamis.subscriptions import Subscribe
from tests.broker.places import ADMIN, ANN, BOB, read_all
from tests.subscriptions.places import START, after

ARCHIVE = Position("one", 10)
HOURLY = DigestTime(Period.HOURLY, 30)
DAILY = DigestTime(Period.DAILY, 30, 7, "Europe/Paris")
ZONES = ["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]
ZONES += ["Pacific/Apia", "America/St_Johns", "Africa/Casablanca", "Pacific/Chatham"]

times = st.builds(
    DigestTime,
    st.sampled_from(Period),
    st.integers(0, 59),
    st.integers(0, 23),
    st.sampled_from(ZONES),
)
moments = st.datetimes(datetime(2000, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("at", "after", "due"),
    [
        (DAILY, "2030-01-01T06:29:59Z", "2030-01-01T06:30:00Z"),
        (DAILY, "2030-01-01T06:30:00Z", "2030-01-02T06:30:00Z"),
        (DAILY, "2030-07-01T05:00:00Z", "2030-07-01T05:30:00Z"),
        # 2:30 does not exist on March 31; 2:30 exists twice on October 27.
        (DAILY._replace(hour=2), "2030-03-30T12:00:00Z", "2030-03-31T01:30:00Z"),
        (DAILY._replace(hour=2), "2030-03-31T01:30:00Z", "2030-04-01T00:30:00Z"),
        (DAILY._replace(hour=2), "2030-10-26T12:00:00Z", "2030-10-27T00:30:00Z"),
        (DAILY._replace(hour=2), "2030-10-27T00:30:00Z", "2030-10-28T01:30:00Z"),
        (HOURLY, "2030-01-01T06:29:59Z", "2030-01-01T06:30:00Z"),
        (HOURLY, "2030-01-01T06:30:00Z", "2030-01-01T07:30:00Z"),
        (HOURLY._replace(zone="Asia/Kathmandu"), "2030-01-01T00:00:00Z", "2030-01-01T00:45:00Z"),
        # Samoa had no December 30, 2011.
        (DAILY._replace(zone="Pacific/Apia"), "2011-12-29T17:30:00Z", "2011-12-30T17:30:00Z"),
    ],
)
def test_times(at, after, due):
    assert find_next_due(at, datetime.fromisoformat(after)) == datetime.fromisoformat(due)


@given(times, moments)
def test_every_period_has_one(at, moment):
    due = find_next_due(at, moment)
    assert due > moment
    assert due.tzinfo is UTC
    local = due.astimezone(ZoneInfo(at.zone))
    is_moved = (local - timedelta(hours=3)).utcoffset() != local.utcoffset()
    longest = timedelta(hours=1) if at.period is Period.HOURLY else timedelta(days=1)
    assert due - moment <= longest + timedelta(hours=1.5)
    if not is_moved:
        assert local.minute == at.minute
        assert (local.second, local.microsecond) == (0, 0)
        assert at.period is Period.HOURLY or local.hour == at.hour
    # There is none in between: every earlier moment leads to the same one.
    assert find_next_due(at, moment + (due - moment) / 2) == due


@given(times, moments)
def test_days_have_one_digest_each(at, moment):
    at = at._replace(period=Period.DAILY)
    dates = []
    for _ in range(8):
        moment = find_next_due(at, moment)
        dates.append(moment)
    gaps = [later - earlier for earlier, later in pairwise(dates)]
    assert all(timedelta(hours=22) <= gap <= timedelta(hours=26) for gap in gaps)


@pytest.fixture
def box(store) -> Mailbox:
    store.apply([Subscribe("a", "x = 1", owner="ann")])
    return Mailbox.of_subscription(1)


def test_digests_are_due_and_sent(broker, box, clock):
    digest = broker.digests.create(ANN, box, "ann@example.com", HOURLY, ARCHIVE)
    assert digest == broker.digests.get(digest.number)
    assert (digest.mailbox, digest.owner, digest.at) == (box, "ann", HOURLY)
    assert (digest.position, digest.next_due, digest.last_sent) == (ARCHIVE, after(1800), None)
    assert broker.digests.list_due() == []
    clock.move(1800)
    assert broker.digests.list_due() == [digest]
    broker.digests.record_sent(digest.number, Position("one", 15))
    sent = broker.digests.get(digest.number)
    assert (sent.position, sent.next_due) == (("one", 15), after(5400))
    assert sent.last_sent == after(1800)
    clock.move(3600 * 5)  # the server was down: one digest, not five
    broker.digests.record_sent(digest.number, Position("one", 16), is_empty=True)
    empty = broker.digests.get(digest.number)
    assert (empty.last_sent, empty.next_due) == (after(1800), after(1800 + 3600 * 6))
    assert empty.position == ("one", 16)


def test_failures_are_tried_again(broker, box, clock):
    number = broker.digests.create(ANN, box, "ann@example.com", DAILY, ARCHIVE).number
    clock.move(86400)
    waits = []
    for _ in range(6):
        broker.digests.record_failure(number, "refused\r\n")
        digest = broker.digests.get(number)
        waits.append((digest.next_due - clock.now).total_seconds())
        clock.now = digest.next_due
    assert waits[:4] == [5, 300, 1800, 7200]
    assert (digest.n_failed, digest.last_error, digest.position) == (6, "refused  ", ARCHIVE)
    assert broker.digests.list_due() == [digest]
    broker.digests.record_sent(number, ARCHIVE)
    digest = broker.digests.get(number)
    assert (digest.n_failed, digest.last_error) == (0, None)
    clock.now = digest.next_due - timedelta(seconds=2)
    broker.digests.record_failure(number, "refused")
    assert broker.digests.get(number).next_due == digest.next_due


def test_changes(broker, box):
    number = broker.digests.create(ANN, box, "ann@example.com", HOURLY, ARCHIVE).number
    changed = broker.digests.set_time(ANN, number, DAILY)
    assert (changed.at, changed.next_due) == (DAILY, START + timedelta(hours=6.5))
    ticket = Actor("", mailboxes=frozenset({box}))
    for wrong in (BOB, Actor("")):
        for act in (
            lambda actor: broker.digests.set_time(actor, number, HOURLY),
            lambda actor: broker.digests.delete(actor, number),
            lambda actor: broker.digests.create(actor, box, "b@c", HOURLY, ARCHIVE),
        ):
            with pytest.raises(NotAllowedError):
                act(wrong)
    broker.digests.set_time(ticket, number, HOURLY)
    broker.digests.delete(ADMIN, number)
    assert [one.action for one in broker.audit_log.list().items] == ["digest.delete"]
    broker.digests.record_sent(number, ARCHIVE)
    broker.digests.record_failure(number, "late")
    assert broker.digests.get(number) is None
    with pytest.raises(UnknownItemError, match=f"no digest {number}"):
        broker.digests.delete(ANN, number)


@pytest.mark.parametrize(
    "address", ["ann@example.com", "a.b+tag@mail.example.co.uk", "ünal@bücher.example", "root@host"]
)
def test_addresses(broker, box, address):
    assert broker.digests.create(ANN, box, address, HOURLY, ARCHIVE).address == address


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ann",
        "@example.com",
        "ann@",
        "ann@exa mple.com",
        "Ann <ann@example.com>",
        "ann@example.com,bob@example.com",
        "ann@example.com\r\nBcc: all@example.com",
        ".ann@example.com",
        "a..b@example.com",
        "ann@-example.com",
        "ann@example..com",
        "a" * 65 + "@example.com",
        "ann@" + "a" * 64 + ".com",
        "ann@" + ".".join(["a" * 60] * 5),
        None,
    ],
)
def test_wrong_addresses(broker, box, address):
    with pytest.raises(InputError, match="address"):
        broker.digests.create(ANN, box, address, HOURLY, ARCHIVE)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("hourly", "a DigestTime is expected"),
        (HOURLY._replace(period="weekly"), "one of hourly, daily"),
        (HOURLY._replace(minute=60), "minute is 60; 0 to 59"),
        (DAILY._replace(hour=24), "hour is 24; 0 to 23"),
        (DAILY._replace(hour=True), "hour is True"),
        (DAILY._replace(zone="Europe/Pariss"), 'did you mean "Europe/Paris"'),
        (DAILY._replace(zone="../../etc/passwd"), "there is no time zone"),
        (DAILY._replace(zone="/etc/passwd"), "there is no time zone"),
        (DAILY._replace(zone=""), "zone is empty"),
    ],
)
def test_wrong_times(broker, box, at, message):
    with pytest.raises(InputError) as raised:
        broker.digests.create(ANN, box, "a@b", at, ARCHIVE)
    assert message in str(raised.value)


def test_lists(broker, box):
    channel = broker.channels.create(BOB, "news").mailbox
    made = [
        broker.digests.create(ADMIN, (box, channel)[n % 2], "a@b", HOURLY, ARCHIVE)
        for n in range(5)
    ]
    assert read_all(broker.digests.list) == made
    assert read_all(broker.digests.list, mailbox=channel) == made[1::2]
    assert read_all(broker.digests.list, owner="ann") == made[::2]


def test_digests_of_older_tables_are_confirmed(broker, box):
    """Format 1 had no confirmations, and did not know since when a digest fails."""
    made = broker.digests.create(ANN, box, "ann@example.com", HOURLY, ARCHIVE)

    def go_back(connection) -> None:
        connection.execute(text("DROP TABLE tamis_confirmations"))
        for name in ("failing_since", "asked", "confirmed"):
            connection.execute(text(f"ALTER TABLE tamis_digests DROP COLUMN {name}"))

    broker.store.run(go_back)
    for migrate in (tables._add_failing_since, tables._add_confirmations):
        assert migrate in tables.MIGRATIONS
        broker.store.run(migrate)
    assert broker.digests.get(made.number) == made
