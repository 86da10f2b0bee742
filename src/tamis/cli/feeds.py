"""`tamis feeds`: which feeds a server reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from tamis.cli.console import make_console, print_columns, print_note, printable
from tamis.cli.feed_access import (
    add_source,
    fetch_due,
    fetch_source,
    find_source,
    import_sources,
    list_sources,
    remove_source,
)
from tamis.cli.keys import expect_folder, server_argument
from tamis.cli.options import output_option
from tamis.cli.output import print_data, print_json
from tamis.errors import InputError

if TYPE_CHECKING:
    from typing import IO

_HEADINGS: Final = ["number", "state", "items", "next fetch", "title", "address"]
_LISTED: Final = 30  # characters of a title
_SHOWN: Final = 5

# Whether a feed that failed is tried again, by its state.
_AGAIN: Final = {
    "active": "it is tried again",
    "paused": "it is paused, and not tried again until it is active",
    "gone": "it is gone, and not tried again; to try it once: tamis feeds fetch",
    "moved": "it moved, and is not tried again; its new address is another feed",
}

feed_argument = click.argument("feed")
store_option = click.option(
    "--store",
    metavar="ADDRESS",
    help="Use the feeds in this PostgreSQL database; by default the one that the folder names.",
)


@click.group("feeds")
def feeds_group() -> None:
    """Add, list, fetch and remove the feeds that a server reads.

    SERVER is its folder, also while it runs, or its address (https://…); then the environment
    variable TAMIS_KEY must have the key of an admin. FEED is the number or the address of a feed.
    """


@feeds_group.command("add")
@server_argument
@click.argument("url")
@click.option("--title", default="", help="Use this title instead of the one that the feed has.")
@click.option(
    "--tag", "tags", multiple=True, help="Give its items this tag. The option can be repeated."
)
@store_option
@output_option
def add_command(  # noqa: PLR0913 - one parameter per option
    server: str, url: str, title: str, tags: tuple[str, ...], store: str | None, output: str
) -> None:
    """Read the feed at URL from now on. URL may be a page that names one feed.

    A running server fetches the feed at once. Otherwise it is fetched when the server starts, or by
    `tamis feeds fetch`.

    Exit codes: 0 added; 1 it is known, it cannot be read now, or SERVER cannot be reached;
    2 wrong usage.
    """
    expect_folder(server)
    found = add_source(server, store, {"url": url, "title": title, "tags": list(tags)})
    _print_source(found, output)
    if found["last_fetch"] is None and output != "json":
        print_note("it is read when the server runs, or by: tamis feeds fetch")
    _fail_if_failing(found)


@feeds_group.command("list")
@server_argument
@click.option("--failing", is_flag=True, help="List only feeds whose last fetch failed.")
@store_option
@output_option
def list_command(server: str, failing: bool, store: str | None, output: str) -> None:
    """List the feeds, the oldest first.

    Exit codes: 0 listed, even if there are none; 1 SERVER cannot be reached; 2 wrong usage.
    """
    expect_folder(server)
    found = list_sources(server, store, is_failing=True if failing else None)
    if output == "json":
        for source in found:
            print_json(source)
    elif found:
        print_columns(make_console(), [_HEADINGS, *map(_cells, found)])
    else:
        print_note("there are no feeds" if not failing else "no feed fails")


@feeds_group.command("status")
@server_argument
@feed_argument
@store_option
@output_option
def status_command(server: str, feed: str, store: str | None, output: str) -> None:
    """Show the state of FEED: its last and next fetch, errors, and what was mended in its last
    document.

    Exit codes: 0 shown; 1 its last fetch failed, there is no such feed, or SERVER cannot be
    reached; 2 wrong usage.
    """
    expect_folder(server)
    found = find_source(server, store, feed)
    _print_source(found, output)
    _fail_if_failing(found)


@feeds_group.command("fetch")
@server_argument
@click.argument("feeds", nargs=-1, metavar="[FEED]…")
@store_option
@output_option
def fetch_command(server: str, feeds: tuple[str, ...], store: str | None, output: str) -> None:
    """Fetch FEED now, or all feeds that are due.

    Exit codes: 0 all were fetched; 1 some could not be fetched, there is no such feed, or SERVER
    cannot be reached; 2 wrong usage.
    """
    expect_folder(server)
    found = [fetch_source(server, store, feed) for feed in feeds] if feeds else None
    found = fetch_due(server, store) if found is None else found
    if output == "json":
        for source in found:
            print_json(source)
    elif found:
        print_columns(make_console(), [_HEADINGS, *map(_cells, found)])
    else:
        print_note("no feed is due")
    failing = [source for source in found if source["last_error"] is not None]
    for source in failing[:_SHOWN]:
        print_note(f"{printable(source['url'])}: {printable(source['last_error'])}")
    if len(failing) > _SHOWN:
        print_note(f"{len(failing) - _SHOWN} more failed: tamis feeds list {server} --failing")
    if failing:
        raise click.exceptions.Exit(1)


@feeds_group.command("import")
@server_argument
@click.argument("file", type=click.File("rb"))
@store_option
@output_option
def import_command(server: str, file: IO[bytes], store: str | None, output: str) -> None:
    """Read the feeds in an OPML FILE from now on; folders and categories become their tags.

    Exit codes: 0 all are read, from now on or since earlier; 1 FILE cannot be read, some feeds
    cannot be used, or SERVER cannot be reached; 2 wrong usage.
    """
    from tamis.feeds.opml import MOST_BYTES, read_opml

    expect_folder(server)
    given = read_opml(file.read(MOST_BYTES + 1), file.name)
    found = import_sources(server, store, given)
    if output == "json":
        print_json(found)
    else:
        counts = [f"{len(found['added'])} added", f"{len(found['known'])} known"]
        print_data(f"{', '.join(counts)}, {len(found['refused'])} refused\n")
        for message in found["refused"][:_SHOWN]:
            print_note(printable(message))
    if found["refused"]:
        raise click.exceptions.Exit(1)


@feeds_group.command("export")
@server_argument
@store_option
def export_command(server: str, store: str | None) -> None:
    """Print the feeds as OPML, which feed readers can import.

    Exit codes: 0 printed; 1 SERVER cannot be reached; 2 wrong usage.
    """
    from tamis.broker.sources import NewSource
    from tamis.feeds.opml import write_opml

    expect_folder(server)
    found = list_sources(server, store)
    print_data(write_opml(NewSource(own["url"], own["title"], own["tags"]) for own in found))


@feeds_group.command("remove")
@server_argument
@feed_argument
@store_option
@output_option
def remove_command(server: str, feed: str, store: str | None, output: str) -> None:
    """Stop reading FEED. What was published stays in the archive.

    Exit codes: 0 removed; 1 there is no such feed, or SERVER cannot be reached; 2 wrong usage.
    """
    expect_folder(server)
    found = remove_source(server, store, feed)
    if output == "json":
        print_json(found)
    else:
        print_data(f"removed {found['number']} {printable(found['url'])}\n")


def _cells(source: dict[str, Any]) -> list[str]:
    state = "failing" if source["n_failed"] and source["state"] == "active" else source["state"]
    due = str(source["next_fetch"])[:16] if source["state"] == "active" else ""
    title = printable(source["title"])[:_LISTED]
    return [
        str(source["number"]),
        state,
        f"{source['n_items']:,}",
        due,
        title,
        printable(source["url"]),
    ]


def _print_source(source: dict[str, Any], output: str) -> None:
    if output == "json":
        print_json(source)
        return
    hidden = {"notes", "last_error", "reason", "failing_since"}
    if source["state"] != "active":  # it is fetched only if somebody asks for it
        hidden.add("next_fetch")
    rows = [
        [name.removeprefix("n_").replace("_", " "), _show(value)]
        for name, value in source.items()
        if name not in hidden and value not in (None, "", [])
    ]
    print_columns(make_console(), rows)
    for note in source["notes"]:
        example = f", such as {printable(note['example'])!r}" if note["example"] else ""
        print_note(f"{note['kind']}: {note['count']:,}{example}: {note['meaning']}")
    if source["reason"] is not None:
        print_note(printable(source["reason"]))


def _show(value: Any) -> str:
    if isinstance(value, list):
        return printable(", ".join(map(str, value)))
    return printable(str(value))


def _fail_if_failing(source: dict[str, Any]) -> None:
    if source["last_error"] is not None:
        raise InputError(
            f"{source['url']}: {source['last_error']}",
            hint=f"{_AGAIN[source['state']]}; to stop reading it: tamis feeds remove",
        )
