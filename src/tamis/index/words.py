"""Constants as 64-bit words that have the same order as the constants."""

from __future__ import annotations

import struct
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.index.carriers import EPOCH, EPOCH_ORDINAL, MICROSECOND
from tamis.index.kernels.tests import AS_DOUBLE, AS_INTEGER, AS_NUMBER, AS_TEXT, LEAST_NUMBER
from tamis.language.types import INT64_MIN

if TYPE_CHECKING:
    from tamis.language.types import Type

_MASK: Final = 0x7FFFFFFFFFFFFFFF


def words_as(type_: Type) -> int:
    """How values of the type become words: strings and decimals are numbered texts."""
    if type_.name in ("string", "decimal"):
        return AS_TEXT
    if type_.name == "number":
        return AS_NUMBER
    return AS_DOUBLE if type_.is_floating else AS_INTEGER


def to_word(value: Any, type_: Type) -> int:
    """A constant that is not stored as text: of another type, or a number of few digits."""
    if type_.is_floating or type_.name == "number":
        bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
        return bits if bits >= 0 else bits ^ _MASK
    if isinstance(value, datetime):
        return (value - EPOCH) // MICROSECOND
    return value.toordinal() - EPOCH_ORDINAL if isinstance(value, date) else int(value)


def numbered_word(text: int) -> int:
    """The word of a number stored as text, since its double does not determine it. Such words are
    below those of all doubles.
    """
    return INT64_MIN + text


def are_numbered(words: np.ndarray) -> np.ndarray:
    """Which words are those of numbers stored as text."""
    numbered: np.ndarray = words < LEAST_NUMBER
    return numbered


def texts_of_words(words: np.ndarray) -> np.ndarray:
    """The numbers of the texts, as given to `numbered_word`."""
    texts: np.ndarray = words - INT64_MIN
    return texts


def floats_of(words: np.ndarray) -> np.ndarray:
    """The floating-point constants of these words."""
    bits: np.ndarray = np.where(words >= 0, words, words ^ _MASK)
    return bits.view(np.float64)
