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
from tamis.text.kernels.find import (
    MANY,
    Lists,
    PieceTexts,
    WordScratch,
    find_piece_terms,
    find_terms,
    find_words,
)
from tamis.text.kernels.wildcards import find_patterns
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
        self.arrays = arrays
        self.n_plain = len(arrays.words.offsets) - 1
        self.n_patterns = len(arrays.patterns.is_decided)
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
        find_words(encode_words(words), self.arrays.words, numbers)
        return numbers


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
        self._lists, self._n_lists = _make_lists(), 0  # the numbers of words
        self._terms = np.empty(_FIRST_SIZE, dtype=np.int32)
        self._term_lists, self._n_term_lists = _make_lists(), 0  # the terms of pieces
        self._is_anchored = np.empty(_FIRST_SIZE, dtype=np.bool_)
        longest = np.diff(finder.arrays.terms.phrase_starts).max(initial=0)
        self._places = np.empty(int(longest), dtype=np.int64)
        self._last_read = np.full(finder.n_plain, -1, dtype=np.int32)
        self._last_seen = np.full(finder.n_terms, -1, dtype=np.int32)
        self._n_texts = 0

    @property
    def is_full(self) -> bool:
        """Whether the cache must be cleared."""
        n_pieces = int(self._pieces.n_pieces[0])
        n_bytes = int(self._pieces.starts[n_pieces])
        n_items = self._lists.starts[self._n_lists] + self._term_lists.starts[self._n_term_lists]
        n_bytes += self._words.itemsize * int(n_items)
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
        texts = PieceTexts(
            found[: ends[-1]],
            ends,
            self._word_starts,
            self._words,
            self._lists,
            self._terms,
            self._term_lists,
            self._is_anchored,
        )
        return self._find_terms(texts)

    def _find_terms(self, texts: PieceTexts) -> tuple[np.ndarray, np.ndarray]:
        room = 2 * len(texts.pieces) + 16
        runs = []
        text = 0
        while text < len(texts.ends):
            sequence, firsts, anchors, rows, found = (
                np.empty(room, dtype=np.int32) for _ in range(5)
            )
            text, n_found = find_terms(
                text,
                texts,
                self._finder.arrays.terms,
                self._last_seen,
                self._n_texts,
                WordScratch(
                    sequence,
                    firsts,
                    anchors,
                    self._places,
                    self._last_read,
                    self._finder.n_plain,
                ),
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
        texts = [data[begin:stop].decode() for begin, stop in pairwise(starts)]
        lengths, words = self._number_words(texts)
        n_words = int(self._word_starts[first])
        self._word_starts = grown(self._word_starts, end + 1)
        self._word_starts[first + 1 : end + 1] = n_words + np.cumsum(lengths)
        self._words = grown(self._words, n_words + len(words))
        self._words[n_words : n_words + len(words)] = words
        self._terms = grown(self._terms, end)
        self._is_anchored = grown(self._is_anchored, end)
        starts = grown(self._term_lists.starts, self._n_term_lists + end - first + 1)
        n_items = int(starts[self._n_term_lists]) + int(np.sum(self._count_numbers(words)))
        # One more: what is no term is overwritten.
        items = grown(self._term_lists.items, n_items + 1)
        self._term_lists = Lists(starts, items)
        self._n_term_lists = find_piece_terms(
            lengths,
            words,
            self._lists,
            self._finder.arrays.terms,
            self._terms[first:end],
            self._is_anchored[first:end],
            self._term_lists,
            self._n_term_lists,
        )
        self._n_analysed = end

    def _count_numbers(self, words: np.ndarray) -> np.ndarray:
        """How many numbers each word has, at most."""
        n_own = np.ones(len(words), dtype=np.int64)
        lists = MANY - words[words <= MANY]
        n_own[words <= MANY] = self._lists.starts[lists + 1] - self._lists.starts[lists]
        return n_own

    def _number_words(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """How many words each text has, and their numbers, as in `PieceTexts`."""
        finder = self._finder
        if finder.n_patterns == 0:
            plain = list(map(finder.analyser.words, texts))
            lengths = np.fromiter(map(len, plain), np.int64, len(plain))
            return lengths, finder.number_words([word for own in plain for word in own])
        found = list(map(finder.analyser.read, texts))
        lengths = np.fromiter((len(own.words) for own in found), np.int64, len(found))
        numbers = finder.number_words([word for own in found for word in own.words])
        self._find_patterns([word for own in found for word in own.folded], numbers)
        return lengths, numbers

    def _find_patterns(self, folded: list[str], numbers: np.ndarray) -> None:
        """Replace the numbers of words that fit patterns."""
        arrays = self._finder.arrays
        words = encode_words(folded)
        starts = grown(self._lists.starts, self._n_lists + len(numbers) + 1)
        items = self._lists.items
        at = 0
        while at < len(numbers):
            n_items = int(starts[self._n_lists])
            items = grown(items, n_items + _FIRST_SIZE + self._finder.n_patterns + 1)
            at, self._n_lists = find_patterns(
                at,
                words,
                numbers,
                self._finder.n_plain,
                arrays.patterns,
                arrays.prefixes,
                arrays.suffixes,
                arrays.insides,
                starts,
                items,
                self._n_lists,
            )
        self._lists = Lists(starts, items)

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


def _make_lists() -> Lists:
    return Lists(np.zeros(_FIRST_SIZE, np.int64), np.empty(_FIRST_SIZE, np.int32))


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
