"""The Arrow types of attributes; a separate module, since most of the language needs no Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.language.types import KINDS

if TYPE_CHECKING:
    from tamis.language.types import Type


def arrow_type(type_: Type) -> pa.DataType:
    """The Arrow type that holds all values of a type; there is none for `any` and `number`."""
    arrow = KINDS[type_.name].arrow
    if arrow is None:
        raise KeyError(type_.name)
    return arrow(pa, type_)
