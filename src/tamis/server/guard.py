"""What every request must fulfil before a route sees it: its host, its origin, the size and speed
of its body, and not too many wrong secrets before it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from tamis.broker.secrets import find_key_id
from tamis.server.bodies import ALLOWED, too_large, too_slow
from tamis.server.hosts import Hosts
from tamis.server.problems import Problem
from tamis.server.rates import RateLimits

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tamis.broker.store import Broker
    from tamis.server.settings import LimitSettings, Settings

WATCH: Final = "watch"  # in the state of a request: its `SecretWatch`
SOCKET_CODES: Final = 4_000  # plus the status of a problem
_UNKNOWN_KEY: Final = 401
_WRONG_TICKET: Final = (401, 403, 404)  # 404: whoever has no ticket learns nothing
_WITH_NAMES: Final = ("subscriptions", "channels", "keys")  # the others have numbers
_NUMBER: Final = re.compile(r"\s*\+?(\d+(?:_\d+)*)(?:\.0*)?\s*")


class Guard:
    """A layer of the application, inside of `Frame`."""

    def __init__(self, app: ASGIApp, settings: Settings, broker: Broker | None = None) -> None:
        self._app = app
        self._limits = settings.limits
        self._hosts = Hosts(settings.server)
        self._guesses = RateLimits()
        self._broker = broker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        rate = self._limits.wrong_secrets_per_second
        watch = SecretWatch(scope, self._guesses, rate, self._broker)
        try:
            self._hosts.expect_own(scope["headers"])
            watch.add(*_find_shown(scope))
        except Problem:
            if scope["type"] == "http":
                raise
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http":
            receive = _BoundedBody(scope, receive, self._limits).receive
        scope["state"][WATCH] = watch
        await self._app(scope, receive, watch.watching(send))


class SecretWatch:
    """The secrets of one request: counts those that are wrong.

    Secrets are counted by what they are for, so that whoever guesses does not lock out others
    behind the same address. Whoever shows many different wrong keys is held up for all keys that
    this server does not know yet.
    """

    def __init__(
        self, scope: Scope, guesses: RateLimits, rate: float, broker: Broker | None
    ) -> None:
        self._address = _find_network(scope)
        # A digest: names of things that do not exist are remembered too, and may be long.
        self._thing = blake2b(find_thing(scope["path"]).encode(), digest_size=16).hexdigest()
        self._guesses = guesses
        self._rate = rate
        self._broker = broker
        self._key: str | None = None  # what a wrong key counts for
        self._ticket: str | None = None  # what a wrong ticket counts for
        self._shown_ticket = ""

    def add(self, key: str | None, ticket: str | None) -> None:
        """Watch secrets that are shown; raises a `Problem` if there were too many wrong ones."""
        waits = [0.0]
        if key is not None:
            key_id = find_key_id(key)
            self._key = f"{self._address} key {key_id}"
            waits.append(self._guesses.look(self._key, self._rate))
            if key_id is not None and not self._has_met(key_id):
                waits.append(self._guesses.look(self._any_key, self._rate))
        if ticket is not None:
            self._ticket, self._shown_ticket = f"{self._address} ticket {self._thing}", ticket
            waits.append(self._guesses.look(self._ticket, self._rate))
        if wait := max(waits):
            raise Problem(
                429,
                "too-many-wrong-secrets",
                "there were too many wrong keys or tickets from this address",
                hint="wait; keys in use, and tickets of other things, are not affected",
                headers={"retry-after": str(math.ceil(wait))},
            )

    def watching(self, send: Send) -> Send:
        """`send`, which counts the answers to wrong secrets."""

        async def watch(message: Message) -> None:
            status = _find_status(message)
            if self._key is not None and status == _UNKNOWN_KEY:
                self._count_key(self._key)
            if self._ticket is not None and status in _WRONG_TICKET and not self._was_right():
                self._guesses.take(self._ticket, self._rate)
            await send(message)

        return watch

    @property
    def _any_key(self) -> str:
        return f"{self._address} keys"

    def _count_key(self, target: str) -> None:
        # A program that goes on with one key after its end is no search for keys.
        if not self._guesses.has(target):
            self._guesses.take(self._any_key, self._rate)
        self._guesses.take(target, self._rate)

    def _has_met(self, key_id: str) -> bool:
        return self._broker is not None and self._broker.keys.has_met(key_id)

    def _was_right(self) -> bool:
        """Whether the ticket is that of something else: whoever shows it does not guess."""
        return self._broker is not None and self._broker.tickets.was_right(self._shown_ticket)


def find_thing(path: str) -> str:
    """The thing that a path names, in one spelling: its ticket is guessed in many ways."""
    _, *segments = [unquote(one) for one in path.split("/")]
    kind, name = (*segments[1:3], "", "")[:2]
    number = None if kind in _WITH_NAMES else _NUMBER.fullmatch(name)
    if number is not None:
        name = str(int(number[1]))
    return f"{kind}/{name}"


class _BoundedBody:
    """The body of a request, which must not be too large or too slow."""

    def __init__(self, scope: Scope, receive: Receive, limits: LimitSettings) -> None:
        self._state = scope["state"]
        self._receive = receive
        self._most = limits.request_size
        self._timeout = limits.request_timeout
        self._deadline: float | None = None
        self._n_bytes = 0
        self._has_ended = False

    async def receive(self) -> Message:
        if self._has_ended:  # what follows is that the client goes away
            return await self._receive()
        if self._deadline is None:
            now = asyncio.get_running_loop().time()
            self._deadline = now + self._timeout.total_seconds()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise too_slow(self._timeout) from None
        self._has_ended = not message.get("more_body", False)
        self._n_bytes += len(message.get("body", b""))
        most = self._state.get(ALLOWED, self._most)
        if self._n_bytes > most:
            raise too_large(most)
        return message


def _find_shown(scope: Scope) -> tuple[str | None, str | None]:
    """The key and the ticket in the headers of a request."""
    key = ticket = None
    for name, value in scope["headers"]:
        if name == b"authorization":
            key = value.decode("latin-1").partition(" ")[2].strip()
        elif name == b"tamis-ticket":
            ticket = value.decode("latin-1")
    return key, ticket


def _find_status(message: Message) -> int:
    """The status of an answer; that of a problem which closes a socket is in the code."""
    if message["type"] == "http.response.start":
        return int(message["status"])
    code = message.get("code", 0) if message["type"] == "websocket.close" else 0
    return int(code) - SOCKET_CODES if code > SOCKET_CODES else 0


def _find_network(scope: Scope) -> str:
    """The address of a client; one client may have all addresses of an IPv6 network."""
    host = (scope.get("client") or ("",))[0]
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return str(host)
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))
