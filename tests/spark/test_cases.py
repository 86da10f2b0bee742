"""Spark answers every case of `tests/cases`, in both meanings of missing."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

import tamis.spark as ts
from tamis.logic.evaluate import Missing
from tests.joined_cases import assert_matches, join_cases
from tests.spark.workloads import subscription_frame

pytestmark = [
    pytest.mark.slow,
    # What is reported about odd values is tested elsewhere.
    pytest.mark.filterwarnings("ignore::tamis.TamisWarning"),
]


@pytest.mark.parametrize("missing", Missing)
def test_every_case(spark, tmp_path, missing):
    joined = join_cases(missing)
    subscriptions = subscription_frame(spark, list(joined.texts.items()))
    report = ts.build(subscriptions, tmp_path / "i", schema=joined.schema, missing=missing, parts=2)
    assert report.n_rejects == 0
    rows = [(at, json.dumps(event)) for at, event in enumerate(joined.events)]
    events = spark.createDataFrame(rows, "id BIGINT, event STRING")
    found = defaultdict(list)
    for row in ts.match(events, tmp_path / "i", event_id="id", attributes="event").collect():
        found[row["event_id"]].append(row["subscription_id"])
    assert_matches(joined, [found[at] for at in range(len(rows))])
