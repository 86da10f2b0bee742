"""`tamis dot`: a picture of a subscription in the shared DAG, for Graphviz."""

from __future__ import annotations

import click

import tamis
from tamis.cli.arguments import refuse_swapped
from tamis.cli.options import opening_options
from tamis.cli.output import print_data


@click.command("dot")
@click.argument("index_path", metavar="INDEX")
@click.argument("subscription_id")
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    help="Draw this number of levels below the root; by default all.",
)
@opening_options
def dot_command(  # noqa: PLR0913 - one parameter per option
    index_path: str,
    subscription_id: str,
    depth: int | None,
    trusted: bool,
    key: bytes | None,
    version: str | None,
) -> None:
    """Write the nodes of SUBSCRIPTION_ID, and the subscriptions that share them, as Graphviz text.

    tamis dot ads.tamis s17 | dot -Tsvg > s17.svg

    Exit codes: 0 written, 1 no such index or subscription, 2 wrong usage.
    """
    from tamis.index.dot import to_dot

    refuse_swapped(index_path, subscription_id)
    index = tamis.open(index_path, version=version, trusted=trusted, key=key, operators=None)
    number, ordinal = index.view.catalogue.place(index.ordinal(subscription_id))
    print_data(to_dot(index.parts[number], ordinal, depth))
