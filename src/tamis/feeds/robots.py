"""robots.txt: what a host does not want to be fetched, for those who want to obey it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from tamis.errors import MissingDependencyError
from tamis.feeds.fetching import FetchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from protego import Protego

    from tamis.feeds.fetching import Fetcher
    from tamis.feeds.hosts import Hosts

NAME: Final = "Tamis"
_FRESH_SECONDS: Final = 86_400.0
_RETRY_SECONDS: Final = 3_600.0
_MOST_BYTES: Final = 500 << 10
_MOST_DELAY: Final = 60.0
_MOST_SITES: Final = 10_000


class Rule(NamedTuple):
    """Whether an address may be fetched, and how many seconds to wait between two fetches."""

    is_allowed: bool
    pause: float = 0.0


class _Site:
    """What one site says; whoever holds the lock may ask it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.rules: Protego | None = None  # None: the site could not say
        self.until = -float("inf")
        self.n_asking = 0


class Robots:
    """The robots.txt of sites, each fetched once a day; used on one event loop."""

    def __init__(
        self, fetcher: Fetcher, hosts: Hosts, timer: Callable[[], float] = time.monotonic
    ) -> None:
        try:
            from protego import Protego
        except ImportError:
            raise MissingDependencyError(
                "robots.txt needs the package protego", hint="pip install 'tamis[feeds]'"
            ) from None
        self._parse = Protego.parse
        self._fetcher = fetcher
        self._hosts = hosts
        self._timer = timer
        self._sites: dict[str, _Site] = {}

    async def find_rule(self, url: str) -> Rule:
        """What the site of an address says about it (RFC 9309).

        Raises a `HeldError` if its host asked to be left alone before it said anything.
        """
        parts = urlsplit(url)
        name = f"{parts.scheme}://{parts.netloc}"
        site = self._find(name)
        site.n_asking += 1
        try:
            async with site.lock:
                if site.until <= self._timer():
                    await self._ask(name, site)
        finally:
            site.n_asking -= 1
        if site.rules is None:
            return Rule(is_allowed=False)
        delay = site.rules.crawl_delay(NAME)
        pause = min(float(delay), _MOST_DELAY) if delay is not None else 0.0
        return Rule(site.rules.can_fetch(url, NAME), pause)

    def _find(self, name: str) -> _Site:
        if name not in self._sites and len(self._sites) >= _MOST_SITES:
            self._sites = {own: site for own, site in self._sites.items() if site.n_asking}
        return self._sites.setdefault(name, _Site())

    async def _ask(self, name: str, site: _Site) -> None:
        text = ""
        try:
            answer = await self._fetcher.fetch(f"{name}/robots.txt", turn=self._hosts.turn)
            text = answer.body[:_MOST_BYTES].decode("utf-8-sig", "replace")
        except FetchError as error:
            # A file that does not exist allows everything; a server that fails, or sends what
            # cannot be read, allows nothing.
            status = error.status
            if status is None or status >= 500 or status in (200, 429):
                site.rules, site.until = None, self._timer() + _RETRY_SECONDS
                return
        site.rules, site.until = self._parse(text), self._timer() + _FRESH_SECONDS
