"""What can be known to fail of a pipeline (`tamis spark run`), before its first step.

A step that fails after another has published leaves a night half done: a mistake in the file is
found before anything is built, matched or written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.cli.options import split_names
from tamis.cli.spark_formats import expect_input
from tamis.cli.spark_io import read_subscriptions
from tamis.cli.spark_places import OUTPUTS, expect_outputs
from tamis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import click
    from pyspark.sql import SparkSession

BUILD: Final = "build"
STREAM: Final = "stream"
PUBLISHERS: Final = (BUILD, "stats", "roll-back")  # steps after which another version may answer
INPUTS: Final = ("subscriptions", "events")


def check_steps(steps: Iterable[click.Context]) -> None:
    """Refuse inputs that are not there, and places where tables must not be written."""
    taken: dict[str, str] = {}
    published: set[str] = set()  # indexes that will have a version that is not there yet
    for step in steps:
        options, own = dict(step.params), step.info_name or ""
        index = options["index"]
        for name in INPUTS:
            path = options.get(name)
            if path and path not in taken:  # else an earlier step writes it
                expect_input(path, f"[{own}] {name}")
        if own != STREAM:  # which adds to what is there
            expect_outputs(step, options)
        if index not in published and not (own == BUILD and not options["update"]):
            version = _open(options)  # raises an error if it is not there
            if own not in PUBLISHERS:
                expect_outputs(step, options, version.name)
        for path in filter(None, map(options.get, OUTPUTS)):
            if path in taken:
                raise InputError(f"{taken[path]} and {own} write to the same place: {path}")
            taken[path] = own
        if own in PUBLISHERS:
            published.add(index)


def check_columns(steps: Sequence[click.Context], session: SparkSession) -> None:
    """Refuse columns of subscriptions (`with`) that the version a step asks will not have."""
    from tamis.match.details import expect_columns
    from tamis.spark.transforms import TYPES

    known: dict[str, list[str]] = {}  # by index
    asked = {step.params["index"] for step in steps if step.params.get("columns")}
    for step in steps:
        options = step.params
        index = options["index"]
        if index not in asked:
            continue
        if step.info_name == BUILD:
            kept = _columns_of(options) if options["update"] else []
            known[index] = kept + _read_columns(options, session)
        elif options.get("columns"):
            # A version that is named is one that is there already.
            is_new = index in known and not options["version"]
            names = known[index] if is_new else _columns_of(options)
            expect_columns(split_names(options["columns"]), (*TYPES, *names))


def _read_columns(options: dict[str, Any], session: SparkSession) -> list[str]:
    """The columns of subscriptions that a build reads."""
    if not options["subscriptions"]:
        return []
    frame = read_subscriptions(session, options["subscriptions"], options["subscriptions_format"])
    return list(frame.columns)


def _columns_of(options: dict[str, Any]) -> list[str]:
    found: list[str] = _open(options).columns
    return found


def _open(options: dict[str, Any]) -> Any:
    from tamis.spark import open_version

    # The later of the two versions, for a diff.
    asked = options.get("after") or options.get("version")
    return open_version(options["index"], asked).version
