"""Where words begin and end: Unicode's default word boundaries (UAX #29).

The characters of a text become a string of their classes, and one regular expression finds the
words in it. A word contains a letter, a number or an emoji; characters between words are dropped.
What differs from the standard is listed in `docs/keywords.md`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, Final

from tamis.text.word_break_classes import RANGES

if TYPE_CHECKING:
    from collections.abc import Iterator

BREAK: Final = "O"  # the class of all characters that RANGES does not list

# Classes in the order of the standard's rules; [EZ]*+ is WB4, marks belong to what they follow.
_LETTER = r"A[EZ]*+(?:[LBQ][EZ]*+(?=A))?"  # WB5 to WB7: can't, example.com
_NUMBER = r"N[EZ]*+(?:[MBQ][EZ]*+(?=N))?"  # WB8, WB11, WB12: 3,14
_CORE = rf"(?:(?:{_LETTER}|{_NUMBER})++|(?:K[EZ]*+)++)"  # WB9, WB10, WB13
_LINK = r"(?:U[EZ]*+)"  # WB13a, WB13b: snake_case
_WORD: Final = re.compile(
    rf"{_LINK}*{_CORE}(?:{_LINK}++{_CORE})*+{_LINK}*+"
    r"|P[EZ]*+(?:(?<=Z)P[EZ]*+)*+"  # WB3c: emoji joined by ZWJ
    r"|R[EZ]*+(?:R[EZ]*+)?"  # WB15, WB16: flags
    r"|I[EZ]*+"
)
# The same for texts of ASCII characters, without their classes: in a fifth of the time.
_ASCII_LINK = r"(?:(?<=[A-Za-z])[.'](?=[A-Za-z])|(?<=[0-9])[,;.'](?=[0-9]))"
_ASCII_WORD: Final = re.compile(
    rf"_*+[A-Za-z0-9][A-Za-z0-9_]*+(?:{_ASCII_LINK}[A-Za-z0-9][A-Za-z0-9_]*+)*+"
)
_SPAN: Final = re.Match.span


def segment(text: str) -> list[str]:
    """The words of the text, unchanged and in order."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return [text[begin:end] for begin, end in segment_spans(text)]


def segment_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the words of the text begin and end, in order."""
    if text.isascii():
        yield from map(_SPAN, _ASCII_WORD.finditer(text))
    else:
        yield from map(_SPAN, _WORD.finditer(text.translate(_CLASSES)))


def class_of(character: str) -> str:
    """The class of one character."""
    return _CLASSES[ord(character)]


class _Classes(dict[int, str]):
    """The class of each code point, computed on first use."""

    def __missing__(self, code_point: int) -> str:
        firsts, lasts, classes = _ranges()
        at = bisect_right(firsts, code_point) - 1
        is_inside = at >= 0 and code_point <= lasts[at]
        self[code_point] = found = classes[at] if is_inside else BREAK
        return found


_CLASSES: Final = _Classes()


@cache
def _ranges() -> tuple[list[int], list[int], list[str]]:
    """The first and last code point of each range with its class, ascending."""
    ranges = []
    for name, listed in RANGES.items():
        for written in listed.split():
            first, _, last = written.partition("-")
            ranges.append((int(first, 16), int(last or first, 16), name))
    ranges.sort()
    firsts, lasts, classes = zip(*ranges, strict=True)
    return list(firsts), list(lasts), list(classes)
