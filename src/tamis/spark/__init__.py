"""How are a billion events matched? Transformations DataFrame → DataFrame, and jobs that run
them.
"""

from __future__ import annotations

from importlib.util import find_spec

from tamis.errors import MissingDependencyError

if find_spec("pyspark") is None:
    raise MissingDependencyError(
        "tamis.spark needs PySpark, which is not installed",
        hint="pip install 'tamis[spark]'",
    )

from tamis.spark.java import JavaHome, choose_java
from tamis.spark.jobs.audit import Audit, audit
from tamis.spark.jobs.backtest import Backtest, ChangedBacktest, backtest
from tamis.spark.jobs.build import BuildReport, build
from tamis.spark.jobs.diff import Diff, diff
from tamis.spark.jobs.stats import compute_statistics, save_statistics
from tamis.spark.jobs.stream import BatchReport, stream
from tamis.spark.jobs.update import compact, update
from tamis.spark.kafka import register_kafka
from tamis.spark.listener import MetricsListener, StreamMetrics
from tamis.spark.operators import LearnedStatistics, save_operator_statistics
from tamis.spark.session import local_session
from tamis.spark.sql import register
from tamis.spark.transforms import (
    count_by_event,
    count_by_subscription,
    count_terms,
    event_rejects,
    match,
    match_lists,
    rejects,
    subscriptions,
)

__all__ = [
    "Audit",
    "Backtest",
    "BatchReport",
    "BuildReport",
    "ChangedBacktest",
    "Diff",
    "JavaHome",
    "LearnedStatistics",
    "MetricsListener",
    "StreamMetrics",
    "audit",
    "backtest",
    "build",
    "choose_java",
    "compact",
    "compute_statistics",
    "count_by_event",
    "count_by_subscription",
    "count_terms",
    "diff",
    "event_rejects",
    "local_session",
    "match",
    "match_lists",
    "register",
    "register_kafka",
    "rejects",
    "save_operator_statistics",
    "save_statistics",
    "stream",
    "subscriptions",
    "update",
]
