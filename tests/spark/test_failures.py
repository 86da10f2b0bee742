"""What Spark says of a failure, in one line; what a worker lacks."""

from __future__ import annotations

import importlib
import sys

import pytest
from pyspark.errors import PySparkException

from tamis.errors import MissingDependencyError
from tamis.spark.failures import raising_worker_errors, read_failure, shorten_failure
from tamis.spark.workers import WHAT_TO_DO, run_on_workers

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
    ("expected", "reason"),
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
def test_the_innermost_reason_is_said(expected, reason):
    assert shorten_failure(expected) == reason


@pytest.mark.parametrize("name", ["tamis", "tamis.spark.matching", "numba", "pyarrow"])
def test_what_workers_lack_is_recognised_in_a_message_of_sparks(name):
    lacking = read_failure(PYTHON.replace("'own'", f"'{name}'"))
    assert isinstance(lacking, MissingDependencyError)
    assert lacking.message == f"Spark's Python workers have no module '{name}'"
    assert "spark.archives" in lacking.hint


def test_a_module_of_the_users_is_not_ours_to_explain():
    assert read_failure(PYTHON) is None
    assert read_failure(PYTHON.replace("'own'", "'tamis_of_ours'")) is None


@pytest.fixture
def lonely(tmp_path, monkeypatch):
    """A module that the driver has and workers lack."""
    (tmp_path / "tamis_lonely.py").write_text("def run(batches):\n    yield from batches\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("tamis_lonely")
    del sys.modules["tamis_lonely"]


def test_a_worker_says_itself_what_it_lacks(spark, lonely):
    frame = run_on_workers(spark.range(1), lonely.run, "id bigint")
    said = f"Spark's Python workers have no module 'tamis_lonely'; {WHAT_TO_DO}"
    with pytest.raises(PySparkException) as raised:
        frame.collect()
    assert shorten_failure(str(raised.value)) == f"ModuleNotFoundError: {said}"
    with pytest.raises(MissingDependencyError) as explained, raising_worker_errors():
        frame.collect()
    assert explained.value.message == "Spark's Python workers have no module 'tamis_lonely'"
    assert explained.value.hint == WHAT_TO_DO
