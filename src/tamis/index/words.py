"""Constants as 64-bit words that compare as the constants do."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.index.kernels.tests import AS_DOUBLE, AS_INTEGER, AS_TEXT

if TYPE_CHECKING:
    from tamis.language.types import Type

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MASK: Final = 0x7FFFFFFFFFFFFFFF


def words_as(type_: Type) -> int:
    """How values of the type become words: strings and decimals as numbered texts."""
    if type_.name in ("string", "decimal"):
        return AS_TEXT
    return AS_DOUBLE if type_.is_floating else AS_INTEGER


def to_word(value: Any, type_: Type) -> int:
    """A constant of a type that is not kept as text."""
    if type_.is_floating:
        bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
        return bits if bits >= 0 else bits ^ _MASK
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    return value.toordinal() if isinstance(value, date) else int(value)


def from_words(words: np.ndarray, type_: Type) -> list[Any]:
    """The constants whose words these are."""
    if type_.is_floating:
        bits = np.where(words >= 0, words, words ^ _MASK)
        return list(bits.view(np.float64).tolist())
    match type_.name:
        case "date":
            return [date.fromordinal(word) for word in words.tolist()]
        case "timestamp":
            return [_EPOCH + word * _MICROSECOND for word in words.tolist()]
        case "boolean":
            return [bool(word) for word in words.tolist()]
        case _:
            return list(words.tolist())
