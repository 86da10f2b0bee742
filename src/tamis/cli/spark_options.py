"""What the commands of `tamis spark` share: their options, what these open, where results go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from tamis.cli.console import make_console, print_columns
from tamis.cli.spark_formats import FORMATS
from tamis.cli.spark_io import Events, read_events, write_frame
from tamis.cli.spark_places import fill_date, fill_output, mark_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

_Command = TypeVar("_Command", bound="Callable[..., Any]")
FORMAT = click.Choice(list(FORMATS))
SHOWN = 20

index_option = click.option(
    "--index", required=True, metavar="PATH", help="The folder of the index's versions."
)
version_option = click.option("--version", metavar="NAME", help="Instead of the current one.")
at_option = click.option(
    "--at",
    callback=fill_date,
    metavar="MOMENT",
    help="Ask those that are valid then, in UTC, instead of now.",
)


def event_options(command: _Command) -> _Command:
    """Where the events are and what they look like."""
    for option in (
        click.option(
            "--attributes", metavar="COLUMN", help="The column with whole events, in Parquet."
        ),
        click.option("--event-id", metavar="COLUMN", help="The column with the events' ids."),
        click.option("--events-format", type=FORMAT, help="As the name tells, if not given."),
        click.option(
            "--events",
            required=True,
            callback=fill_date,
            metavar="PATH",
            help="A file or a folder; {date} in its name is that of the run.",
        ),
    ):
        command = option(command)
    return command


def output_options(command: _Command) -> _Command:
    """Where the result goes."""
    for option in (
        click.option("--overwrite", is_flag=True, help="Replace what is there."),
        click.option("--output-format", type=FORMAT, help="As the name tells, if not given."),
        click.option(
            "--output",
            callback=fill_output,
            metavar="PATH",
            help="Write the table there; {date} and {version} in the path are filled in.",
        ),
    ):
        command = option(command)
    return command


def spread_options(command: _Command) -> _Command:
    """How the work is spread."""
    kinds = click.Choice(["auto", "replicate", "split", "product"])
    command = click.option("--spread", type=kinds, default="auto", show_default=True)(command)
    return click.option(
        "--groups", type=click.IntRange(min=1), help="Into how many groups of parts."
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


def where(events: Events) -> dict[str, Any]:
    """How jobs are told what events look like."""
    return {"event_id": events.event_id, "attributes": events.attributes}


def open_parts(options: dict[str, Any]) -> Any:
    """The version that answers, with its operators."""
    from tamis.spark import open_version

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
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    observed = Observation()
    counted = found.observe(observed, F.count(F.lit(1)).alias("n"))
    write_table(counted, options)
    return int(observed.get["n"])
