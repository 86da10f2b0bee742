"""By which names the server may be called, and by which pages.

A page in a browser can send requests to this machine: by an address that its own name resolves to
(DNS rebinding), or across origins. A server that needs no key must answer neither.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tamis.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.server.settings import ServerSettings

_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address."""
    if host in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Hosts:
    """Checks the headers Host and Origin."""

    def __init__(self, settings: ServerSettings) -> None:
        self._is_local = is_loopback(settings.host)
        public = urlsplit(settings.public_url)
        self._public_host = public.hostname
        self._public = _name_origin(settings.public_url)

    def expect_own(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raise a `Problem` for a foreign host or a foreign origin."""
        host: str | None = None
        origins: list[str] = []
        for name, value in headers:
            if name == b"host":
                if host is not None:
                    raise Problem(400, "bad-host", "the header Host occurs twice")
                host = value.decode("latin-1")
            elif name == b"origin":
                origins.append(value.decode("latin-1"))
        if host is None:
            raise Problem(400, "bad-host", "the header Host is missing")
        self._expect_host(host)
        for origin in origins:
            self._expect_origin(origin, host)

    def _expect_host(self, host: str) -> None:
        name = _read_host(host)
        if self._is_local and not (is_loopback(name) or name == self._public_host):
            raise Problem(
                421,
                "foreign-host",
                f"this server is not called {name[:200]!r}",
                hint="call it localhost or 127.0.0.1, or set server.public_url",
            )

    def _expect_origin(self, origin: str, host: str) -> None:
        named, scheme = _name_origin(origin), origin.partition(":")[0].lower()
        if named is None or named not in (self._public, _name_origin(f"{scheme}://{host}")):
            raise Problem(
                403,
                "foreign-origin",
                f"pages of {origin[:200]!r} may not use this server",
                hint="to serve a page of your own, set server.public_url",
            )


def _read_host(host: str) -> str:
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018 - raises an error if it is not a number
    except ValueError:
        parts = urlsplit("//")
    if not parts.hostname or parts.netloc != host or "@" in host:
        raise Problem(400, "bad-host", f"the header Host is {host[:200]!r}")
    return parts.hostname


def _name_origin(url: str) -> tuple[str, str, int] | None:
    """The scheme, the host and the port of an address; None if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname else None
