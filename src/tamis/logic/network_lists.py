"""Lint of the networks of in_network(): repeated ones, and those that contain more than they
seem to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.ast import InNetwork
from tamis.language.names import print_path
from tamis.language.types.addresses import (
    ALL_ADDRESSES,
    contains_ipv4,
    join_networks,
    parse_network,
)
from tamis.logic.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.language.ast import Condition


def find_network_lists(leaf: Condition) -> Iterator[Finding]:
    """Findings for the networks of a leaf."""
    if not isinstance(leaf, InNetwork):
        return
    name = print_path(leaf.operand.path)
    if join_networks([parse_network(text) for text in leaf.networks]) == [ALL_ADDRESSES]:
        message = f"true wherever {name} is present: the networks contain every address"
        yield Finding("always-true", message, leaf.span, hint=f"write {name} IS NOT NULL")
        return
    for text in filter(contains_ipv4, leaf.networks):
        message = f"'{text}' contains every IPv4 address: they are part of ::ffff:0:0/96"
        hint = f"to leave them out, add AND NOT in_network({name}, '0.0.0.0/0')"
        yield Finding("all-ipv4", message, leaf.span, hint=hint)
    if len(set(map(parse_network, leaf.networks))) < len(leaf.networks):
        yield Finding("duplicate", "a network is listed twice", leaf.span)
