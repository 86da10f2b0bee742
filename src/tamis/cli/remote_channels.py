"""`tamis remote channel`: mailboxes that subscriptions share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tamis.cli.console import make_console, print_columns, print_note, printable
from tamis.cli.options import output_option
from tamis.cli.output import print_json
from tamis.cli.remote import access_options, connecting, remote_group, ticket_option

if TYPE_CHECKING:
    from pathlib import Path


@remote_group.group("channel")
def channel_group() -> None:
    """Make, list, change and delete channels: mailboxes that subscriptions share."""


@channel_group.command("create")
@click.argument("name")
@click.argument("ids", metavar="[ID]…", nargs=-1)
@access_options
def create_command(
    name: str, ids: tuple[str, ...], server: str | None, key_file: Path | None
) -> None:
    """Make the channel NAME, with these subscriptions.

    Exit codes: 0 made; 1 the name is taken, a subscription is unknown, or the server cannot be
    used; 2 wrong usage.
    """
    with connecting(server, key_file) as client:
        client.create_channel(name, ids)
    make_console().print(f"made {printable(name)}: {len(ids):,} subscriptions")


@channel_group.command("list")
@access_options
@output_option
def list_command(server: str | None, key_file: Path | None, output: str) -> None:
    """List your channels, the oldest first; with the key of an admin, all.

    Exit codes: 0 listed, even if there are none; 1 the server cannot be used; 2 wrong usage.
    """
    with connecting(server, key_file) as client:
        found = list(client.channels())
    if output == "json":
        for own in found:
            print_json(own)
        return
    rows = [[printable(own["name"]), printable(own["owner"]), own["created"][:19]] for own in found]
    if rows:
        print_columns(make_console(), [["name", "owner", "created"], *rows])
    else:
        print_note("there are no channels")


@channel_group.command("add")
@click.argument("name")
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@ticket_option
@access_options
def add_command(
    name: str,
    ids: tuple[str, ...],
    ticket: str | None,
    server: str | None,
    key_file: Path | None,
) -> None:
    """Let subscriptions share the channel NAME. You must own them, or show their ticket.

    Exit codes: 0 added; 1 there is no such channel or subscription, or the server cannot be used;
    2 wrong usage.
    """
    with connecting(server, key_file) as client:
        n_added = client.add_to_channel(name, ids, ticket=ticket)
    make_console().print(f"added {n_added:,} to {printable(name)}")


@channel_group.command("remove")
@click.argument("name")
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@access_options
def remove_command(
    name: str, ids: tuple[str, ...], server: str | None, key_file: Path | None
) -> None:
    """Take subscriptions out of the channel NAME; they stay subscribed.

    Exit codes: 0 removed; 1 there is no such channel, or the server cannot be used; 2 wrong usage.
    """
    with connecting(server, key_file) as client:
        n_removed = client.remove_from_channel(name, ids)
    make_console().print(f"removed {n_removed:,} from {printable(name)}")


@channel_group.command("delete")
@click.argument("name")
@access_options
def delete_command(name: str, server: str | None, key_file: Path | None) -> None:
    """Delete the channel NAME; its subscriptions and their own mailboxes stay.

    Exit codes: 0 deleted; 1 there is no such channel, or the server cannot be used; 2 wrong usage.
    """
    with connecting(server, key_file) as client:
        client.delete_channel(name)
    make_console().print(f"deleted {printable(name)}")
