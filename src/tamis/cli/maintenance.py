"""`tamis backup`, `tamis restore` and `tamis import-version`: maintain a server."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import click

from tamis.cli.console import make_console, print_columns, print_error, print_note, printable
from tamis.cli.keys import expect_folder, server_argument, store_option
from tamis.cli.options import output_option
from tamis.cli.output import print_json
from tamis.cli.server_access import RemoteServer, reaching
from tamis.errors import InputError

SHOWN_REFUSALS: Final = 10
_COUNTS: Final = ("rows", "added", "replaced", "unchanged", "refused", "change")


@click.command("backup")
@server_argument
@click.argument("target")
@store_option
@output_option
def backup_command(server: str, target: str, store: str | None, output: str) -> None:
    """Copy the server in the folder SERVER to the new folder TARGET; it may be running.

    If SERVER is the address of a server (https://…), TARGET is a name in its folder backups, and
    the environment variable TAMIS_KEY must have the key of an admin. Subscriptions in PostgreSQL
    are not copied: run pg_dump afterwards.

    Exit codes: 0 copied; 1 SERVER or TARGET cannot be used; 2 wrong usage.
    """
    expect_folder(server)
    is_address = server.startswith(("http://", "https://"))
    with reaching(server, store) as reached:
        if isinstance(reached, RemoteServer):
            place = target if is_address else str(Path(target).absolute())
            made = reached.ask("POST", "/v1/backup", {"target": place})
        else:
            made = _back_up(reached, Path(server), Path(target))
    _report(made, output)
    if made["last_change"] is None:
        print_note("the subscriptions are in PostgreSQL: copy that database with pg_dump now")


def _back_up(broker: Any, folder: Path, target: Path) -> dict[str, Any]:
    from tamis.archive import Archive
    from tamis.broker.backup import back_up
    from tamis.broker.match_server import ARCHIVE, INTAKE

    with ExitStack() as stack:
        archive = stack.enter_context(Archive.open(folder / ARCHIVE))
        intake = None
        if (folder / INTAKE).exists():
            intake = stack.enter_context(Archive.open(folder / INTAKE))
        made = back_up(folder, broker.store, archive, target, intake)
    return {"folder": str(target), **made._asdict()}


@click.command("restore")
@click.argument("backup", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--store",
    metavar="ADDRESS",
    help="Use the subscriptions in this PostgreSQL database, which was restored already.",
)
@output_option
def restore_command(backup: Path, folder: Path, store: str | None, output: str) -> None:
    """Make the new folder FOLDER of a server from BACKUP, which tamis backup wrote.

    Keys and tickets stay valid. Clients that show an older cursor get an error: history may have
    been lost, and they start again.

    Exit codes: 0 restored; 1 BACKUP or FOLDER cannot be used; 2 wrong usage.
    """
    from tamis.broker.backup import restore

    found = restore(backup, folder, store)
    _report({"folder": str(folder), **found._asdict()}, output)


def _report(made: dict[str, Any], output: str) -> None:
    shown = {name: made[name] for name in ("folder", "moment", "last_event", "last_change")}
    if output == "json":
        print_json(shown)
        return
    cells = ["" if own is None else printable(str(own)) for own in shown.values()]
    print_columns(make_console(), [[name.replace("_", " ") for name in shown], cells])


@click.command("import-version")
@server_argument
@click.argument("index")
@click.option("--index-version", help="Import this version instead of the newest one.")
@click.option(
    "--replace", "replaces", is_flag=True, help="Replace subscriptions whose id exists already."
)
@output_option
def import_version_command(
    server: str, index: str, index_version: str | None, replaces: bool, output: str
) -> None:
    """Add the subscriptions of INDEX to the running server SERVER.

    INDEX is a saved index, or a folder of versions, such as one that Spark has built. If SERVER is
    an address, INDEX is a name in the folder imports of that server. The server continues.

    Exit codes: 0 imported, with or without refused rows; 1 every row was refused, or SERVER or
    INDEX cannot be used; 2 wrong usage.
    """
    expect_folder(server)
    is_address = server.startswith(("http://", "https://"))
    with reaching(server) as reached:
        if not isinstance(reached, RemoteServer):
            raise InputError(
                f"no server has {server} open", hint=f"start it first: tamis serve {server}"
            )
        asked = {
            "source": index if is_address else str(Path(index).absolute()),
            "version": index_version,
            "replace": replaces,
        }
        *rows, numbers = reached.ask_lines("POST", "/v1/import-version", asked)
    if output == "json":
        for row in (*rows, numbers):
            print_json(row)
    else:
        print_columns(make_console(), [_COUNTS, [f"{numbers[name]:,}" for name in _COUNTS]])
    refused = [row for row in rows if row["outcome"] == "refused"]
    for row in refused[:SHOWN_REFUSALS]:
        print_error(f'subscription "{row["id"]}": {row["message"]}')
    if "problem" in numbers:
        raise InputError(numbers["problem"]["detail"], hint=numbers["problem"].get("hint"))
    if rows and len(refused) == len(rows):
        raise click.exceptions.Exit(1)
