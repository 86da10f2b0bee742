"""What Spark publishes is opened without Spark, and answers as Spark does."""

from __future__ import annotations

from datetime import UTC, datetime

import tamis
import tamis.spark as ts
import tamis.versions as tv

SUBSCRIPTIONS = "subscription_id string, expression string, owner string, valid_until timestamp"
MOMENT = datetime(2100, 1, 1, tzinfo=UTC)
EVENTS = [(n, n % 7, "xyz"[n % 3]) for n in range(60)]


def pairs_by_spark(spark, index, at) -> list[tuple[int, str]]:
    events = spark.createDataFrame(EVENTS, "id int, a int, b string")
    rows = ts.match(events, index, event_id="id", attributes=["a", "b"], at=at).collect()
    return sorted((row["event_id"], row["subscription_id"]) for row in rows)


def pairs_here(index: tamis.Index, at) -> list[tuple[int, str]]:
    events = [{"id": number, "a": a, "b": b} for number, a, b in EVENTS]
    rows = index.match_batch(events, event_id="id", at=at).to_pylist()
    return sorted((row["event_id"], row["subscription_id"]) for row in rows)


def test_versions_answer_as_on_spark(spark, tmp_path):
    path = tmp_path / "index"
    rows = [(f"s{n}", f"a >= {n % 7}", f"o{n}", MOMENT if n % 4 == 0 else None) for n in range(30)]
    ts.build(spark.createDataFrame(rows, SUBSCRIPTIONS), path, parts=3)
    changed = [("s1", "b = 'x'", "new", None), ("more", "a = 3 AND b <> 'z'", "new", None)]
    frame = spark.createDataFrame(changed, SUBSCRIPTIONS)
    ts.update(spark, path, frame, removed=["s2", "s3"])
    ts.update(spark, path, spark.createDataFrame([rows[2]], SUBSCRIPTIONS), removed=["more"])
    for version in tv.versions(path):
        index = tamis.open(path, version=version.name)
        assert (index.version, len(index)) == (version.name, version.n_subscriptions)
        for at in (datetime.now(UTC), MOMENT):
            found = pairs_here(index, at)
            assert found == pairs_by_spark(spark, tv.open_version(path, version.name), at)
            assert found
    assert tamis.open(path).attributes("s1") == {"owner": "new"}
