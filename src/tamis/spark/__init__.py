"""And for a billion events? Transformations DataFrame → DataFrame, and the jobs that run them."""

from __future__ import annotations

from importlib.util import find_spec

from tamis.errors import MissingDependencyError

if find_spec("pyspark") is None:
    raise MissingDependencyError(
        "tamis.spark needs PySpark, which is not installed",
        hint="pip install 'tamis[spark]'",
    )

from tamis.spark.java import JavaHome, choose_java
from tamis.spark.jobs.build import BuildReport, build
from tamis.spark.reading import open_version
from tamis.spark.session import local_session
from tamis.spark.store import IndexStore, Retention
from tamis.spark.transforms import (
    count_by_event,
    count_by_subscription,
    event_rejects,
    match,
    match_lists,
    rejects,
    subscriptions,
)

__all__ = [
    "BuildReport",
    "IndexStore",
    "JavaHome",
    "Retention",
    "build",
    "choose_java",
    "count_by_event",
    "count_by_subscription",
    "event_rejects",
    "local_session",
    "match",
    "match_lists",
    "open_version",
    "rejects",
    "subscriptions",
]
