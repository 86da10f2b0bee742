"""The local Spark session: that it starts anywhere, says nothing, leaves nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tamis.errors import TamisError
from tamis.spark import local_session, session
from tests.conftest import SPARK_SETTINGS
from tests.waiting import HANG_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

# What Spark's shell scripts and its JVM call by name.
TOOLS = ["bash", "rm"]

FIRST_QUERY = """
import os

import pyarrow as pa

from tamis.spark import local_session


def keep_even(batches):
    for batch in batches:
        yield batch.filter(pa.array([n % 2 == 0 for n in batch["id"].to_pylist()]))


java_home = os.environ.get("JAVA_HOME")
# Only quick compilation: the query is short, and the machine may be busy.
spark = local_session(**{"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
assert os.environ.get("JAVA_HOME") == java_home
even = spark.range(1000).mapInArrow(keep_even, "id long")
rows = even.groupBy((even.id % 3).alias("remainder")).count().orderBy("remainder").collect()
print([tuple(row) for row in rows], spark.sparkContext.master)
print(spark.conf.get("spark.sql.warehouse.dir"))
"""


def keep_even(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows whose id is even."""
    import pyarrow as pa

    for batch in batches:
        yield batch.filter(pa.array([n % 2 == 0 for n in batch["id"].to_pylist()]))


def run_python(code: str, directory: Path, environment: dict[str, str] | None = None):
    """Run code in a new process, in this working directory."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )


def assert_first_query_runs(directory: Path, environment: dict[str, str]) -> None:
    """A session starts in an empty directory and shuffles; it says nothing and leaves nothing."""
    directory.mkdir()
    finished = run_python(FIRST_QUERY, directory, environment)
    assert finished.stderr == ""
    assert finished.returncode == 0
    result, warehouse = finished.stdout.splitlines()
    assert result == "[(0, 167), (1, 166), (2, 167)] local[*]"
    assert os.listdir(directory) == []
    assert not Path(warehouse.removeprefix("file:")).exists()


def test_starts_on_a_machine_without_java(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    environment = {"PATH": str(tools), "HOME": str(tmp_path)}
    assert_first_query_runs(tmp_path / "empty", environment)
    assert (tmp_path / ".cache" / "tamis" / "java").is_dir()


@pytest.mark.slow
def test_starts_with_the_java_of_the_machine(tmp_path):
    if shutil.which("java") is None:
        pytest.skip("this machine has no java on PATH")
    assert_first_query_runs(tmp_path / "empty", dict(os.environ))


def test_missing_pyspark_is_said(tmp_path):
    code = "import sys; sys.modules['pyspark'] = None; import tamis.spark"
    finished = run_python(code, tmp_path)
    assert finished.stderr.endswith(
        "MissingDependencyError: tamis.spark needs PySpark, which is not installed\n"
        "  hint: pip install 'tamis[spark]'\n"
    )


def test_java_that_cannot_run_spark_is_said(tmp_path):
    executable = tmp_path / "bin" / "java"
    executable.parent.mkdir()
    executable.write_text("""#!/bin/sh\n[ "$1" = -version ] && echo 'openjdk version "17"'\n""")
    executable.chmod(0o755)
    code = "from tamis.spark import local_session; local_session()"
    finished = run_python(code, tmp_path, os.environ | {"JAVA_HOME": str(tmp_path)})
    assert "TamisError: Spark does not start with Java 17 (JAVA_HOME, " in finished.stderr


@pytest.mark.parametrize("cores", [0, -1, "many", "2.5"])
def test_wrong_number_of_cores_is_said(monkeypatch, cores):
    monkeypatch.setattr(session, "running_session", lambda: None)
    with pytest.raises(TamisError, match=f"cores is {cores!r}; a number of at least 1"):
        local_session(cores=cores)


def test_function_of_a_test_module_reaches_the_workers(spark):
    even = spark.range(10).mapInArrow(keep_even, "id long")
    assert [row.id for row in even.collect()] == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("current_timezone()", "UTC"),
        ("'${spark.app.name}'", "${spark.app.name}"),
        ("try_cast('x' AS int)", None),
    ],
)
def test_expressions_mean_the_same_everywhere(spark, expression, value):
    assert spark.sql(f"SELECT {expression}").first()[0] == value


def test_ansi_errors_are_raised(spark):
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        spark.sql("SELECT CAST('x' AS int)").collect()


def test_names_differ_by_case(spark):
    frame = spark.sql("SELECT 1 AS a, 2 AS A")
    assert tuple(frame.select("A", "a").first()) == (2, 1)


def test_settings_are_added(spark):
    options = spark.conf.get("spark.driver.extraJavaOptions")
    assert "TieredStopAtLevel" in options
    assert "log4j2" in options


def test_same_request_returns_therunning_session(spark):
    assert local_session("tamis-tests", **SPARK_SETTINGS) is spark


def test_another_request_is_refused(spark):
    with pytest.raises(TamisError, match='"tamis-tests", is already running'):
        local_session("another")
