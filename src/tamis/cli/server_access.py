"""How commands reach a server: by its address, through the server that has the folder open, or
through the files in the folder if none has.
"""

from __future__ import annotations

import http.client
import os
import ssl
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import orjson

from tamis.errors import InputError, StoreError, StoreInUseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.broker.store import Broker

KEY_VARIABLE: Final = "TAMIS_KEY"
_TIMEOUT: Final = 600.0  # seconds: a backup takes long
_PATIENCE: Final = 10.0  # seconds in which a server starts
_PAUSE: Final = 0.1


class RemoteServer(NamedTuple):
    """A running server."""

    url: str
    key: str | None
    certificate: Path | None = None  # to expect instead of one that this machine trusts

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The answer as JSON values; raises an `InputError` for a problem."""
        content = self._send(method, path, body, query)
        return orjson.loads(content) if content else None

    def ask_lines(self, method: str, path: str, body: Any = None) -> list[Any]:
        """The answer as JSON values, one for each line."""
        return [orjson.loads(line) for line in self._send(method, path, body, {}).splitlines()]

    def _send(self, method: str, path: str, body: Any, query: dict[str, Any]) -> bytes:
        """The body of the answer.

        Proxies are not used and redirections are not followed: both would get the key.
        """
        given = {name: value for name, value in query.items() if value is not None}
        target = f"{path}?{urlencode(given)}" if given else path
        headers = {"content-type": "application/json"}
        if self.key is not None:
            headers["authorization"] = f"Bearer {self.key}"
        connection = self._connect()
        try:
            connection.request(
                method, target, None if body is None else orjson.dumps(body), headers
            )
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise StoreError(
                f"{self.url} does not answer: {error}", hint="is the server running?"
            ) from None
        finally:
            connection.close()
        if answer.status >= http.client.BAD_REQUEST:
            raise _read_problem(answer.status, content)
        return content

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, parts.port, timeout=_TIMEOUT)
        trust = make_trust(self.certificate)
        return http.client.HTTPSConnection(host, parts.port, timeout=_TIMEOUT, context=trust)


def make_trust(certificate: Path | None) -> ssl.SSLContext:
    """Which certificates are accepted: that very one; None: those that this machine trusts."""
    if certificate is None:
        return ssl.create_default_context()
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Its name need not be that of this machine: it is that very certificate.
    trust.check_hostname = False
    trust.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    trust.load_verify_locations(certificate)
    return trust


def _read_problem(status: int, content: bytes) -> InputError:
    try:
        found = orjson.loads(content)
        return InputError(str(found["detail"]), hint=found.get("hint"))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return InputError(f"the server answers with status {status}")


@contextmanager
def reaching(place: str, store: str | None = None) -> Iterator[RemoteServer | Broker]:
    """The server at an address or of a folder; its tables if no server has the folder open."""
    if place.startswith(("http://", "https://")):
        yield RemoteServer(place, os.environ.get(KEY_VARIABLE))
        return
    opened = _open(Path(place), store)
    if isinstance(opened, RemoteServer):
        yield opened
        return
    try:
        yield opened
    finally:
        opened.store.close()


def find_running(folder: Path) -> RemoteServer | None:
    """The server that has a folder open; None if there is none."""
    from tamis.server.server_file import read_presence

    found = read_presence(folder)
    return None if found is None else RemoteServer(found.url, found.key.reveal(), found.certificate)


def _open(folder: Path, store: str | None) -> RemoteServer | Broker:
    """What the folder has, or the server that has it open.

    A server that has it open and is not found is starting: it is awaited.
    """
    from tamis.broker.match_server import INDEX
    from tamis.live.opening import find_store

    place = find_store(folder / INDEX, store)
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return _open_broker(folder, place)
        except StoreInUseError as error:
            running = find_running(folder)
            if running is not None:
                return running
            if isinstance(place, str) or time.monotonic() >= end:
                raise StoreInUseError(error.message, hint=_find_way(folder, place)) from None
        time.sleep(_PAUSE)


def _find_way(folder: Path, place: str | Path) -> str:
    """What to do if the subscriptions of a folder are open, and its server is not found."""
    if isinstance(place, Path):  # files, which only processes of this machine lock
        return (
            "a server that is starting, or another command, has it open: try again when the server "
            "has printed its address, or the command has ended"
        )
    return (
        f"if a server on another machine has it, name its address instead of {folder}, "
        f"and put a key of an admin into {KEY_VARIABLE}"
    )


def _open_broker(folder: Path, place: str | Path) -> Broker:
    from tamis.broker.store import Broker, load_secret
    from tamis.subscriptions import SubscriptionStore

    opened = SubscriptionStore.open(place)
    try:
        return Broker(opened, load_secret(folder, opened))
    except BaseException:
        opened.close()
        raise
