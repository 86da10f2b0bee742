"""`tamis spark versions, roll-back`: which versions there are, and which one answers."""

from __future__ import annotations

from typing import Any

import click

from tamis.cli.console import make_console
from tamis.cli.spark import spark_group
from tamis.cli.spark_options import index_option


@spark_group.command("versions")
@index_option
def versions_command(index: str) -> None:
    """List the versions of an index, oldest first.

    Exit codes: 0 listed; 1 there is none; 2 wrong usage.
    """
    store = _open(index)
    store.expect_versions()
    found = store.versions()
    if not found:
        store.current()  # raises an error that says what is there
    make_console().print(repr(found))


@spark_group.command("roll-back")
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

    Exit codes: 0 it answers now; 1 it is not there or not whole; 2 wrong usage.
    """
    make_console().print(repr(_open(index).roll_back(which)))


def _open(index: str) -> Any:
    from tamis.spark import IndexStore

    return IndexStore(index)
