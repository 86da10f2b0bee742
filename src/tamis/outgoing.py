"""Requests to addresses that others name: the server may connect to public ones only (SSRF).

A name is resolved once for each attempt, all its addresses are checked, and the connection is made
to one of exactly these: a name that changes between the check and the connection gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from threading import BoundedSemaphore, Thread
from typing import TYPE_CHECKING, Any, Final

import httpx2

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Resolve = Callable[[str, int], Awaitable[list[str]]]

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_lookups: Final = BoundedSemaphore(512)  # of names, at the same time
_GLOBAL_6: Final = IPv6Network("2000::/3")  # all that is assigned to the public
_TEREDO: Final = IPv6Network("2001::/32")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_REFUSED_4: Final = (
    IPv4Network("168.63.129.16/32"),  # Azure's services for virtual machines
    IPv4Network("192.0.0.0/24"),  # protocols, and Oracle's metadata
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv4Network("100.64.0.0/10"),  # shared by customers of a provider; Alibaba's metadata
    IPv4Network("198.18.0.0/15"),  # benchmarks
)


class RefusedAddressError(Exception):
    """A name has an address that the server must not connect to."""


def is_public(text: str) -> bool:
    """Whether an address belongs to the public internet, in whatever form it is written."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # an address with a zone is of a local network
        return False
    if isinstance(address, IPv4Address):
        return _is_public_4(address)
    inner = _find_inner(address)
    if inner is not None:
        return _is_public_4(inner)
    return address in _GLOBAL_6 and address not in _TEREDO and address.is_global


def _find_inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address leads to."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour


def _is_public_4(address: IPv4Address) -> bool:
    is_special = address.is_multicast or address.is_reserved or address.is_unspecified
    is_refused = any(address in network for network in _REFUSED_4)
    return address.is_global and not (is_special or is_refused)


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, or of an address in any spelling that the system knows."""
    found = await asyncio.wrap_future(_look_up(host, port))
    return list(dict.fromkeys(str(own[4][0]) for own in found))


def _look_up(host: str, port: int) -> Future[list[Any]]:
    """What the system answers, from a thread of its own.

    A name server can take half a minute. In the executor of the event loop, a few such names would
    hold up everything else that runs there; and a process waits for its executors when it ends.
    """
    if not _lookups.acquire(blocking=False):
        raise OSError("too many names are being looked up")
    future: Future[list[Any]] = Future()

    def run() -> None:
        found: list[Any] | Exception
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except Exception as error:
            found = error
        _lookups.release()
        with suppress(InvalidStateError):  # nobody waits for it any more
            if isinstance(found, Exception):
                future.set_exception(found)
            else:
                future.set_result(found)

    try:
        Thread(target=run, name="tamis-resolve", daemon=True).start()
    except RuntimeError as error:  # the system has no more threads
        _lookups.release()
        raise OSError(f"the name cannot be looked up: {error}") from None
    return future


async def find_addresses(
    host: str, port: int, *, allow_private: bool, resolver: Resolve = resolve
) -> list[str]:
    """The addresses to connect to; raises a `RefusedAddressError` if one of them is not public.

    Raises an `OSError` if there are none.
    """
    addresses = await resolver(host, port)
    if not addresses:
        raise OSError(f"{host} has no address")
    if not allow_private and not all(map(is_public, addresses)):
        # Not which: nobody should learn the names of an internal network here.
        raise RefusedAddressError(f"{host} has an address that is not public")
    return addresses


class CheckedClient:
    """Sends requests to checked addresses only, and follows no redirects."""

    def __init__(
        self,
        *,
        allow_private: bool,
        resolver: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._resolver = resolver
        self._tls = tls

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            trust_env=False,  # no proxy: it would resolve names again
            follow_redirects=False,
            verify=ssl.create_default_context() if self._tls is None else self._tls,
            # A kept connection to an address would serve all names that lead to it.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
            timeout=None,  # callers limit the time of everything together
        )

    async def close(self) -> None:
        """Close the client."""
        if "_client" in vars(self):
            await self._client.aclose()

    async def find_addresses(self, url: httpx2.URL) -> list[str]:
        """The addresses of the host of a URL; raises the errors of `find_addresses`."""
        host, port = _find_host(url)
        return await find_addresses(
            host, port, allow_private=self._allow_private, resolver=self._resolver
        )

    async def send(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], content: bytes | None = None
    ) -> httpx2.Response:
        """The answer, whose body is not read yet; the caller closes it.

        All addresses of the host are tried in order until one accepts the connection.
        """
        addresses = await self.find_addresses(url)
        host, _ = _find_host(url)
        for n_left, address in reversed(list(enumerate(reversed(addresses)))):
            request = self._client.build_request(
                method,
                url.copy_with(host=address),
                content=content,
                headers={**headers, "host": url.netloc.decode("ascii")},
                extensions={"sni_hostname": host},
            )
            try:
                return await self._client.send(request, stream=True)
            except httpx2.ConnectError:
                if not n_left:
                    raise
        raise AssertionError("there is at least one address")


def _find_host(url: httpx2.URL) -> tuple[str, int]:
    """The host as DNS has it, and the port."""
    port = url.port or _DEFAULT_PORTS.get(url.scheme, 0)
    return url.raw_host.decode("ascii"), port
