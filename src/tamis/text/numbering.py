"""The terms of an index by the numbers of their words, as flat arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.text.analysers import ANY_WORD
from tamis.text.kernels.find import ANY_NUMBER, Terms
from tamis.text.terms import read_term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.kernels.arrays import Int64, UInt8
    from tamis.text.analysers import Analyser


class WordTable(NamedTuple):
    """The distinct words of all terms in the order of their bytes, by which they are numbered."""

    offsets: Int64  # [n_words + 1]
    data: UInt8  # UTF-8


class TermArrays(NamedTuple):
    """All that is needed to find terms in texts."""

    words: WordTable
    terms: Terms


def number_terms(analyser: Analyser, terms: Sequence[str]) -> TermArrays:
    """Words by number, phrases by their longest word, which is likely their rarest."""
    parts_of = [read_term(spelled, analyser.name) for spelled in terms]
    distinct = {part for parts in parts_of for part in parts if part != ANY_WORD}
    words = sorted(distinct)  # of code points, which is that of their UTF-8
    numbers = {word: number for number, word in enumerate(words)}
    term_of_word = np.full(len(words), -1, dtype=np.int32)
    phrases: list[tuple[int, list[int], int]] = []  # term, its words, where the anchor stands
    for term, parts in enumerate(parts_of):
        if len(parts) == 1:
            term_of_word[numbers[parts[0]]] = term
        else:
            own = [numbers.get(part, ANY_NUMBER) for part in parts]
            phrases.append((term, own, max(range(len(parts)), key=lambda i: len(parts[i]))))
    anchors = np.array([own[place] for _, own, place in phrases], dtype=np.int64)
    found = Terms(
        term_of_word,
        _starts(np.bincount(anchors, minlength=len(words))),
        np.argsort(anchors, kind="stable").astype(np.int32),
        np.array([place for *_, place in phrases], dtype=np.int32),
        _starts(np.array([len(own) for _, own, _ in phrases], dtype=np.int64)),
        np.array([number for _, own, _ in phrases for number in own], dtype=np.int32),
        np.array([term for term, *_ in phrases], dtype=np.int32),
    )
    arrays = TermArrays(encode_words(words), found)
    for group in arrays:
        for array in group:
            array.flags.writeable = False  # as when mapped from a file
    return arrays


def encode_words(words: Sequence[str]) -> WordTable:
    """The words as UTF-8, end to end."""
    encoded = [word.encode() for word in words]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    return WordTable(_starts(lengths), np.frombuffer(b"".join(encoded), dtype=np.uint8))


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
