"""One spelling of moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.moments import read_moment, spell_moment, spell_second

OSLO = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2030, 1, 31, 12, tzinfo=UTC), "2030-01-31T12:00:00Z"),
        (datetime(2030, 1, 31, 12, 0, 0, 50, tzinfo=UTC), "2030-01-31T12:00:00.000050Z"),
        (datetime(2030, 1, 31, 12, tzinfo=OSLO), "2030-01-31T10:00:00Z"),
    ],
)
def test_a_moment_is_spelled_in_utc(moment, text):
    assert spell_moment(moment) == text


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_is_spelled_is_read_again(moment):
    assert read_moment(spell_moment(moment)) == moment
    assert datetime.fromisoformat(spell_moment(moment)) == moment
    assert read_moment(spell_second(moment)) == moment.replace(microsecond=0)
