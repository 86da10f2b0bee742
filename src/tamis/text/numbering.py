"""The terms of an index by the numbers of their words, as flat arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.text.analysers import ANY_WORD
from tamis.text.kernels.find import ANY_NUMBER, Terms
from tamis.text.pattern_tables import build_patterns, find_starts, join_bytes
from tamis.text.terms import NEAR, PHRASE, read_term
from tamis.text.wildcards import has_wildcard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.kernels.arrays import Int64, UInt8
    from tamis.text.analysers import Analyser
    from tamis.text.kernels.wildcards import Literals, Patterns


class WordTable(NamedTuple):
    """The distinct words of all terms in the order of their bytes, by which they are numbered."""

    offsets: Int64  # [n_words + 1]
    data: UInt8  # UTF-8


class TermArrays(NamedTuple):
    """All that is needed to find terms in texts."""

    words: WordTable
    terms: Terms
    patterns: Patterns
    prefixes: Literals
    suffixes: Literals
    insides: Literals


def number_terms(analyser: Analyser, terms: Sequence[str]) -> TermArrays:
    """Words by number, phrases by their longest word, which is likely their rarest."""
    read = [read_term(spelled, analyser.name) for spelled in terms]
    distinct = {word for term in read for word in term.words if word != ANY_WORD}
    patterns = set() if analyser.takes_whole else set(filter(has_wildcard, distinct))
    # In the order of code points, which is that of their UTF-8.
    plain, open_ = sorted(distinct - patterns), sorted(patterns)
    words = [*plain, *open_]
    numbers = {word: number for number, word in enumerate(words)}
    term_of_word = np.full(len(words), -1, dtype=np.int32)
    phrases: list[tuple[int, list[int], int]] = []  # term, its words, where the anchor stands
    windows: list[int] = []
    for term, (parts, mode, distance) in enumerate(read):
        if len(parts) == 1:
            term_of_word[numbers[parts[0]]] = term
        else:
            own = [numbers.get(part, ANY_NUMBER) for part in parts]
            phrases.append((term, own, _find_anchor(parts, patterns)))
            windows.append(_find_window(mode, len(parts) + distance))
    anchors = np.array([own[place] for _, own, place in phrases], dtype=np.int64)
    found = Terms(
        term_of_word,
        find_starts(np.bincount(anchors, minlength=len(words))),
        np.argsort(anchors, kind="stable").astype(np.int32),
        np.array([place for *_, place in phrases], dtype=np.int32),
        find_starts(np.array([len(own) for _, own, _ in phrases], dtype=np.int64)),
        np.array([number for _, own, _ in phrases for number in own], dtype=np.int32),
        np.array([term for term, *_ in phrases], dtype=np.int32),
        np.array(windows, dtype=np.int32),
    )
    arrays = TermArrays(encode_words(plain), found, *build_patterns(open_))
    for group in arrays:
        for array in group:
            array.flags.writeable = False  # as when mapped from a file
    return arrays


def _find_anchor(parts: Sequence[str], patterns: set[str]) -> int:
    """The place of the longest word of a phrase; words without wildcards come first."""
    return max(
        range(len(parts)),
        key=lambda i: (parts[i] != ANY_WORD, parts[i] not in patterns, len(parts[i])),
    )


def _find_window(mode: str, n_places: int) -> int:
    return 0 if mode == PHRASE else n_places if mode == NEAR else -n_places


def encode_words(words: Sequence[str]) -> WordTable:
    """The words as UTF-8, end to end."""
    return WordTable(*join_bytes([word.encode() for word in words]))
