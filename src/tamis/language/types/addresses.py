"""IP addresses of both versions, and networks of them.

A value is its 128-bit number as 32 hexadecimal digits, so that texts compare as addresses do: in
Python, in kernels and in Spark SQL. An IPv4 address has the number of its IPv6 mapping: 1.2.3.4
and ::ffff:1.2.3.4 are one address.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_network
from typing import Any, Final, NamedTuple

from tamis.language.ast import Literal
from tamis.language.types.texts import STRING, print_string
from tamis.language.types.type import Kind, Type, WrongTypeError, wrong

IP = Type("ip")
ADDRESS_DIGITS: Final = r"^[0-9a-f]{32}$"
_LAST: Final = 2**128 - 1
_MAPPED: Final = 0xFFFF << 32  # ::ffff:0:0, where the IPv4 addresses begin
_WILD: Final = re.compile(r"((?:(?:0|[1-9]\d{0,2})\.){1,3})\*(?:\.\*){0,2}")  # 10.0.*, 10.0.*.*
_KNOWN: Final = 1 << 16  # cached texts; addresses repeat in events


class Address(str):
    """The 32 digits of an address that was already parsed."""

    __slots__ = ()


class Network(NamedTuple):
    """The addresses from the first to the last, both inclusive."""

    first: Address
    last: Address


def _digits(number: int) -> Address:
    return Address(f"{number:032x}")


def _mapped(address: IPv4Address | IPv6Address) -> int:
    number = int(address)
    return number if isinstance(address, IPv6Address) else _MAPPED + number


@lru_cache(maxsize=_KNOWN)
def parse_address(text: str) -> Address:
    """The address written as 10.0.0.1 or as 2001:db8::1, without a zone."""
    try:
        address = ip_address(text)
    except ValueError:
        allowed = "write it as 10.0.0.1 (without leading zeros) or 2001:db8::1"
        if "/" in text:
            allowed = "in_network() tests whether an address is in a network"
        raise WrongTypeError(f"{text[:60]!r} is not an IP address; {allowed}") from None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise WrongTypeError(f"{text[:60]!r} has a zone; addresses are compared without one")
    return _digits(_mapped(address))


def print_address(value: str) -> str:
    """The address in the usual notation; IPv4 with dots."""
    number = int(value, 16)
    is_short = number >> 32 == 0xFFFF
    return str(IPv4Address(number - _MAPPED) if is_short else IPv6Address(number))


@lru_cache(maxsize=_KNOWN)
def parse_network(text: str) -> Network:
    """The network written as 10.0.0.0/8 or 2001:db8::/32; without a slash, one address."""
    address, slash, length = text.partition("/")
    if wild := _WILD.fullmatch(text):
        raise _not_a_network(text, f"write '{_without_wildcards(wild)}'")
    first = parse_address(address)
    if not slash:
        return Network(first, first)
    # Python also accepts netmasks, 10.0.0.0/255.0.0.0.
    if not (length.isascii() and length.isdigit()):
        raise _not_a_network(text)
    if length != str(int(length)):
        raise _not_a_network(text, f"write '{address}/{int(length)}', without leading zeros")
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise _not_a_network(text) from None
    if network.network_address != ip_address(address):
        written = _meant_network(first, int(length)) or network
        raise WrongTypeError(f"'{text}' has bits behind its first {length}; write '{written}'")
    return Network(first, _digits(int(first, 16) + int(network.hostmask)))


def contains_ipv4(text: str) -> bool:
    """Whether a network that is written with an IPv6 address contains every IPv4 address."""
    network = parse_network(text)
    is_ipv6 = ":" in text
    return is_ipv6 and network.first < _ALL_IPV4.first and network.last >= _ALL_IPV4.last


def _meant_network(first: Address, length: int) -> IPv4Network | None:
    """The IPv4 network of a mapped address, ::ffff:10.1.2.3, and a prefix length, which counts
    either the bits of an IPv4 address or all 128; None for other addresses and lengths.
    """
    number = int(first, 16) - _MAPPED
    short = length - 96 if length >= 96 else length
    if not 0 <= number < 2**32 or short > 32:
        return None
    return IPv4Network((number, short), strict=False)


def _without_wildcards(wild: re.Match[str]) -> str:
    """The network of 10.0.*, or of 10.0.*.*: 10.0.0.0/16."""
    known = wild[1].strip(".").split(".")
    return ".".join(known + ["0"] * (4 - len(known))) + f"/{8 * len(known)}"


def _not_a_network(
    text: str, allowed: str = "write it as 10.0.0.0/8 or 2001:db8::/32"
) -> WrongTypeError:
    return WrongTypeError(f"{text[:60]!r} is not a network; {allowed}")


ALL_ADDRESSES: Final = Network(_digits(0), _digits(_LAST))
_ALL_IPV4: Final = Network(_digits(_MAPPED), _digits(_MAPPED + 2**32 - 1))


def join_networks(networks: list[Network]) -> list[Network]:
    """The same addresses in the fewest ranges, ascending."""
    joined: list[Network] = []
    for network in sorted(networks):
        if joined and int(network.first, 16) <= int(joined[-1].last, 16) + 1:
            joined[-1] = Network(joined[-1].first, max(joined[-1].last, network.last))
        else:
            joined.append(network)
    return joined


def _read(value: Any, type_: Type) -> Address:
    if isinstance(value, Address):
        return value
    if isinstance(value, str):
        return parse_address(value)
    if not isinstance(value, IPv4Address | IPv6Address):
        raise wrong(value, type_)
    return parse_address(str(value))


def _fit(literal: Literal, type_: Type) -> Literal | None:
    if literal.type == IP:
        return literal
    if literal.type != STRING:
        return None
    return Literal(parse_address(literal.value), IP, literal.span)


def _hint(literal: Literal, type_: Type) -> str:
    return "write an address in quotes: '10.0.0.1'"


def _step(value: str, n_steps: int) -> Address | None:
    number = int(value, 16) + n_steps
    return _digits(number) if 0 <= number <= _LAST else None


KINDS = (
    Kind(
        "ip",
        ("inet",),
        _read,
        fit=_fit,
        hint=_hint,
        print=lambda value: print_string(print_address(value)),
        print_for_spark=print_string,
        show=print_address,
        is_spelled=True,
        step=_step,
        arrow=lambda pa, type_: pa.string(),
        classes=(str, IPv4Address, IPv6Address),
        filler=_digits(0),
    ),
)
