"""Constants as 64-bit words that have the same order as the constants."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.index.carriers import CARRIAGES, DECIMALS, FLOATS, INTEGERS, NUMBERS, OTHERS, TEXTS
from tamis.index.kernels.bases import (
    LEAST_NUMBER,
    NO_WORDS,
    WORD_OF_DECIMAL,
    WORD_OF_DOUBLE,
    WORD_OF_INTEGER,
    WORD_OF_NUMBER,
    WORD_OF_TEXT,
)
from tamis.language.types import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from tamis.language.types import Type

_MASK: Final = 0x7FFFFFFFFFFFFFFF
_WORDS_AS: Final = {
    INTEGERS: WORD_OF_INTEGER,
    OTHERS: NO_WORDS,
    FLOATS: WORD_OF_DOUBLE,
    NUMBERS: WORD_OF_NUMBER,
    TEXTS: WORD_OF_TEXT,
    DECIMALS: WORD_OF_DECIMAL,
}


def words_as(type_: Type) -> int:
    """How values of the type become words: strings and decimals are numbered texts."""
    return _WORDS_AS[CARRIAGES[type_.name].carrier]


def least_word(type_: Type) -> int:
    """The word of the type's least value if each value has a successor, else the greatest word."""
    carriage = CARRIAGES[type_.name]
    return carriage.limits[0] if carriage.carrier == INTEGERS else INT64_MAX


def to_word(value: Any, type_: Type) -> int:
    """A constant that is not stored as text: of another type, or a number of few digits."""
    if type_.is_floating or type_.name == "number":
        bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
        return bits if bits >= 0 else bits ^ _MASK
    return CARRIAGES[type_.name].to_number(value)


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
