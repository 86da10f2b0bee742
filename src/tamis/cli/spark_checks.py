"""Checks a pipeline (`tamis spark run`) for errors before its first step.

A step that fails after another has published leaves a run half done, so a mistake in the file is
reported before anything is built, matched or written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.cli.options import split_names
from tamis.cli.spark_formats import expect_input, find_format
from tamis.cli.spark_io import read_subscriptions
from tamis.cli.spark_options import Publisher
from tamis.cli.spark_places import OUTPUTS, expect_outputs
from tamis.errors import InputError
from tamis.input.rows import Columns
from tamis.places import holds_subscriptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import click
    from pyspark.sql import SparkSession

BUILD: Final = "build"
STREAM: Final = "stream"
SUBSCRIPTIONS: Final = "subscriptions"
INPUTS: Final = (SUBSCRIPTIONS, "events")


def check_steps(steps: Iterable[click.Context]) -> None:
    """Raise an error for inputs that are missing or whose format is unclear, and for places where
    tables must not be written.
    """
    taken: dict[str, str] = {}
    published: set[str] = set()  # indexes that will have a version later
    for step in steps:
        options, own = dict(step.params), step.info_name or ""
        is_publisher = isinstance(step.command, Publisher)
        index = options["index"]
        for name in INPUTS:
            path = options.get(name)
            # A store, or a table that an earlier step writes, is not looked for.
            if path and path not in taken and not _is_store(name, path):
                expect_input(path, f"[{own}] {name}")
                find_format(path, options[f"{name}_format"], f"--{name}-format")
        if own != STREAM:  # which adds to existing tables
            expect_outputs(step, options)
        if index not in published and not (own == BUILD and not options["update"]):
            version = _open(options)  # raises an error if it does not exist
            if not is_publisher:
                expect_outputs(step, options, version.name)
        for path in filter(None, map(options.get, OUTPUTS)):
            if path in taken:
                raise InputError(f"{taken[path]} and {own} write to the same place: {path}")
            taken[path] = own
        if is_publisher:
            published.add(index)


def check_columns(steps: Sequence[click.Context], session: SparkSession) -> None:
    """Raise an error for columns of subscriptions (`with`) that the version of a step will not
    have.
    """
    from tamis.match.details import expect_columns
    from tamis.spark.transforms import TYPES

    known: dict[str, list[str] | None] = {}  # by index; None: unknown
    written: set[str] = set()
    asked = {step.params["index"] for step in steps if step.params.get("columns")}
    for step in steps:
        options = step.params
        index = options["index"]
        if step.info_name == BUILD and index in asked:
            kept: list[str] | None = []
            if options["update"]:
                kept = known[index] if index in known else _columns_of(options)
            is_made = options["subscriptions"] in written  # by a step that has not run yet
            read = None if is_made else _read_columns(options, session)
            known[index] = None if kept is None or read is None else kept + read
        elif options.get("columns"):
            names = known[index] if index in known else _columns_of(options)
            # A named version may be one that a step publishes.
            if names is not None and not (options["version"] and index in known):
                expect_columns(split_names(options["columns"]), (*TYPES, *names))
        written.update(filter(None, map(options.get, OUTPUTS)))


def _read_columns(options: dict[str, Any], session: SparkSession) -> list[str] | None:
    """The columns of subscriptions that a build stores as attributes; None if unknown."""
    from tamis.spark.jobs.rows import FOUND

    if not options["subscriptions"]:
        return []
    if _is_store(SUBSCRIPTIONS, options["subscriptions"]):
        return None  # each subscription has its own attributes
    frame = read_subscriptions(session, options["subscriptions"], options["subscriptions_format"])
    own = Columns(options["id_column"], options["expression_column"]).find(frame.columns)
    return [name for name in frame.columns if name not in (FOUND, *own)]


def _is_store(name: str, path: str) -> bool:
    return name == SUBSCRIPTIONS and holds_subscriptions(path)


def _columns_of(options: dict[str, Any]) -> list[str]:
    found: list[str] = _open(options).columns
    return found


def _open(options: dict[str, Any]) -> Any:
    from tamis.versions import open_version

    # The later of the two versions, for a diff.
    asked = options.get("after") or options.get("version")
    return open_version(options["index"], asked).version
