"""`tamis remote`: talks to a match server. Here: which server, and with which key and ticket."""

from __future__ import annotations

import os
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tamis.cli.server_access import KEY_VARIABLE, find_running, make_trust
from tamis.errors import InputError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.client import Client

_Command = TypeVar("_Command", bound="Callable[..., Any]")

SERVER_VARIABLE: Final = "TAMIS_REMOTE"
TICKET_VARIABLE: Final = "TAMIS_TICKET"
DEFAULT_SERVER: Final = "http://127.0.0.1:8080"
_KNOWN: Final = ("server", "key_file")
_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.group("remote")
def remote_group() -> None:
    """Subscribe, publish and read at a match server.

    The server is that of --server, of the environment variable TAMIS_REMOTE or of the file
    tamis/remote.toml in the folder of your configuration (~/.config): an address, or the folder of
    a server that runs on this machine. By default it is http://127.0.0.1:8080. Its key is in the
    file of --key-file, in the variable TAMIS_KEY or in the file that remote.toml names; a folder
    needs none. Keys and tickets are never arguments: other users could read those.
    """


def access_options(command: _Command) -> _Command:
    """The server and its key: keywords of `connecting`."""
    options = (
        click.option(
            "--server",
            metavar="ADDRESS|FOLDER",
            help="Talk to this server: its address, or the folder of one that runs here.",
        ),
        click.option(
            "--key-file",
            type=_FILE,
            metavar="FILE",
            help="Use the key in this file instead of the one in TAMIS_KEY.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _read_ticket(
    context: click.Context, parameter: click.Parameter, file: Path | None
) -> str | None:
    """The ticket to show; None if there is none."""
    if file is not None:
        return _read_secret(file, "ticket")
    return os.environ.get(TICKET_VARIABLE) or None


ticket_option = click.option(
    "--ticket-file",
    "ticket",
    type=_FILE,
    callback=_read_ticket,
    metavar="FILE",
    help="Show the ticket in this file instead of the one in TAMIS_TICKET.",
)


@contextmanager
def connecting(server: str | None, key_file: Path | None) -> Iterator[Client]:
    """A client of the server; what the server refuses is an error with its place and hint."""
    from tamis.client import Client, ServerError

    address, key, trust = _find_server(server, key_file)
    try:
        with Client(address, key, trust=trust) as client:
            yield client
    except ServerError as error:
        picture = error.problem.get("picture")
        message = f"{error.message}\n{picture}" if picture else error.message
        raise InputError(message, hint=error.hint) from None


def _find_server(given: str | None, key_file: Path | None) -> tuple[str, str | None, Any]:
    """The address, the key, and which certificates are trusted."""
    configured = _read_configuration()
    server = given or os.environ.get(SERVER_VARIABLE) or configured.get("server") or DEFAULT_SERVER
    key = _find_key(key_file, configured)
    if server.startswith(("http://", "https://")):
        return server, key, None
    running = find_running(Path(server).expanduser())
    if running is None:
        raise InputError(
            f"no server runs in the folder {server}",
            hint=f"start it: tamis serve {server}; or give an address, such as {DEFAULT_SERVER}",
        )
    trust = None if running.certificate is None else make_trust(running.certificate)
    # A key that was given counts more: that of the folder is an administrator's.
    return running.url, key or running.key, trust


def _find_key(key_file: Path | None, configured: dict[str, str]) -> str | None:
    if key_file is not None:
        return _read_secret(key_file, "key")
    if found := os.environ.get(KEY_VARIABLE):
        return found
    named = configured.get("key_file")
    return None if named is None else _read_secret(Path(named).expanduser(), "key")


def _read_configuration() -> dict[str, str]:
    """What the file says; nothing if there is none."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    file = Path(home).expanduser() / "tamis" / "remote.toml"
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{file} is not a TOML file: {error}") from None
    for name, value in found.items():
        if name not in _KNOWN:
            near = suggest(name, _KNOWN)
            hint = f'did you mean "{near}"?' if near else f"known are: {', '.join(_KNOWN)}"
            raise InputError(f'{file}: there is no setting "{name}"', hint=hint)
        if not isinstance(value, str):
            raise InputError(f"{file}: {name} is {value!r:.100}; text is expected")
    return found


def _read_secret(file: Path, what: str) -> str:
    """The text of a file that others cannot read."""
    try:
        if os.name == "posix" and file.stat().st_mode & 0o077:
            raise InputError(
                f"other users can read {file}, which has a {what}", hint=f"chmod 600 {file}"
            )
        found = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        found = ""
    if not found or not found.isascii() or not found.isprintable():
        raise InputError(f"{file} has no {what}", hint=f"it must have the {what} and nothing else")
    return found


@contextmanager
def open_packed(file: str) -> Iterator[tuple[Any, str]]:
    """The content of a file or of standard input for `-`, unpacked, and its name for people. It has
    a method `peek`.
    """
    from tamis.input.formats import Format
    from tamis.input.sources import open_stream

    # The commands read the formats that the server takes, whatever they are: none is needed here.
    source: Any = sys.stdin.buffer if file == "-" else file
    with open_stream(source, Format.JSONL) as stream:
        yield stream.file, "standard input" if file == "-" else file
