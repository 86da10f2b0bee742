"""`tamis spark`: the jobs of the data pipeline, on the command line or through spark-submit."""

from __future__ import annotations

import os
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tamis.cli.console import LOG_EVERY_SECONDS, StatusLine, make_console, print_columns
from tamis.cli.spark_places import read_date
from tamis.errors import InputError, TamisError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

COMMON: Final = "all"
SESSION: Final = "spark"
STEPS: Final = "steps"
RUN: Final = "run"
DEBUG: Final = "debug"
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
# The setting of `log4j2.properties` of tamis.spark.
QUIET_OPTIONS: Final = "-Dtamis.log.level=off"
DEBUG_OPTIONS: Final = "-Dtamis.log.trace=full"
# Required by the meaning of expressions; a session of spark-submit may have other settings.
CONTRACT: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
}


@click.group("spark")
@click.option(
    "--config",
    "config_file",
    metavar="FILE.toml",
    help="Read a pipeline from this file: a table of options for each command, and"
    " [all] for all of them. Options on the command line take precedence.",
)
@click.option(
    "--date",
    metavar="YYYY-MM-DD",
    help="Replace {date} in paths by this date; by default today in UTC.",
)
@click.option(
    "--cores",
    metavar="N|*",
    default="*",
    show_default=True,
    help="Use this number of this machine's cores.",
)
@click.option(
    "--memory", metavar="SIZE", help="Give Spark on this machine this much memory, such as 4g."
)
@click.option(
    "--conf",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set an option of Spark itself. The option can be repeated.",
)
@click.option("--debug", is_flag=True, help="Show Spark's log and the whole trace of a failure.")
@click.pass_context
def spark_group(  # noqa: PLR0913 - the options of all commands
    context: click.Context,
    config_file: str | None,
    date: str | None,
    cores: str,
    memory: str | None,
    conf: tuple[str, ...],
    debug: bool,
) -> None:
    """Build, match and compare in bulk, on this machine or on a cluster.

    `spark-submit --master …` runs the same commands on a cluster.
    """
    config = {} if config_file is None else read_config(config_file, context)
    steps = config.pop(STEPS, {})
    settings = {str(key): str(value) for key, value in config.pop(SESSION, {}).items()}
    for pair in conf:
        key, is_pair, value = pair.partition("=")
        if not is_pair:
            raise click.UsageError(f"--conf {pair}: write KEY=VALUE")
        settings[key] = value
    if memory:
        settings["spark.driver.memory"] = memory
    context.default_map = config
    context.obj = {
        "cores": cores,
        "settings": settings,
        "steps": list(steps),
        "date": read_date(date),
        DEBUG: debug,
    }


def read_config(file: str, context: click.Context) -> dict[str, dict[str, Any]]:
    """The tables of a pipeline's file, with the common one merged into each command's."""
    try:
        tables = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:  # of the text's encoding or of TOML
        raise InputError(f"{file} is not TOML: {error}") from None
    group = context.command
    assert isinstance(group, click.Group)
    commands = {name: command for name, command in group.commands.items() if name != RUN}
    for name, table in tables.items():
        _expect_known(file, "table", name, [COMMON, SESSION, *commands])
        if not isinstance(table, dict):
            raise InputError(f"{file}: {name} is not a table; write [{name}]")
    common = tables.pop(COMMON, {})
    known = {name: _options(command) for name, command in commands.items()}
    for key in common:
        _expect_known(file, "option", key, sorted({o for own in known.values() for o in own}))
    config: dict[str, dict[str, Any]] = {SESSION: tables.pop(SESSION, {})}
    config[STEPS] = dict(tables)  # in the order of the file
    for name, names in known.items():
        for key in tables.get(name, {}):
            _expect_known(file, f"option of [{name}]", key, list(names))
        merged = {**common, **tables.get(name, {})}
        config[name] = {names[key]: value for key, value in merged.items() if key in names}
    return config


def _options(command: click.Command) -> dict[str, str]:
    """The parameters by the names of their options: --event-id is event_id."""
    return {
        own.opts[-1].lstrip("-").replace("-", "_"): own.name for own in command.params if own.name
    }


def _expect_known(file: str, what: str, name: str, known: list[str]) -> None:
    if name not in known:
        likely = suggest(name, known)
        raise InputError(
            f'{file}: unknown {what} "{name}"; known: {", ".join(known)}',
            hint=f'did you mean "{likely}"?' if likely else None,
        )


# ── the session ─────────────────────────────────────────────────────────────────────────────


@contextmanager
def spark_session(
    context: click.Context, describe: Callable[[], str] | None = None
) -> Iterator[SparkSession]:
    """The session that spark-submit prepared, or a quiet one on this machine; with progress.

    `describe` returns the progress of the job; without it the tasks of Spark are counted.
    """
    from tamis.spark.failures import raising_worker_errors

    shared = context.obj.get(SESSION)
    session = shared or open_session(context)
    try:
        with _shortening(context), _progress(context, session, describe), raising_worker_errors():
            yield session
    finally:
        if shared is None:
            close_session(session)


@contextmanager
def _shortening(context: click.Context) -> Iterator[None]:
    """Report why Spark failed in one line; with --debug, also the traces of Java and Python."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from tamis.spark.failures import shorten_failure

    try:
        yield
    except (PySparkException, Py4JError) as error:
        if context.obj[DEBUG]:
            raise
        reason = shorten_failure(str(error))
        hint = "tamis spark --debug … shows the whole trace"
        raise TamisError(f"Spark failed: {reason}", hint=hint) from None


def open_session(context: click.Context) -> SparkSession:
    """A session that is still open."""
    return _submitted() if "PYSPARK_GATEWAY_PORT" in os.environ else _local(context)


def close_session(session: SparkSession) -> None:
    """Stop it."""
    session.stop()


def _local(context: click.Context) -> SparkSession:
    from tamis.spark import local_session

    if os.environ.get("SPARK_REMOTE"):
        raise InputError(
            "SPARK_REMOTE is set, but the commands need a classic session",
            hint="unset it; with Spark Connect, call tamis.spark's functions from Python",
        )
    given = context.obj
    settings = dict(given["settings"])
    options = DEBUG_OPTIONS if given[DEBUG] else QUIET_OPTIONS
    settings[JAVA_OPTIONS] = f"{options} {settings.get(JAVA_OPTIONS, '')}".strip()
    return local_session("tamis", given["cores"], **settings)


def _submitted() -> SparkSession:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    for key, value in CONTRACT.items():
        session.conf.set(key, value)
    return session


@contextmanager
def _progress(
    context: click.Context, session: SparkSession, describe: Callable[[], str] | None
) -> Iterator[None]:
    tracker = session.sparkContext.statusTracker()

    def count_tasks() -> str:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        done = [f"{own.numCompletedTasks}/{own.numTasks} tasks" for own in stages if own]
        return ", ".join(done) or "preparing"

    def show(seconds: float) -> str:
        return f"{context.info_name}, {seconds:.0f} s: {(describe or count_tasks)()}"

    with StatusLine(LOG_EVERY_SECONDS).ticking(show):
        yield


def print_summary(numbers: dict[str, Any]) -> None:
    """One line of numbers under their names."""
    shown = [f"{value:,}" if isinstance(value, int) else str(value) for value in numbers.values()]
    print_columns(make_console(), [list(numbers), shown])
