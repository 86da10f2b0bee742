"""`tamis serve`: runs a match server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.console import make_console, print_note
from tamis.errors import StoreInUseError

if TYPE_CHECKING:
    from tamis.server.settings import Settings


@click.command("serve")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--config", type=click.Path(path_type=Path), help="Read settings from this TOML file."
)
@click.option("--host", help="Listen on this address instead of 127.0.0.1.")
@click.option("--port", type=int, help="Listen on this port instead of 8080; 0 chooses a free one.")
@click.option("--store", help="Keep the subscriptions in this PostgreSQL database.")
@click.option("--operators", multiple=True, help="Import this module, which defines operators.")
@click.option(
    "--follow",
    metavar="ADDRESS",
    help="Only read, and follow the server at this address, which writes to the same FOLDER.",
)
@click.option("--matches", help="Deliver the matches that a Spark stream writes to this folder.")
@click.option("--versions", help="Publish the subscriptions in this folder, for a Spark stream.")
@click.option(
    "--check", is_flag=True, help="Print the settings that result, and do not start the server."
)
def serve_command(
    folder: Path | None,
    config: Path | None,
    operators: tuple[str, ...],
    check: bool,
    **flags: Any,
) -> None:
    """Serve subscriptions and matches over HTTP.

    FOLDER has everything that the server stores, by default tamis.server; it is created if it does
    not exist. Settings come from the file, then from environment variables such as
    TAMIS_SERVER_PORT, then from options.

    Exit codes: 0 it was stopped, or --check printed the settings; 1 a setting is wrong, or FOLDER
    or the port cannot be used; 2 wrong usage.
    """
    from tamis.server.settings_reading import environment, read_settings

    given = {
        "server.folder": folder,
        "server.host": flags["host"],
        "server.port": flags["port"],
        "server.follow": flags["follow"],
        "subscriptions.store": flags["store"],
        "subscriptions.operators": operators or None,
        "stream.matches": flags["matches"],
        "stream.versions": flags["versions"],
    }
    settings = read_settings(config, environment(), given)
    if check:
        _print_settings(settings)
        return
    from tamis.server import serve
    from tamis.server.logs import configure

    configure(settings)
    try:
        serve(settings, lambda url, is_open: _greet(settings, url, is_open), print_note)
    except StoreInUseError as error:
        raise StoreInUseError(error.message, hint=_find_way(settings)) from None


def _find_way(settings: Settings) -> str:
    """What to do if another process writes to the folder."""
    from tamis.server.server_file import read_presence

    folder = settings.server.folder
    running = read_presence(folder)
    if running is None:
        return "another server or command writes to it: stop that first, or name another folder"
    return (
        f"the server at {running.url} writes to it: stop that first, name another folder, or "
        f"start a server that only reads: tamis serve {folder} --port 0 --follow {running.url}"
    )


def _print_settings(settings: Settings) -> None:
    console, section = make_console(), ""
    for name, value, text in settings.describe():
        own, _, short = name.partition(".")
        if own != section:
            start = "\n" if section else ""
            console.print(f"{start}[{own}]", markup=False, highlight=False)
            section = own
        console.print(f"{short} = {value}  # {text}", markup=False, highlight=False, soft_wrap=True)


def _greet(settings: Settings, url: str, is_open: bool) -> None:
    console = make_console()
    lines = [
        f"Tamis serves {settings.server.folder} at {url}",
        "Open this address in a browser to see its console.",
        "",
    ]
    if settings.server.follow:
        lines += [f"It only reads. The server that writes is {settings.server.follow}", ""]
    if is_open:
        lines += [
            "There are no keys: everybody on this machine may do everything.",
            f"To require keys: tamis keys create {settings.server.folder} NAME --role admin",
            "",
        ]
    to = settings.server.follow.rstrip("/") or url
    lines += [
        "Subscribe:",
        f'  curl {to}/v1/subscriptions --json \'{{"id": "adults", "expression": "age >= 18"}}\'',
        "Publish an event:",
        f"  curl {to}/v1/events --json '{{\"age\": 20}}'",
        "Read what matched:" if not settings.stream.matches else "Read what the stream matched:",
        f"  curl {url}/v1/subscriptions/adults/matches",
        "",
        "Stop the server with Ctrl-C.",
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
