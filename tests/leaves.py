"""Leaves of an index, as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.index.describe import LeafReader
from tamis.language.printer import print_expression

if TYPE_CHECKING:
    from tamis.index.contents import Contents


def describe_leaf(contents: Contents, leaf: int) -> str:
    """The test of one leaf, as an expression."""
    return print_expression(LeafReader(contents).read(leaf))
