"""Finds the terms of an index in many texts at once.

A kernel cuts texts into pieces (`kernels.scan`). Each distinct piece is analysed once and cached,
so that folding and stemming cost nothing after the first thousand documents. The cache is cleared
when it has grown too large.
"""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.text.kernels import scan
from tamis.text.kernels.find import LOOK, NO_TERM, PieceTexts, find_terms, find_words
from tamis.text.numbering import encode_words
from tamis.text.segment import class_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.text.analysers import Analyser
    from tamis.text.numbering import TermArrays

BLOCK_BYTES: Final = 1 << 18  # of texts cut at a time
MAX_PIECES: Final = 1 << 20  # in the cache
MAX_BYTES: Final = 1 << 25
MAX_TEXTS: Final = 1 << 30  # counted in 32 bits
_FIRST_SIZE: Final = 1 << 12
_KIND_OF: Final = {
    "A": scan.LETTER,
    "N": scan.DIGIT,
    "U": scan.LINK,
    "L": scan.MID_LETTER,
    "M": scan.MID_NUMBER,
    "B": scan.MID_BOTH,
    "Q": scan.MID_BOTH,
}
_AS_IT_IS: Final = np.frombuffer(bytes(range(256)), dtype=np.uint8)
_LOWERED: Final = np.frombuffer(bytes(range(256)).lower(), dtype=np.uint8)
_KINDS: Final = np.array(
    [
        *(scan.SPACE for _ in range(33)),
        *(_KIND_OF.get(class_of(chr(at)), scan.OTHER) for at in range(33, 128)),
        *(scan.BEYOND for _ in range(128, 256)),
    ],
    dtype=np.uint8,
)


