"""Finds the terms, words and phrases, of each text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.kernels.compare import compare_bytes
from tamis.kernels.compiled import kernel

if TYPE_CHECKING:
    from tamis.kernels.arrays import Int32, Int64

NO_WORD = -1  # a word that occurs in no term
ANY_NUMBER = -2  # in a phrase: matches any word
NO_TERM = -1  # a piece that is no term
LOOK = -2  # a piece of several words, or one that may be in a phrase


class Terms(NamedTuple):
    """The terms of one attribute: words, and phrases made of these words."""

    term_of_word: Int32  # [n_words], the term that the word is, or -1
    # Phrases, indexed by one of their words, the anchor.
    anchor_starts: Int64  # [n_words + 1]
    anchored: Int32  # [:], numbers of phrases
    anchor_places: Int32  # [n_phrases], position of the anchor in the phrase
    phrase_starts: Int64  # [n_phrases + 1]
    phrase_words: Int32  # [:], words or ANY_NUMBER
    term_of_phrase: Int32  # [n_phrases]


class PieceTexts(NamedTuple):
    """Texts as pieces, and the words of each piece."""

    pieces: np.ndarray  # int32[:], of all texts
    ends: np.ndarray  # int64[n_texts], where each text's pieces end
    word_starts: np.ndarray  # int64[n_pieces + 1]
    words: np.ndarray  # int32[:], numbers of words or NO_WORD
    terms: np.ndarray  # int32[n_pieces], the single term of the piece, NO_TERM or LOOK


@kernel(_nrt=True)
def find_words(
    words,  # WordTable, in any order
    known,  # WordTable, in the order of their bytes, distinct
    numbers,  # int32[n], output
):
    """Write the position of each word among the known words, or NO_WORD."""
    for at in range(len(numbers)):
        begin, end = words.offsets[at], words.offsets[at + 1]
        numbers[at] = NO_WORD
        low, high = 0, len(known.offsets) - 1
        while low < high:
            middle = (low + high) >> 1
            order = compare_bytes(
                known.data,
                known.offsets[middle],
                known.offsets[middle + 1],
                words.data,
                begin,
                end,
            )
            if order == 0:
                numbers[at] = middle
                break
            if order < 0:
                low = middle + 1
            else:
                high = middle


@kernel(_nrt=True)
def find_terms(
    first_text,
    texts,  # PieceTexts
    terms,  # Terms
    last_seen,  # int32[n_terms], the last text with the term, counted over all calls
    n_before,  # number of texts before text 0
    sequence,  # int32[:], scratch: the words of one text
    rows,  # int32[:], output
    found,  # int32[:], output: the distinct terms of each text
):
    """Write (text, term) for texts from `first_text` on while there is room; return the next text
    and the number written.
    """
    begin = texts.ends[first_text - 1] if first_text > 0 else np.int64(0)
    n_found = np.int64(0)
    for text in range(first_text, len(texts.ends)):
        end = texts.ends[text]
        if n_found + end - begin > len(found):
            return text, n_found
        stamp = np.int32(n_before + text)
        n_plain = find_plain_terms(
            texts.pieces[begin:end], texts.terms, last_seen, stamp, text, rows, found, n_found
        )
        if n_plain < 0:
            n_words = spread_words(texts, begin, end, terms, n_found, sequence, len(found))
            if n_words < 0:
                return text, n_found
            # Clear the stamps of the previous attempt, which would hide terms.
            for at in range(begin, end):
                term = texts.terms[texts.pieces[at]]
                if term >= 0:
                    last_seen[term] = -1
            n_plain = find_all_terms(
                sequence[:n_words], terms, last_seen, stamp, text, rows, found, n_found
            )
        n_found = n_plain
        begin = end
    return len(texts.ends), n_found


@kernel(_nrt=True)
def find_plain_terms(pieces, terms_of, last_seen, stamp, text, rows, found, n_found):
    """Write the terms of a text whose pieces are words; return the new total, or -1 if a piece
    needs the full search.
    """
    for piece in pieces:
        term = terms_of[piece]
        if term >= 0:
            if last_seen[term] != stamp:
                last_seen[term] = stamp
                rows[n_found] = text
                found[n_found] = term
                n_found += 1
        elif term == LOOK:
            return np.int64(-1)
    return n_found


@kernel(_nrt=True)
def spread_words(texts, begin, end, terms, n_found, sequence, room):
    """Write the words of one text's pieces; return how many, or -1 if there is no room for them or
    for all possible terms.
    """
    n_words = np.int64(0)
    for at in range(begin, end):
        piece = texts.pieces[at]
        for place in range(texts.word_starts[piece], texts.word_starts[piece + 1]):
            word = texts.words[place]
            if n_words == len(sequence):
                return np.int64(-1)
            sequence[n_words] = word
            n_words += 1
            if word >= 0:
                n_found += 1 + terms.anchor_starts[word + 1] - terms.anchor_starts[word]
    return n_words if n_found <= room else np.int64(-1)


@kernel(_nrt=True)
def find_all_terms(sequence, terms, last_seen, stamp, text, rows, found, n_found):
    """Write the words and phrases of one text; return the new total."""
    for word in sequence:
        if word >= 0:
            term = terms.term_of_word[word]
            if term >= 0 and last_seen[term] != stamp:
                last_seen[term] = stamp
                rows[n_found] = text
                found[n_found] = term
                n_found += 1
    if len(terms.anchored) > 0:
        n_found = find_phrases(sequence, terms, last_seen, stamp, text, rows, found, n_found)
    return n_found


@kernel(_nrt=True)
def find_phrases(sequence, terms, last_seen, stamp, text, rows, found, n_found):
    """Write the phrases of one text, whose words are in `sequence`."""
    n_words = len(sequence)
    for at in range(n_words):
        word = sequence[at]
        if word < 0:
            continue
        for slot in range(terms.anchor_starts[word], terms.anchor_starts[word + 1]):
            phrase = terms.anchored[slot]
            term = terms.term_of_phrase[phrase]
            if last_seen[term] == stamp:
                continue
            begin, end = terms.phrase_starts[phrase], terms.phrase_starts[phrase + 1]
            first = at - terms.anchor_places[phrase]
            if first < 0 or first + end - begin > n_words:
                continue
            is_there = True
            for i in range(end - begin):
                wanted = terms.phrase_words[begin + i]
                if wanted != ANY_NUMBER and sequence[first + i] != wanted:
                    is_there = False
                    break
            if is_there:
                last_seen[term] = stamp
                rows[n_found] = text
                found[n_found] = term
                n_found += 1
    return n_found
