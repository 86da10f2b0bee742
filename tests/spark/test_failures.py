"""What Spark says of a failure, in one line."""

from __future__ import annotations

import pytest

from tamis.spark.failures import shorten_failure

JAVA = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure:
org.apache.spark.SparkException: Encountered error
\tat org.apache.spark.executor.Executor.run(Executor.scala:1)
Caused by: java.lang.RuntimeException: file:/e.parquet is not a Parquet file
\tat org.apache.parquet.ParquetFileReader.read(ParquetFileReader.java:1)
\t... 20 more
"""
PYTHON = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
ModuleNotFoundError: No module named 'own'

\tat org.apache.spark.api.python.BasePythonRunner.run(PythonRunner.scala:1)
"""


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (JAVA, "RuntimeException: file:/e.parquet is not a Parquet file"),
        (PYTHON, "ModuleNotFoundError: No module named 'own'"),
        ("[PATH_NOT_FOUND] no such path\nmore", "[PATH_NOT_FOUND] no such path"),
        (
            "java.lang.OutOfMemoryError: Java heap space\n\tat x",
            "OutOfMemoryError: Java heap space",
        ),
    ],
)
def test_the_innermost_reason_is_said(told, reason):
    assert shorten_failure(told) == reason
