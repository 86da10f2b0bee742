"""Columns: the attributes that are compared with constants, and how an index spells their values.

Values are read as the reference evaluator reads them. Strings are terms; all other values are
integers in the same order, so that a comparison is a range.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.language.ast import Attribute
from tamis.language.comparators import Comparator
from tamis.language.types import INT64_MAX, INT64_MIN, parse_type
from tamis.language.types.moments import to_days, to_microseconds
from tamis.language.types.numbers import to_double
from tamis.logic.evaluate import attribute_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.ast import Literal
    from tamis.language.types import Type

_FLOATING: Final = ("float", "double")
_ROUNDED: Final = ("number", "decimal")  # indexed as doubles: several values may be equal
_CODED: Final = ("boolean", "integer", "date", "timestamp", *_FLOATING, *_ROUNDED)


class Column(NamedTuple):
    """An attribute, and the type by which it is read."""

    path: tuple[str, ...]
    type: str

    @classmethod
    def of(cls, attribute: Any) -> Column | None:
        """The column of an attribute; None if its value is derived, or of a kind without one."""
        if type(attribute) is not Attribute or not attribute.path or attribute.type is None:
            return None
        type_ = attribute.type
        member = type_.element or type_
        if type_.reads or member.reads:
            return None
        if member.name == "string":
            return cls(attribute.path, str(type_) if type_.element else "string")
        is_coded = type_.element is None and type_.name in _CODED
        return cls(attribute.path, str(type_)) if is_coded else None

    @property
    def has_terms(self) -> bool:
        """Whether its values are terms, and not integers."""
        return "string" in self.type

    @property
    def is_array(self) -> bool:
        """Whether an event may have several values."""
        return self.has_terms and self.type != "string"

    @property
    def is_rounded(self) -> bool:
        """Whether different values may have one code."""
        return self.type.startswith(_ROUNDED)


class Reader:
    """Reads the values of a column."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self._attribute = Attribute(column.path, parse_type(column.type))

    def read(self, event: Mapping[str, Any]) -> Any:
        """The value, None if the event has none of the type: the strings, or the code."""
        value = attribute_value(self._attribute, event)
        if value is None:
            return None
        if self.column.is_array:
            return [own for own in value if own is not None]
        return [value] if self.column.has_terms else _code(self.column, value)


def _code(column: Column, value: Any) -> int:
    if column.is_rounded or column.type in _FLOATING:
        return _order_double(to_double(value))
    match column.type:
        case "date":
            return to_days(value)
        case "timestamp":
            return to_microseconds(value)
        case _:
            return int(value)


def _order_double(value: float) -> int:
    """An integer in the order of doubles: NaN is above all others, and -0.0 is 0.0."""
    plain = math.nan if math.isnan(value) else value + 0.0
    bits: int = struct.unpack("<q", struct.pack("<d", plain))[0]
    return bits if bits >= 0 else bits ^ INT64_MAX


# ── constants ───────────────────────────────────────────────────────────────────────────────


class Bounds(NamedTuple):
    """The codes of the values that satisfy a comparison, and perhaps of others."""

    low: int
    high: int


def find_bounds(column: Column, operator: Comparator, literal: Literal) -> Bounds | None:
    """The codes that satisfy a comparison with =, <, <=, > or >=; None if they are not a range."""
    code = _code_constant(column, literal)
    if code is None:
        return None
    is_open = not column.is_rounded  # otherwise, unequal values may have the code of the constant
    match operator:
        case Comparator.EQUAL:
            return Bounds(code, code)
        case Comparator.BELOW:
            return Bounds(INT64_MIN, code - is_open)
        case Comparator.AT_MOST:
            return Bounds(INT64_MIN, code)
        case Comparator.ABOVE:
            return Bounds(code + is_open, INT64_MAX)
        case Comparator.AT_LEAST:
            return Bounds(code, INT64_MAX)
        case Comparator.NOT_EQUAL | Comparator.SAME:
            return None


def _code_constant(column: Column, literal: Literal) -> int | None:
    type_: Type = literal.type
    is_floating = column.is_rounded or column.type in _FLOATING
    if type_.name != column.type and not (is_floating and type_.is_numeric):
        return None  # compared in another order
    code = _code(column, literal.value)
    return code if INT64_MIN < code < INT64_MAX else None
