"""`tamis remote import` and `tamis remote export`."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import IO, TYPE_CHECKING, Any, Final

import click

from tamis.cli.arguments import expect_file
from tamis.cli.console import make_console, print_columns, print_error, print_note
from tamis.cli.options import output_option
from tamis.cli.output import open_sink, print_json, spell_json
from tamis.cli.remote import access_options, connecting, open_packed, remote_group
from tamis.errors import InputError
from tamis.input.formats import FORMATS, SENT_FORMATS, Format, find_format

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SHOWN_REFUSALS: Final = 10


@remote_group.command("import")
@click.argument("file")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(list(SENT_FORMATS)),
    help="Read the file in this format; by default, its ending decides, or else jsonl.",
)
@click.option(
    "--replace", "replaces", is_flag=True, help="Replace subscriptions whose id exists already."
)
@click.option("--dry-run", "is_dry", is_flag=True, help="Only print what would happen.")
@click.option(
    "--results",
    metavar="FILE",
    help="Write the result of each row, with its ticket, to this new file that only you can read.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if a row is refused.")
@access_options
@output_option
def import_command(  # noqa: PLR0913 - one parameter per option
    file: str,
    file_format: str | None,
    replaces: bool,
    is_dry: bool,
    results: str | None,
    strict: bool,
    server: str | None,
    key_file: Path | None,
    output: str,
) -> None:
    """Import the subscriptions in FILE; '-' is standard input.

    FILE is JSON lines or one array, CSV, TSV or Parquet; one that ends in .gz or .zst is unpacked.

    A row that is wrong is refused, and the others are imported. The tickets of new subscriptions
    are in the file of --results, and with --output json on standard output: they are shown only
    now.

    Exit codes: 0 imported, with or without refused rows; 1 every row was refused, FILE or the
    server cannot be used or, with --strict, a row was refused; 2 wrong usage.
    """
    expect_file(file, "subscriptions")
    kind = _find_format(file) if file_format is None else Format(file_format)
    with (
        connecting(server, key_file) as client,
        open_packed(file) as (rows, _),
        nullcontext() if results is None else _open_private(results) as sink,
    ):
        found = client.import_subscriptions(
            rows, media_type=SENT_FORMATS[kind], replaces=replaces, is_dry=is_dry
        )
        summary = _report(found, sink, output)
    for note in summary["notes"]:
        print_note(note)
    counts = summary["summary"]
    if counts["made"] and not is_dry and output != "json" and results is None:
        print_note("the tickets were not written: name a file with --results")
    if not summary["is_complete"]:
        raise InputError(f"the import is not complete: {summary['error']['message']}")
    if (strict and counts["refused"]) or (counts["rows"] and counts["refused"] == counts["rows"]):
        raise click.exceptions.Exit(1)


def _find_format(file: str) -> Format:
    """The format of a file by its ending, JSON lines for others; raises an `InputError` for one
    that servers do not take.
    """
    found = find_format(file) or Format.JSONL
    if found not in SENT_FORMATS:
        titles = [FORMATS[own].title for own in SENT_FORMATS]
        raise InputError(
            f"{file}: a server does not read {FORMATS[found].title} files",
            hint=f"convert it: {', '.join(titles)} are read",
        )
    return found


def _report(found: Iterable[dict[str, Any]], sink: IO[str] | None, output: str) -> dict[str, Any]:
    """Print and write the results; returns the summary."""
    n_shown, summary = 0, None
    for own in found:
        if "summary" in own:
            summary = own
            continue
        if sink is not None:
            sink.write(spell_json(own) + "\n")
        if output == "json":
            print_json(own)
        elif own["status"] == "refused" and n_shown < SHOWN_REFUSALS:
            n_shown += 1
            print_error(f"row {own['row']}: {own['error']['message']}")
    if summary is None:
        raise InputError("the answer of the server broke off: some rows may be imported")
    if output == "json":
        print_json(summary)
    else:
        counts = summary["summary"]
        print_columns(make_console(), [list(counts), [f"{n:,}" for n in counts.values()]])
    return summary


def _open_private(name: str) -> IO[str]:
    """A new file that only this user can read: it gets tickets."""
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InputError(f"--results {name} cannot be made: {error.strerror}") from None
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")


@remote_group.command("export")
@click.option(
    "-o",
    "target",
    metavar="FILE",
    default="-",
    help="Write the subscriptions to this file instead of standard output.",
)
@click.option("--owner", metavar="NAME", help="Export only the subscriptions of this owner.")
@click.option("--tag", metavar="TAG", help="Export only subscriptions that have this tag.")
@access_options
def export_command(
    target: str, server: str | None, key_file: Path | None, **filters: str | None
) -> None:
    """Write your subscriptions as JSON lines, as import reads them; with the key of an admin, all.

    Exit codes: 0 written; 1 FILE or the server cannot be used; 2 wrong usage.
    """
    with connecting(server, key_file) as client, open_sink(target) as sink:
        for own in client.export(**filters):
            sink.write(spell_json(own) + "\n")