class TermFinder:
    """Finds terms in texts. Made once; each thread that uses it has its own cache of pieces."""

    def __init__(self, analyser: Analyser, arrays: TermArrays, n_terms: int) -> None:
        self.analyser = analyser
        self.n_terms = n_terms
        self._words, self.terms = arrays
        self._local = threading.local()
        # Words in lower case also stand for upper case if the analyser folds case.
        self.lowered = _AS_IT_IS if analyser.is_turkish else _LOWERED

    def find(self, offsets: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each text, its number and each distinct term in it: int32[n], int32[n].

        Text i is data[offsets[i]:offsets[i + 1]], UTF-8.
        """
        memory: _Memory | None = getattr(self._local, "memory", None)
        if memory is None or memory.is_full:
            memory = self._local.memory = _Memory(self)
        runs = [(np.empty(0, np.int32), np.empty(0, np.int32))]
        n_texts = len(offsets) - 1
        first = 0
        while first < n_texts:
            limit = int(np.searchsorted(offsets, offsets[first] + BLOCK_BYTES, side="right")) - 1
            last = min(max(limit, first + 1), n_texts)
            rows, found = memory.find(offsets[first : last + 1], data)
            runs.append((rows + np.int32(first), found))
            first = last
        all_rows, all_found = zip(*runs, strict=True)
        return np.concatenate(all_rows), np.concatenate(all_found)

    def number_words(self, words: Sequence[str]) -> np.ndarray:
        """The number of each word, or NO_WORD: int32[n]."""
        numbers = np.empty(len(words), dtype=np.int32)
        find_words(encode_words(words), self._words, numbers)
        return numbers

    def terms_of(self, lengths: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The single term of each piece, given its number of words; NO_TERM or LOOK if there is
        none.
        """
        terms = self.terms
        # The last entry is for NO_WORD.
        of_word = np.append(terms.term_of_word, np.int32(NO_TERM))
        is_anchor = np.append(np.diff(terms.anchor_starts) > 0, False)
        of_word[is_anchor] = LOOK
        found = np.where(lengths == 0, NO_TERM, LOOK).astype(np.int32)
        is_single = lengths == 1
        found[is_single] = of_word[words[(np.cumsum(lengths) - lengths)[is_single]]]
        return found


class _Memory:
    """The pieces that one thread has seen, and the words of each."""

    def __init__(self, finder: TermFinder) -> None:
        self._finder = finder
        self._pieces = scan.Pieces(
            np.full((2 * _FIRST_SIZE, scan.N_FIELDS), -1, dtype=np.int64),
            np.zeros(_FIRST_SIZE + 1, dtype=np.int64),
            np.empty(8 * _FIRST_SIZE, dtype=np.uint8),
            np.zeros(1, dtype=np.int64),
        )
        self._n_analysed = 0
        self._word_starts = np.zeros(_FIRST_SIZE + 1, dtype=np.int64)
        self._words = np.empty(_FIRST_SIZE, dtype=np.int32)
        self._terms = np.empty(_FIRST_SIZE, dtype=np.int32)  # of each piece that is a single term
        self._last_seen = np.full(finder.n_terms, -1, dtype=np.int32)
        self._n_texts = 0

    @property
    def is_full(self) -> bool:
        """Whether the cache must be cleared."""
        n_pieces = int(self._pieces.n_pieces[0])
        n_bytes = int(self._pieces.starts[n_pieces])
        return n_pieces > MAX_PIECES or n_bytes > MAX_BYTES or self._n_texts > MAX_TEXTS

    def find(self, offsets: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The terms of a block of texts."""
        n_texts = len(offsets) - 1
        found = np.empty(int(offsets[-1] - offsets[0]) // 2 + n_texts, dtype=np.int32)
        cuts = _make_cuts(int(np.diff(offsets).max(initial=0)) // 2 + 1)
        ends = np.empty(n_texts, dtype=np.int64)
        text = 0
        while True:
            text = scan.read_pieces(
                text,
                offsets,
                data,
                _KINDS,
                self._finder.analyser.takes_whole,
                self._finder.lowered,
                _AS_IT_IS,
                self._pieces,
                cuts,
                found,
                ends,
            )
            if text == n_texts:
                break
            self._reserve(int(offsets[text + 1] - offsets[text]))
        self._analyse()
        texts = PieceTexts(found[: ends[-1]], ends, self._word_starts, self._words, self._terms)
        return self._find_terms(texts)

    def _find_terms(self, texts: PieceTexts) -> tuple[np.ndarray, np.ndarray]:
        room = 2 * len(texts.pieces) + 16
        runs = []
        text = 0
        while text < len(texts.ends):
            sequence, rows, found = (np.empty(room, dtype=np.int32) for _ in range(3))
            text, n_found = find_terms(
                text,
                texts,
                self._finder.terms,
                self._last_seen,
                self._n_texts,
                sequence,
                rows,
                found,
            )
            runs.append((rows[:n_found], found[:n_found]))
            room *= 2
        self._n_texts += len(texts.ends)
        if len(runs) == 1:
            return runs[0]
        all_rows, all_found = zip(*runs, strict=True)
        return np.concatenate(all_rows), np.concatenate(all_found)

    def _analyse(self) -> None:
        """Analyse the pieces that are new."""
        pieces = self._pieces
        first, end = self._n_analysed, int(pieces.n_pieces[0])
        if first == end:
            return
        data = pieces.arena[pieces.starts[first] : pieces.starts[end]].tobytes()
        starts = (pieces.starts[first : end + 1] - pieces.starts[first]).tolist()
        analyse = self._finder.analyser.words
        found = [analyse(data[begin:stop].decode()) for begin, stop in pairwise(starts)]
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        words = self._finder.number_words([word for own in found for word in own])
        n_words = int(self._word_starts[first])
        self._word_starts = grown(self._word_starts, end + 1)
        self._word_starts[first + 1 : end + 1] = n_words + np.cumsum(lengths)
        self._words = grown(self._words, n_words + len(words))
        self._words[n_words : n_words + len(words)] = words
        self._terms = grown(self._terms, end)
        self._terms[first:end] = self._finder.terms_of(lengths, words)
        self._n_analysed = end

    def _reserve(self, n_bytes: int) -> None:
        """Make room for the pieces of one more text."""
        pieces = self._pieces
        n_then = int(pieces.n_pieces[0]) + n_bytes // 2 + 1
        n_bytes += int(pieces.starts[pieces.n_pieces[0]])
        size = max(len(pieces.table), 1 << (2 * n_then).bit_length())
        table = np.full((size, scan.N_FIELDS), -1, dtype=np.int64)
        scan.rehash_pieces(pieces.table, table)
        starts, arena = grown(pieces.starts, n_then + 1), grown(pieces.arena, n_bytes)
        self._pieces = scan.Pieces(table, starts, arena, pieces.n_pieces)


def _make_cuts(n_cuts: int) -> scan.Cuts:
    begins, ends, keys, heads = (np.empty(n_cuts, dtype=np.int64) for _ in range(4))
    return scan.Cuts(begins, ends, np.empty(n_cuts, dtype=np.bool_), keys, heads)


def grown(array: np.ndarray, n_least: int) -> np.ndarray:
    """The array, or a copy twice as long if it is too short."""
    if n_least <= len(array):
        return array
    longer = np.zeros(max(n_least, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
