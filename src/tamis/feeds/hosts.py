"""Politeness: one request at a time to a host, a pause between two, and holds that it asks for."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_MOST_HOSTS: Final = 10_000  # that are remembered


class HeldError(Exception):
    """A host asked for a pause, of which `seconds` are left."""

    def __init__(self, host: str, seconds: float) -> None:
        super().__init__(f"{host} asked for a pause of {seconds:,.0f} s")
        self.seconds = seconds


def find_host(url: str) -> str:
    """The name of the host of an address."""
    return urlsplit(url).hostname or ""


class _Host:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.free_at = 0.0
        self.held_until = 0.0
        self.n_waiting = 0


class Hosts:
    """The hosts that requests are made to; used on one event loop."""

    def __init__(
        self, pause: float, n_connections: int, timer: Callable[[], float] = time.monotonic
    ) -> None:
        """`pause`: seconds between two requests to a host; `n_connections`: to all of them."""
        self._pause = pause
        self._places = asyncio.Semaphore(n_connections)
        self._timer = timer
        self._hosts: dict[str, _Host] = {}

    @asynccontextmanager
    async def turn(self, url: str, pause: float = 0.0) -> AsyncIterator[None]:
        """Wait until it is polite to ask; raises a `HeldError` if the host does not want that.

        `pause`: a longer one for this host.
        """
        name = find_host(url)
        host = self._find(name)
        host.n_waiting += 1
        try:
            async with host.lock:
                if (left := host.held_until - self._timer()) > 0:
                    raise HeldError(name, left)
                # The pause is waited for here, where it takes no place of other hosts.
                if (early := host.free_at - self._timer()) > 0:
                    await asyncio.sleep(early)
                async with self._places:
                    try:
                        yield
                    finally:
                        host.free_at = self._timer() + max(self._pause, pause)
        finally:
            host.n_waiting -= 1

    def hold(self, name: str, seconds: float) -> None:
        """Make no requests to a host for so long."""
        host = self._find(name)
        host.held_until = max(host.held_until, self._timer() + seconds)

    def _find(self, name: str) -> _Host:
        if name not in self._hosts and len(self._hosts) >= _MOST_HOSTS:
            now = self._timer()
            self._hosts = {
                own: host
                for own, host in self._hosts.items()
                if host.n_waiting or max(host.free_at, host.held_until) > now
            }
        return self._hosts.setdefault(name, _Host())
