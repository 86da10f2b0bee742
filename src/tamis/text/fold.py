"""Folds words that differ only in case, width or accents to one form."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import normalize

# Marks that are accents or vowel points: Latin, Greek and Cyrillic; Hebrew; Arabic. Marks of other
# scripts act as letters and are kept.
_ACCENTS: Final = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1-\u05c7\u064b-\u065f\u0670]+")
# Soft hyphens, joiners, marks of direction, variation selectors, and the spaces that NFKC makes.
_UNSEEN: Final = re.compile(
    r"[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\s]+"
)
# Letters without a decomposition into a plain letter and an accent; case is folded before.
_PLAIN: Final = str.maketrans(
    dict(zip("æœøðđħıȷłŀŋþŧſ", "ae oe o d d h i j l l n th t s".split(), strict=True))
)
_APOSTROPHES: Final = str.maketrans("‘’＇", "'''")
_TURKISH: Final = str.maketrans({"I": "ı", "İ": "i"})


def fold_case(word: str, *, is_turkish: bool = False) -> str:
    """The word without case, differences of width, and invisible characters."""
    if word.isascii() and not is_turkish:
        return word.lower()
    word = normalize("NFKC", word)
    if is_turkish:
        word = word.translate(_TURKISH)
    word = _UNSEEN.sub("", word.casefold().translate(_APOSTROPHES))
    return normalize("NFKC", word)


def fold_accents(word: str) -> str:
    """The word, case-folded, without accents."""
    if word.isascii():
        return word
    plain = _ACCENTS.sub("", normalize("NFKD", word).translate(_PLAIN))
    return normalize("NFC", plain)
