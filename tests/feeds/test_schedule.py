"""When sources are fetched; and hosts, which are asked one request at a time."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta

import pytest

from tamis.broker.sources import Hints
from tamis.feeds.headers import read_freshness, read_retry_after
from tamis.feeds.hosts import HeldError, Hosts
from tamis.feeds.schedule import Pace, plan_failure, plan_success
from tests.effort import SEED

NOW = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)  # a Monday
PACE = Pace(900, 86_400)
NO_HINTS = Hints()


def never() -> float:
    return 0.0


def success(interval: float, hints: Hints = NO_HINTS, fresh_for: float = 0.0, n_new: int = 0):
    return plan_success(NOW, interval, PACE, hints, fresh_for, n_new, never)


def test_the_interval_adapts_within_its_limits():
    interval, seen = 3_600.0, []
    for n_new in [0] * 30 + [1] * 30:
        interval = success(interval, n_new=n_new).interval
        seen.append(interval)
    assert seen[0] == 4_500
    assert seen[29] == PACE.most
    assert seen[-1] == PACE.least


@pytest.mark.parametrize(
    ("hints", "fresh_for", "seconds"),
    [
        (NO_HINTS, 0.0, 900),
        (Hints(7_200.0), 0.0, 7_200),
        (NO_HINTS, 7_200.0, 7_200),
        (Hints(1e9), 1e9, 86_400),  # a publisher cannot switch a source off
    ],
)
def test_publishers_slow_fetches_down(hints, fresh_for, seconds):
    assert success(1.0, hints, fresh_for, 1).at == NOW + timedelta(seconds=seconds)


def test_hours_and_days_are_skipped():
    assert success(900, Hints(0.0, (12, 13)), n_new=1).at == datetime(2026, 6, 1, 14, tzinfo=UTC)
    monday = Hints(0.0, (), (0,))
    assert success(900, monday, n_new=1).at == datetime(2026, 6, 2, tzinfo=UTC)
    everything = Hints(0.0, tuple(range(24)))
    assert success(900, everything, n_new=1).at > NOW


def test_failures_back_off_apart_from_each_other():
    dice = random.Random(SEED).random

    def delays(n_failed: int, retry_after: float | None = None) -> list[float]:
        plans = [plan_failure(NOW, 3_600, PACE, n_failed, retry_after, dice) for _ in range(50)]
        assert {plan.interval for plan in plans} == {3_600}
        return [(plan.at - NOW).total_seconds() for plan in plans]

    assert all(450 <= delay <= 900 for delay in delays(1))
    assert all(900 <= delay <= 1_800 for delay in delays(2))
    assert all(43_200 <= delay <= 86_400 for delay in delays(100))
    assert all(5_000 <= delay <= 5_500 for delay in delays(1, 5_000))
    assert all(delay <= 8 * 86_400 for delay in delays(1, 1e12))
    assert len(set(delays(3))) == 50


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("120", 120),
        ("Mon, 01 Jun 2026 12:31:00 GMT", 60),
        ("Mon, 01 Jun 2020 12:31:00 GMT", 0),
        ("soon", None),
        ("-5", None),
        ("9" * 400, None),
    ],
)
def test_retry_after(text, seconds):
    assert read_retry_after(text, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"cache-control": "public, max-age=600"}, 600),
        ({"cache-control": 'Max-Age="600"', "age": "100"}, 500),
        ({"cache-control": "no-cache, max-age=600"}, 0),
        ({"cache-control": "s-maxage=5"}, 0),
        ({"cache-control": "max-age=" + "9" * 99}, 0),
        ({"expires": "Mon, 01 Jun 2026 12:31:00 GMT"}, 0),
        (
            {
                "expires": "Mon, 01 Jun 2026 12:31:00 GMT",
                "date": "Mon, 01 Jun 2026 12:30:00 GMT",
            },
            60,
        ),
        ({"expires": "0", "date": "Mon, 01 Jun 2026 12:30:00 GMT"}, 0),
    ],
)
def test_freshness(headers, seconds):
    assert read_freshness(headers) == seconds


def test_a_host_is_asked_one_request_at_a_time():
    async def main() -> None:
        hosts = Hosts(0.0, 10)
        running: list[str] = []
        most = 0

        async def ask(host: str) -> None:
            nonlocal most
            async with hosts.turn(f"https://{host}/feed"):
                assert host not in running
                running.append(host)
                most = max(most, len(running))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                running.remove(host)

        await asyncio.gather(*(ask(f"h{n % 4}") for n in range(20)))
        assert most == 4

    asyncio.run(main())


def test_a_held_host_is_not_asked():
    async def main() -> None:
        now = 100.0
        hosts = Hosts(0.0, 10, timer=lambda: now)
        hosts.hold("a", 60)
        with pytest.raises(HeldError) as raised:
            async with hosts.turn("https://a/y"):
                raise AssertionError
        assert raised.value.seconds == 60
        async with hosts.turn("https://b/y"):
            pass
        now = 161.0
        async with hosts.turn("https://a/y"):
            pass

    asyncio.run(main())
