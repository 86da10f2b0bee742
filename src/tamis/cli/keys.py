"""`tamis keys`: makes, lists and revokes API keys of a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from tamis.cli.console import make_console, print_columns, print_note, printable
from tamis.cli.options import output_option
from tamis.cli.output import print_data, print_json
from tamis.cli.server_access import RemoteServer, reaching
from tamis.errors import InputError

ROLES: Final = ("publish", "subscribe", "read", "admin")
_HEADINGS: Final = ("id", "owner", "roles", "created", "expires", "revoked")

server_argument = click.argument("server")
store_option = click.option(
    "--store",
    metavar="ADDRESS",
    help="Use the keys in this PostgreSQL database; by default the one that the folder names.",
)


@click.group("keys")
def keys_group() -> None:
    """Make, list and revoke API keys of a server.

    SERVER is its folder, also while it runs, or its address (https://…); then the environment
    variable TAMIS_KEY must have the key of an admin.
    """


def _read_limits(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in given:
        name, _, value = one.partition("=")
        try:
            number = float(value)
        except ValueError:
            raise click.BadParameter(f"{one!r} is not NAME=NUMBER") from None
        found[name.strip()] = int(number) if number.is_integer() else number
    return found


@keys_group.command("create")
@server_argument
@click.argument("owner")
@click.option(
    "--role",
    "roles",
    type=click.Choice(ROLES),
    multiple=True,
    required=True,
    help="Allow the key to do this. The option can be repeated; admin includes the others.",
)
@click.option(
    "--expires", metavar="MOMENT", help="Make the key invalid then: 2030-01-31T12:00:00 (UTC)."
)
@click.option(
    "--limit",
    "limits",
    metavar="NAME=NUMBER",
    multiple=True,
    callback=_read_limits,
    help="Limit what the key may use: requests_per_second, subscriptions, event_bytes, "
    "batch_bytes, expression_bytes or streams. The option can be repeated.",
)
@store_option
@output_option
def create_command(  # noqa: PLR0913 - one parameter per option
    server: str,
    owner: str,
    roles: tuple[str, ...],
    expires: str | None,
    limits: dict[str, float],
    store: str | None,
    output: str,
) -> None:
    """Make a key for OWNER, and print it. It is shown only now.

    From the first key on, the server answers only requests with a key. The folder is created if it
    does not exist, so that a server can be given a key before its first start.

    Exit codes: 0 made; 1 an argument is wrong, or SERVER cannot be reached; 2 wrong usage.
    """
    with reaching(server, store) as reached:
        made = _create(reached, owner, roles, expires, limits)
    if output == "json":
        print_json(made)
        return
    print_data(f"{made['key']}\n")
    print_note(f"key {made['id']} of {made['owner']}; keep it: it is not shown again")


def _create(
    reached: Any, owner: str, roles: tuple[str, ...], expires: str | None, limits: dict[str, float]
) -> dict[str, Any]:
    if isinstance(reached, RemoteServer):
        asked: dict[str, Any] = {"owner": owner, "roles": roles, "limits": limits}
        if expires is not None:
            from tamis.language.moments import read_at, spell_moment

            asked["expires"] = spell_moment(read_at(expires))
        return dict(reached.ask("POST", "/v1/keys", asked))
    from tamis.broker.keys import KeyLimits
    from tamis.broker.rights import LOCAL
    from tamis.errors import suggest

    for name in limits:
        if name not in KeyLimits._fields:
            near = suggest(name, KeyLimits._fields)
            raise InputError(
                f'there is no limit "{name}"; known are: {", ".join(KeyLimits._fields)}',
                hint=near and f'did you mean "{near}"?',
            )
    given: Any = limits
    made = reached.keys.create(LOCAL, owner, roles, expires=expires, limits=KeyLimits(**given))
    return {**made.key.to_json(), "key": made.secret.reveal()}


@keys_group.command("list")
@server_argument
@click.option("--owner", metavar="NAME", help="List only the keys of this owner.")
@store_option
@output_option
def list_command(server: str, owner: str | None, store: str | None, output: str) -> None:
    """List the keys, the oldest first; revoked and expired ones too. Their texts are not stored.

    Exit codes: 0 listed, even if there are none; 1 SERVER cannot be reached; 2 wrong usage.
    """
    expect_folder(server)
    with reaching(server, store) as reached:
        found = _list(reached, owner)
    if output == "json":
        for key in found:
            print_json(key)
    elif found:
        print_columns(make_console(), [_HEADINGS, *map(_cells, found)])
    else:
        print_note("there are no keys")


def _list(reached: Any, owner: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        if isinstance(reached, RemoteServer):
            page = reached.ask("GET", "/v1/keys", owner=owner, cursor=cursor)
            found += page["keys"]
            cursor = page["cursor"]
        else:
            own = reached.keys.list(owner=owner, after=cursor)
            found += [key.to_json() for key in own.items]
            cursor = own.cursor
        if cursor is None:
            return found


def _cells(key: dict[str, Any]) -> list[str]:
    roles = ", ".join(key["roles"])
    moments = [key[name] or "" for name in ("created", "expires", "revoked")]
    return [key["id"], printable(key["owner"]), roles, *(str(one)[:19] for one in moments)]


@keys_group.command("revoke")
@server_argument
@click.argument("key_id", metavar="ID")
@store_option
@output_option
def revoke_command(server: str, key_id: str, store: str | None, output: str) -> None:
    """Make the key with this ID invalid, at once.

    Exit codes: 0 revoked, now or earlier; 1 there is no such key, or SERVER cannot be reached;
    2 wrong usage.
    """
    expect_folder(server)
    with reaching(server, store) as reached:
        if isinstance(reached, RemoteServer):
            from urllib.parse import quote

            key = reached.ask("DELETE", f"/v1/keys/{quote(key_id, safe='')}")
        else:
            from tamis.broker.rights import LOCAL

            key = reached.keys.revoke(LOCAL, key_id).to_json()
    if output == "json":
        print_json(key)
    else:
        print_columns(make_console(), [["revoked", key["id"], "of", printable(key["owner"])]], 1)


def expect_folder(server: str) -> None:
    """Raise an `InputError` unless a server is named by its address or an existing folder."""
    if not server.startswith(("http://", "https://")) and not Path(server).is_dir():
        raise InputError(
            f"there is no folder {server}", hint="name the folder or the address of the server"
        )
