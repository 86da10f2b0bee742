"""`tamis spark versions, roll-back`: lists versions, and publishes an older one again."""

from __future__ import annotations

import click

from tamis.cli.console import make_console
from tamis.cli.spark import spark_group
from tamis.cli.spark_options import Publisher, index_option


@spark_group.command("versions")
@index_option
def versions_command(index: str) -> None:
    """List the versions of an index, oldest first.

    Exit codes: 0 listed; 1 there is none; 2 wrong usage.
    """
    from tamis.versions import versions

    make_console().print(repr(versions(index)))


@spark_group.command("roll-back", cls=Publisher)
@index_option
@click.option(
    "--to",
    "which",
    required=True,
    metavar="NAME",
    help="Publish this version again, such as v00000012.",
)
def roll_back_command(index: str, which: str) -> None:
    """Publish an older version again, as the newest one.

    Exit codes: 0 published; 1 it does not exist or is damaged; 2 wrong usage.
    """
    from tamis.versions import roll_back

    make_console().print(repr(roll_back(index, which)))
