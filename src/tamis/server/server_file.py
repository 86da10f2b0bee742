"""How commands on the server's machine find it: a file in its folder, as long as it runs.

The file has the address, and a key that is valid until the server ends. Only the user who runs the
server can read it, who could change everything in the folder anyway.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from tamis import durable
from tamis.broker.secrets import Secret, new_api_key
from tamis.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.server.settings import ServerSettings

FILE: Final = "running.json"


class Presence(NamedTuple):
    """Where a server listens, and how to reach it from its machine."""

    url: str
    key: Secret
    certificate: Path | None = None  # to expect, if the server speaks HTTPS


def new_local_key() -> Secret:
    """A key for commands on this machine; it is in no database."""
    return new_api_key()[1]


def write_presence(folder: Path, presence: Presence) -> None:
    """Tell commands on this machine where the server is."""
    certificate = presence.certificate
    found = {
        "url": presence.url,
        "key": presence.key.reveal(),
        "certificate": None if certificate is None else str(certificate.absolute()),
        "process": os.getpid(),
    }
    try:
        forget_presence(folder)
        durable.create_file(folder / FILE, [orjson.dumps(found)], mode=0o600)
    except OSError as error:
        raise StoreError(f"{folder / FILE} cannot be written: {error.strerror}") from None


def forget_presence(folder: Path) -> None:
    """Remove the file."""
    (folder / FILE).unlink(missing_ok=True)


@contextmanager
def announcing(settings: ServerSettings, key: Secret) -> Iterator[Callable[[str], None]]:
    """A function that returns where the server listens; it is forgotten at the end."""

    def announce(url: str) -> None:
        where = _reachable(url)
        write_presence(settings.folder, Presence(where, key, settings.tls_certificate))

    try:
        yield announce
    finally:
        with suppress(OSError):  # a folder that became read-only
            forget_presence(settings.folder)


def read_presence(folder: Path) -> Presence | None:
    """Where the server of a folder is; None if there is no file, or it is damaged."""
    try:
        found: Any = orjson.loads((folder / FILE).read_bytes())
        certificate = found["certificate"]
        return Presence(
            found["url"], Secret(found["key"]), None if certificate is None else Path(certificate)
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _reachable(url: str) -> str:
    """An address that listens on all interfaces, as this machine reaches it."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
