"""Starts a Spark session on this machine, for callers without one."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from tamis.errors import TamisError
from tamis.spark.java import JavaHome, choose_java

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOOPBACK = "127.0.0.1"
LOGGING = Path(__file__).with_name("log4j2.properties")
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
REQUEST = "spark.tamis.localSession"  # the settings of a running session


def local_session(
    app_name: str = "tamis", cores: int | str = "*", **conf: str | int | bool
) -> SparkSession:
    """A quiet session in this process: loopback only, no UI, no files left behind.

    `app_name` is its name in Spark, `cores` the number of cores it uses (`"*"`: all). `conf` adds
    or replaces settings, `**{"spark.driver.memory": "4g"}`; Java options are added. A second call
    with the same arguments returns the running session.
    """
    given = {key: _to_text(value) for key, value in conf.items()}
    request = repr((app_name, str(cores), sorted(given.items())))
    running = running_session()
    if running is not None:
        return _reuse(running, request)
    settings = _settings(app_name, cores) | given | {REQUEST: request}
    settings[JAVA_OPTIONS] = f"{_java_options()} {given.get(JAVA_OPTIONS, '')}".strip()
    return _start(settings, choose_java())


def running_session() -> SparkSession | None:
    """The active session, or the default one; None if there is none."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _reuse(running: SparkSession, request: str) -> SparkSession:
    if running.conf.get(REQUEST, None) != request:
        name = running.conf.get("spark.app.name", None)  # a client has no SparkContext
        raise TamisError(
            f'a Spark session with other settings, "{name}", is already '
            "running in this process; only one is possible",
            hint="use that session, or call its stop() first",
        )
    return running


def _settings(app_name: str, cores: int | str) -> dict[str, str]:
    return {
        "spark.app.name": app_name,
        "spark.master": f"local[{cores}]",
        "spark.api.mode": "classic",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark keeps the plans of 1,000 queries for the UI, which is off; large ones fill the heap.
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.sql.warehouse.dir": _temporary_warehouse(),
        # The meaning of an expression must not depend on the machine or on a shell variable: these
        # four are part of the language's contract.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.variable.substitute": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # The default of 200 is for clusters: on one machine it means 200 tiny tasks per shuffle.
        "spark.sql.shuffle.partitions": str(max(2, _count_cores(cores))),
    }


def _count_cores(cores: int | str) -> int:
    if cores == "*":
        return os.cpu_count() or 1
    if not str(cores).isdecimal() or int(cores) < 1:
        raise TamisError(f'cores is {cores!r}; a number of at least 1, or "*" for all, is allowed')
    return int(cores)


def _temporary_warehouse() -> str:
    # Spark would make a folder spark-warehouse in the user's working directory.
    directory = tempfile.mkdtemp(prefix="tamis-warehouse-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def _java_options() -> str:
    return f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"


def _start(settings: Mapping[str, str], java: JavaHome) -> SparkSession:
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _environment(_start_variables(java)):
        try:
            return builder.getOrCreate()
        except PySparkRuntimeError as error:
            raise TamisError(
                f"Spark does not start with Java {java.version} ({java.source}, {java.path})",
                hint="see the lines above; spark-submit needs bash on PATH",
            ) from error


def _start_variables(java: JavaHome) -> dict[str, str | None]:
    variables: dict[str, str | None] = {
        "JAVA_HOME": str(java.path),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_REMOTE": None,  # would make this a client of a remote session
    }
    home = Path(pyspark.__file__).parent
    if (home / "bin" / "spark-submit").is_file():
        # The Spark of this pyspark, regardless of SPARK_HOME.
        variables["SPARK_HOME"] = str(home)
    return variables


@contextmanager
def _environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set (or, for None, unset) environment variables inside the block only."""
    before = {name: os.environ.get(name) for name in variables}
    _set_variables(variables)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _to_text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
