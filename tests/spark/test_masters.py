"""Where the jobs run besides a session of this process: spark-submit and Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

import tamis.__main__
from tamis.spark import choose_java
from tests.cli.shell import SOURCE
from tests.waiting import HANG_SECONDS

HOME = Path(pyspark.__file__).parent
SUBSCRIPTIONS = [("one", "a = 1"), ("more", "a > 0 AND b = 'u'"), ("bad", "a =")]
EVENTS = [{"id": "1", "a": 1, "b": "u"}, {"id": "2", "a": 2, "b": "v"}, {"id": "3", "b": "u"}]
PAIRS = [("1", "more"), ("1", "one")]


def environment() -> dict[str, str]:
    """As on a machine where Spark is set up."""
    return {
        **os.environ,
        "JAVA_HOME": str(choose_java().path),
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(SOURCE),
    }


@pytest.mark.soak
def test_a_pipeline_through_spark_submit_on_a_cluster(tmp_path):
    rows = [{"subscription_id": name, "expression": text} for name, text in SUBSCRIPTIONS]
    for name, own in (("subscriptions", rows), ("events", EVENTS)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in own))
    (tmp_path / "pipeline.toml").write_text(
        """
        [all]
        index = "index"
        events = "events.jsonl"
        event_id = "id"
        [build]
        subscriptions = "subscriptions.jsonl"
        parts = 2
        [audit]
        share = 1.0
        by = "spark"
        [match]
        output = "matches"
        """
    )
    done = subprocess.run(
        [
            HOME / "bin" / "spark-submit",
            *("--master", "local-cluster[2,1,1024]"),
            *("--conf", "spark.executor.memory=1g", "--conf", "spark.ui.enabled=false"),
            *("--conf", f"spark.executorEnv.PYTHONPATH={SOURCE}"),
            *(tamis.__main__.__file__, "spark", "--config", "pipeline.toml", "run"),
        ],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split()[-6:-1] == ["version", "rows", "seconds", "v00000001", "2"]
    table = pq.read_table(tmp_path / "matches").to_pylist()
    assert sorted(tuple(row.values()) for row in table) == PAIRS


CLIENT = """
import json, sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.remote("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.executorEnv.PYTHONPATH", sys.argv[2])
    .getOrCreate()
)
import tamis.spark as ts
import tamis.versions as tv
from tamis.errors import TamisError

index, results = sys.argv[1], {}
subscriptions = spark.createDataFrame(
    json.loads(sys.argv[3]), "subscription_id string, expression string"
)
events = spark.createDataFrame(json.loads(sys.argv[4]), "id string, a int, b string")


def rows(frame):
    return sorted([str(value) for value in row] for row in frame.collect())


results["built"] = ts.build(subscriptions, index, parts=2).n_subscriptions
results["pairs"] = rows(ts.match(events, index, event_id="id"))
results["split"] = rows(ts.match(events, index, event_id="id", groups=2))
results["counts"] = rows(ts.count_by_subscription(events, index))
results["rejects"] = ts.rejects(spark, index).count()
results["updated"] = ts.update(spark, index, removed=["one"]).n_subscriptions
old, new = tv.open_version(index, 1), tv.open_version(index)
results["diff"] = rows(ts.diff(events, old, new, event_id="id").counts)
results["backtest"] = rows(ts.backtest(events, index, event_id="id").totals.select("n"))
results["statistics"] = ts.save_statistics(events, index).name
for by in ("reference", "spark"):
    found = ts.audit(events, old, event_id="id", share=1.0, by=by)
    results[by] = found.n_disagreements
ts.register(spark, old)
events.withColumnRenamed("id", "event_id").createOrReplaceTempView("events")
results["table"] = rows(spark.sql("SELECT * FROM tamis_match(TABLE(events))"))
results["refused"] = []
for call in (
    lambda: ts.stream(events, index, "out", checkpoint="checkpoint"),
    lambda: ts.local_session(),
):
    try:
        call()
    except TamisError as error:
        results["refused"].append(str(error))
print(json.dumps(results))
spark.stop()
"""


@pytest.mark.soak
@pytest.mark.skipif(find_spec("grpc") is None, reason="needs tamis[connect]")
def test_spark_connect(tmp_path):
    events = [[event.get(name) for name in ("id", "a", "b")] for event in EVENTS]
    arguments = [
        str(tmp_path / "index"),
        str(SOURCE),
        json.dumps(SUBSCRIPTIONS),
        json.dumps(events),
    ]
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, *arguments],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    shown = json.loads(done.stdout.splitlines()[-1])
    stream, session = shown.pop("refused")
    assert stream.startswith("a match stream needs a classic session")
    assert session.startswith("a Spark session with other settings")
    pairs = [list(pair) for pair in PAIRS]
    assert shown == {
        "built": 2,
        "pairs": pairs,
        "split": pairs,
        "counts": [["more", "1"], ["one", "1"]],
        "rejects": 1,
        "updated": 1,
        "diff": [["one", "1", "0", "removed"]],
        "backtest": [["1"]],
        "statistics": "v00000003",
        "reference": 0,
        "spark": 0,
        "table": pairs,
    }
