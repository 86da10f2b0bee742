"""When a failed delivery is tried again: properties of a pure function, with a fake clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.broker.retries import (
    DEFAULT_POLICY,
    DELAYS,
    Attempt,
    DeliveryResult,
    RetryPolicy,
    Verdict,
    decide_next,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)

dice = st.floats(0, 1, exclude_max=True)
statuses = st.none() | st.integers(100, 599)
results = st.builds(
    DeliveryResult,
    statuses,
    st.integers(0, 30_000),
    st.none() | st.text(max_size=9),
    st.none() | st.floats(0, 1e7),
    st.booleans(),
)
attempts = st.builds(
    Attempt,
    st.integers(0, 9),
    failing_since=st.none() | st.integers(0, 10).map(lambda days: NOW - timedelta(days=days)),
)


def fail(status: int | None = 500, **given) -> DeliveryResult:
    return DeliveryResult(status, 10, "refused", **given)


def test_the_schedule_of_standard_webhooks():
    attempt, now, waits = Attempt(), NOW, []
    while True:
        decision = decide_next(attempt, fail(), now, 0.0)
        attempt = decision.attempt
        if decision.verdict is Verdict.DEAD:
            break
        assert decision.verdict is Verdict.RETRY
        waits.append((attempt.next_at - now).total_seconds())
        now = attempt.next_at
    assert waits == [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
    assert attempt == Attempt(0, None, 500, "refused", NOW)
    assert now - NOW < DEFAULT_POLICY.disable_after


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_success_forgets_failures(status):
    decision = decide_next(Attempt(7, NOW, 500, "x", NOW), DeliveryResult(status, 5), NOW, 0.5)
    assert decision == (Verdict.DELIVERED, Attempt(), None)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (fail(410), "410 Gone"),
        (fail(None, is_final=True), "not allowed: refused"),
        (fail(200, is_final=True), "not allowed: refused"),
    ],
)
def test_what_disables_at_once(result, reason):
    decision = decide_next(Attempt(), result, NOW, 0.0)
    assert decision.verdict is Verdict.DISABLE
    assert reason in decision.reason


@pytest.mark.parametrize("status", [None, 301, 302, 400, 401, 404, 429, 500, 503])
def test_all_other_answers_are_failures(status):
    assert decide_next(Attempt(), fail(status), NOW, 0.0).verdict is Verdict.RETRY


def test_days_of_failure_disable():
    since = NOW - timedelta(days=5)
    decision = decide_next(Attempt(9, failing_since=since), fail(), NOW, 0.0)
    assert decision.verdict is Verdict.DISABLE
    assert decision.reason == "no success since 2029-12-27T00:00:00Z"
    almost = decide_next(
        Attempt(0, failing_since=since + timedelta(microseconds=1)), fail(), NOW, 0.0
    )
    assert almost.verdict is Verdict.RETRY


def test_a_receiver_may_ask_for_patience():
    def delay(seconds: float, n_failed: int = 0) -> float:
        decision = decide_next(Attempt(n_failed), fail(503, retry_after=seconds), NOW, 0.0)
        return (decision.attempt.next_at - NOW).total_seconds()

    assert delay(60) == 60
    assert delay(60, n_failed=3) == DELAYS[4]
    assert delay(1e9) == DELAYS[-1]


@given(attempts, results, dice)
def test_every_result_leads_somewhere(attempt, result, thrown):
    decision = decide_next(attempt, result, NOW, thrown)
    assert decision == decide_next(attempt, result, NOW, thrown)  # pure
    assert (decision.reason is not None) == (decision.verdict is Verdict.DISABLE)
    match decision.verdict:
        case Verdict.DELIVERED:
            assert result.status // 100 == 2
            assert decision.attempt == Attempt()
        case Verdict.RETRY:
            n_failed = attempt.n_failed + 1
            assert decision.attempt.n_failed == n_failed < len(DELAYS)
            wait = (decision.attempt.next_at - NOW).total_seconds()
            assert wait >= DELAYS[n_failed]
            least = max(DELAYS[n_failed] * 1.2, min(result.retry_after or 0, DELAYS[-1]))
            assert wait <= least + 1e-6
        case Verdict.DEAD:
            assert attempt.n_failed + 1 == len(DELAYS)
            assert decision.attempt.n_failed == 0
        case Verdict.DISABLE:
            assert decision.attempt.n_failed == attempt.n_failed + 1
    if decision.verdict is not Verdict.DELIVERED:
        assert decision.attempt.failing_since == (attempt.failing_since or NOW)
        assert decision.attempt.last_status == result.status


@given(st.lists(st.tuples(results, dice, st.integers(0, 10**6)), max_size=30))
def test_lives_never_go_astray(steps):
    """However results come: never more attempts than the schedule has, never a wait without end."""
    attempt, now = Attempt(), NOW
    policy = RetryPolicy(delays=(0.0, 1.0, 60.0), spread=0.5, disable_after=timedelta(days=2))
    for result, thrown, seconds in steps:
        now = max(now + timedelta(seconds=seconds), attempt.next_at or now)
        decision = decide_next(attempt, result, now, thrown, policy)
        attempt = decision.attempt
        if decision.verdict is Verdict.DISABLE:
            attempt = Attempt()  # as after it is resumed
        assert attempt.n_failed < 3
        if attempt.failing_since is not None:
            assert now - attempt.failing_since < timedelta(days=2)
        if attempt.next_at is not None:
            assert now <= attempt.next_at <= now + timedelta(seconds=90)
