"""Lint knows which results a function can have."""

from __future__ import annotations

import pytest

from tamis.language import Schema, check, parse
from tamis.logic.evaluate import Missing
from tamis.logic.lint import lint

SCHEMA = Schema.of("a STRING, ts TIMESTAMP, d DATE, tags ARRAY<STRING>, x DOUBLE, n INT")
NEVER = [
    "length(a) < 0",
    "length(a) = -1",
    "0 > length(a)",
    "hour(ts) > 24",
    "hour(ts) >= 24",
    "hour(ts) > 23",
    "minute(ts) = 60",
    "month(d) BETWEEN 13 AND 20",
    "dayofweek(ts) = 0",
    "weekday(d) = 7",
    "quarter(ts) IN (0, 5)",
    "size(tags) < 0",
    "abs(x) < 0",
    "regexp_count(a, 'x') < 0",
    "occurrences(a, 'x') <= -1",
    "contains(lower(a), 'X')",
    "startswith(upper(a), 'x')",
    "lower(a) LIKE 'X%'",
    "lower(a) LIKE '%x%Y_'",
]
REDUNDANT = [
    "length(a) >= 0",
    "hour(ts) < 24",
    "hour(ts) BETWEEN 0 AND 23",
    "month(d) <> 13",
    "month(d) NOT IN (0, 13)",
    "day(d) NOT BETWEEN 32 AND 40",
    "abs(x) > -1",
]
FINE = [
    "length(a) > 0",
    "length(a) <= 0",
    "hour(ts) >= 23",
    "hour(ts) < 23",
    "month(d) BETWEEN 12 AND 20",
    "month(ts) NOT BETWEEN 1 AND 12",  # true where it is missing, in one of the modes
    "month(d) IN (12, 13)",
    "dayofweek(ts) = 7",
    "abs(x) <= 0",
    "year(d) < 0",
    "negative(x) < 0",
    "n < 0",
    "contains(lower(a), 'x1É')",
    "contains(trim(a), ' x ')",
    "lower(a) LIKE 'x%_'",
    "lower(a) ILIKE 'X%'",
    "lower(a) NOT LIKE 'X%'",
]


def codes(text, missing):
    return {finding.code for finding in lint(check(parse(text), SCHEMA), missing)}


@pytest.mark.parametrize("missing", Missing)
@pytest.mark.parametrize("text", NEVER)
def test_never_true(text, missing):
    assert codes(text, missing) == {"never-true"}


@pytest.mark.parametrize("text", REDUNDANT)
def test_true_of_every_result(text):
    assert codes(text, Missing.UNDEFINED) == {"redundant"}


@pytest.mark.parametrize("missing", Missing)
@pytest.mark.parametrize("text", FINE)
def test_what_depends_on_the_event(text, missing):
    assert codes(text, missing) == set()


def test_the_range_is_shown():
    (found,) = lint(check(parse("hour(ts) > 24"), SCHEMA))
    assert found.message == "never true: no result is in that range"
    assert found.hint == "hour(ts) is 0 to 23"
    (found,) = lint(check(parse("lower(a) LIKE 'X%'"), SCHEMA))
    assert found.hint == "write the text as lower() returns it: 'x%'"
