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
from tamis.spark.session import local_session

__all__ = ["JavaHome", "choose_java", "local_session"]
