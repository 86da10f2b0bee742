"""The Arrow types of attributes; a separate module, since most of the language needs no Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from tamis.language.types import Type

_SCALARS: Final = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def arrow_type(type_: Type) -> pa.DataType:
    """The Arrow type that holds all values of a type; None for `any`."""
    if type_.element is not None:
        return pa.list_(arrow_type(type_.element))
    if type_.name == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    return _SCALARS[type_.name]
