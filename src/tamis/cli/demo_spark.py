"""The last part of `tamis demo`: the same subscriptions and events, on Spark."""

from __future__ import annotations

import tempfile
import time
from typing import TYPE_CHECKING, Any

from tamis.cli.console import StatusLine, print_columns
from tamis.cli.spark_io import read_events, read_subscriptions
from tamis.errors import TamisError
from tamis.input.formats import Format

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from rich.console import Console

    from tamis.language.schema import Schema

Pairs = set[tuple[str, str]]


def show_spark(console: Console, samples: Path, schema: Schema, expected: Pairs) -> bool:
    """Build and match on Spark, and compare; returns False only if Spark found other pairs."""
    started = time.perf_counter()
    try:
        with StatusLine().ticking(lambda seconds: f"starting Spark: {seconds:.0f} s"):
            spark = _start()
    except TamisError as error:
        console.print(f"Spark does not run here: {error.message}")
        if error.hint:
            console.print(f"hint: {error.hint}")
        return True
    ready = time.perf_counter()
    try:
        with StatusLine().ticking(lambda seconds: f"building and matching: {seconds:.0f} s"):
            report, found = _run(spark, samples, schema)
    finally:
        _stop(spark)
    done = time.perf_counter()
    print_columns(
        console,
        [
            ["version", "subscriptions", "rejects", "parts", "matches"],
            [
                *(report.version.name, str(report.n_subscriptions), str(report.n_rejects)),
                *(str(report.n_parts), str(len(found))),
            ],
        ],
    )
    console.print(
        f"\nSpark started in {ready - started:.1f} s; its workers built a version of the index "
        f"and matched the events\nin {done - ready:.1f} s. A billion events take the same two "
        "calls."
    )
    if found == expected:
        console.print(f"It finds the same {len(found)} pairs of event and subscription.")
        return True
    console.print(f"It should have found {len(expected)} pairs; different: {found ^ expected}")
    return False


def _start() -> SparkSession:
    from tamis.spark import local_session

    return local_session("tamis-demo")


def _stop(spark: SparkSession) -> None:
    spark.stop()


def _run(spark: SparkSession, samples: Path, schema: Schema) -> tuple[Any, Pairs]:
    import tamis.spark as pipeline
    from tamis.spark.failures import raising_worker_errors

    with tempfile.TemporaryDirectory(prefix="tamis-demo-") as folder, raising_worker_errors():
        subscriptions = read_subscriptions(
            spark, str(samples / "subscriptions.jsonl"), Format.JSONL
        )
        report = pipeline.build(subscriptions, folder, schema=schema)
        events = read_events(spark, str(samples / "events.jsonl"), Format.JSONL, "event_id", None)
        found = pipeline.match(
            events.frame, folder, event_id=events.event_id, attributes=events.attributes
        )
        return report, {(row["event_id"], row["subscription_id"]) for row in found.collect()}
