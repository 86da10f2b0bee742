"""What all tests share: the seed, the number of examples, one Spark session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tamis.operators.lookup import HttpLookup
from tamis.operators.registry import operator
from tests.effort import EFFORT, SEED, examples
from tests.waiting import HANG_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

SPARK_SETTINGS = {
    "spark.driver.memory": "2g",  # one session serves thousands of tests
    # Tests are short: compiling quickly beats compiling well.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    # Spark's parser remembers what it has seen of all texts, and those of tests are random: without
    # a limit, this fills the memory, and the collector of garbage takes all the time.
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushThreshold": "20000",  # states of 10 kB
    # Functions of test modules reach the workers by name.
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
}

# Examples are judged by what they find, not by how long this machine takes: the first call of a
# kernel compiles it.
settings.register_profile(
    "tamis",
    max_examples=examples(100),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tamis")

# Nor are operators given up because the machine is busy: a test about that names its limit.
for function in (operator, HttpLookup.__init__):
    function.__kwdefaults__["timeout"] = HANG_SECONDS


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # Before Hypothesis reads its option; --hypothesis-seed on the command line wins.
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(SEED)
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        # Kernels run as plain Python: hashes wrap around silently when compiled, NumPy warns.
        ignored = r"ignore:overflow encountered in scalar:RuntimeWarning:tamis\..*kernels"
        config.addinivalue_line("filterwarnings", ignored)


def pytest_report_header(config: pytest.Config) -> str:
    return f"tamis: TAMIS_SEED={config.option.hypothesis_seed} TAMIS_EFFORT={EFFORT}"


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """The seed for a test's own random numbers."""
    return int(pytestconfig.option.hypothesis_seed)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the run."""
    from tamis.spark import local_session

    session = local_session("tamis-tests", **SPARK_SETTINGS)
    yield session
    session.stop()


@pytest.fixture
def shell_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """The session of the run, which commands of `tamis spark` use too and leave open."""
    monkeypatch.setattr("tamis.cli.spark._local", lambda context: spark)
    for module in ("spark", "spark_commands"):
        monkeypatch.setattr(f"tamis.cli.{module}.close_session", lambda session: None)
    return spark
