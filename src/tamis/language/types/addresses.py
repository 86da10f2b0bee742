"""IP addresses of both versions, and networks of them.

A value is its 128-bit number as 32 hexadecimal digits, so that texts compare as addresses do: in
Python, in kernels and in Spark SQL. An IPv4 address has the number of its IPv6 mapping: 1.2.3.4
and ::ffff:1.2.3.4 are one address.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final, NamedTuple

from tamis.language.ast import Literal
from tamis.language.types.texts import STRING, print_string
from tamis.language.types.type import Kind, Type, WrongTypeError, wrong

IP = Type("ip")
ADDRESS_DIGITS: Final = r"^[0-9a-f]{32}$"
_LAST: Final = 2**128 - 1
_MAPPED: Final = 0xFFFF << 32  # ::ffff:0:0, where the IPv4 addresses begin
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
    first = parse_address(address)
    if not slash:
        return Network(first, first)
    # Python also accepts netmasks, 10.0.0.0/255.0.0.0.
    if not (length.isascii() and length.isdigit()):
        raise _not_a_network(text)
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise _not_a_network(text) from None
    if network.network_address != ip_address(address):
        raise WrongTypeError(f"'{text}' has bits behind its first {length}; write '{network}'")
    return Network(first, _digits(int(first, 16) + int(network.hostmask)))


def _not_a_network(text: str) -> WrongTypeError:
    return WrongTypeError(
        f"{text[:60]!r} is not a network; write it as 10.0.0.0/8 or 2001:db8::/32"
    )


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
