"""Options shared by the commands of `tamis spark`, and the inputs and outputs they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from tamis.cli.console import make_console, print_columns, print_note
from tamis.cli.spark_formats import READ_BY_SPARK
from tamis.cli.spark_io import Events, read_events, write_frame
from tamis.cli.spark_places import fill_date, fill_output, mark_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

_Command = TypeVar("_Command", bound="Callable[..., Any]")
FORMAT = click.Choice([str(known) for known in READ_BY_SPARK])
SHOWN = 20


class Publisher(click.Command):
    """A command that may publish a new current version."""


index_option = click.option(
    "--index",
    required=True,
    metavar="PATH",
    help="Use the index whose versions are in this folder.",
)
version_option = click.option(
    "--version", metavar="NAME", help="Use this version of the index instead of the current one."
)
at_option = click.option(
    "--at",
    callback=fill_date,
    metavar="MOMENT",
    help="Match the subscriptions that are valid at this moment "
    "(2030-01-31T12:00:00, in UTC) instead of now.",
)


def event_options(command: _Command) -> _Command:
    """Where the events are, and their layout."""
    for option in (
        click.option(
            "--attributes",
            metavar="COLUMN",
            help="Read whole events from this column, which holds structs, maps or JSON "
            "(Parquet only).",
        ),
        click.option("--event-id", metavar="COLUMN", help="Take the events' ids from this column."),
        click.option(
            "--events-format",
            type=FORMAT,
            help="Read the events in this format; by default the names and contents of the "
            "files decide.",
        ),
        click.option(
            "--events",
            required=True,
            callback=fill_date,
            metavar="PATH",
            help="Read the events of this file or folder. {date} in the path stands for "
            "the date of the run.",
        ),
    ):
        command = option(command)
    return command


def output_options(command: _Command) -> _Command:
    """Where the result goes."""
    for option in (
        click.option("--overwrite", is_flag=True, help="Replace an existing table."),
        click.option(
            "--output-format",
            type=FORMAT,
            help="Write the table in this format; by default its name decides.",
        ),
        click.option(
            "--output",
            callback=fill_output,
            metavar="PATH",
            help="Write the table to this path. {date} and {version} in the path stand for "
            "the date of the run and the version that is used.",
        ),
    ):
        command = option(command)
    return command


def spread_options(command: _Command) -> _Command:
    """How the work is distributed."""
    kinds = click.Choice(["auto", "replicate", "split", "product"])
    command = click.option(
        "--spread",
        type=kinds,
        default="auto",
        show_default=True,
        help="Choose how the work is divided: each task has all parts (replicate), a "
        "group of parts and all events (split), or a group of parts and a share "
        "of the events (product).",
    )(command)
    return click.option(
        "--groups",
        type=click.IntRange(min=1),
        help="Divide the parts into this number of groups; by default as few as fit in memory.",
    )(command)


def open_events(spark: SparkSession, options: dict[str, Any]) -> Events:
    """The events that the options name."""
    return read_events(
        spark,
        options["events"],
        options["events_format"],
        options["event_id"],
        options["attributes"],
    )


def note_missing(events: Events, parts: Any) -> None:
    """Print a note about attributes that the first events lack, if only values show it."""
    from tamis.match.unseen import MANY, describe_missing, find_likely

    if events.seen is None:
        return
    paths, n_events = events.seen
    has_many = n_events is None or n_events >= MANY
    uses, schema = parts.version.uses, parts.version.typed_schema()
    # Of some attributes, subscriptions test only the presence.
    valued = [path for path in uses if path in schema and schema[path].name != "any"]
    unseen = [path for path in valued if path not in paths]
    names = [path for path in paths if path not in uses]
    alike = find_likely(unseen, names, with_letters=has_many)
    missing = [path for path in unseen if has_many or path in alike]
    if missing:
        place = "the header" if n_events is None else f"the first {_count(n_events)}"
        print_note(describe_missing(missing, alike, uses, f"in {place}"))


def _count(n_events: int) -> str:
    return f"{n_events:,} event{'s' * (n_events != 1)}"


def where(events: Events) -> dict[str, Any]:
    """The arguments that describe the events to jobs."""
    return {"event_id": events.event_id, "attributes": events.attributes}


def open_parts(options: dict[str, Any]) -> Any:
    """The version that answers, with its operators."""
    from tamis.versions import open_version

    parts = open_version(options["index"], options["version"], options["at"])
    return parts.with_operators(options["operators"])


def rejects_option(help_text: str) -> Callable[[_Command], _Command]:
    """Where a table of rejects goes."""
    return click.option("--rejects", callback=fill_output, metavar="PATH", help=help_text)


def write_table(
    found: Any, options: dict[str, Any], name: str = "output", *, overwrite: bool = False
) -> None:
    """Write a table to the place that the option names."""
    write_frame(
        found,
        options[name],
        options["output_format"] if name == "output" else None,
        overwrite=overwrite or options["overwrite"],
        mark=mark_of(click.get_current_context()),
    )


def deliver(found: Any, options: dict[str, Any]) -> int | str:
    """Write the table and count its rows on the way, or show the first of them."""
    if not options["output"]:
        rows = found.limit(SHOWN).collect()
        table = [list(found.columns)] + [[str(value) for value in row] for row in rows]
        print_columns(make_console(), table)
        return len(rows) if len(rows) < SHOWN else f"{SHOWN} or more"
    return write_counted(found, options)


def write_counted(found: Any, options: dict[str, Any], name: str = "output") -> int:
    """Write a table to the place that the option names, and count its rows on the way."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    observed = Observation()
    counted = found.observe(observed, F.count(F.lit(1)).alias("n"))
    write_table(counted, options, name)
    return int(observed.get["n"])
