"""Finds the terms of each text: words, phrases, and words near each other."""

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
MANY = -3  # MANY - n: a word with several numbers, or a piece with several terms, those of list n


class Lists(NamedTuple):
    """The numbers of each word that has several, or the terms of each piece that has several."""

    starts: np.ndarray  # int64[n_lists + 1]
    items: np.ndarray  # int32[:]


class Terms(NamedTuple):
    """The terms of one attribute: words, and phrases made of these words.

    The numbers of words with wildcards, the patterns, follow those of plain words.
    """

    term_of_word: Int32  # [n_words], the term that the word is, or -1
    # Phrases, indexed by one of their words, the anchor.
    anchor_starts: Int64  # [n_words + 1]
    anchored: Int32  # [:], numbers of phrases
    anchor_places: Int32  # [n_phrases], position of the anchor in the phrase
    phrase_starts: Int64  # [n_phrases + 1]
    phrase_words: Int32  # [:], words or ANY_NUMBER
    term_of_phrase: Int32  # [n_phrases]
    # [n_phrases], 0 for adjacent words; n if they are within n places of a text, and -n if they are
    # also in this order.
    phrase_windows: Int32


class PieceTexts(NamedTuple):
    """Texts as pieces, and what each piece has."""

    pieces: np.ndarray  # int32[:], of all texts
    ends: np.ndarray  # int64[n_texts], where each text's pieces end
    word_starts: np.ndarray  # int64[n_pieces + 1]
    words: np.ndarray  # int32[:], numbers of words, NO_WORD, or MANY and the number of a list
    lists: Lists  # of the numbers of words
    terms: np.ndarray  # int32[n_pieces], a term, NO_TERM, or MANY and the number of a list
    term_lists: Lists
    is_anchored: np.ndarray  # bool[n_pieces], whether a phrase is looked for where the piece is


class WordScratch(NamedTuple):
    """Memory for the words of one text."""

    sequence: np.ndarray  # int32[:], all words, as in PieceTexts
    firsts: np.ndarray  # int32[:], the first number of each word, or NO_WORD
    anchors: np.ndarray  # int32[:], where phrases are looked for
    places: np.ndarray  # int64[:], for each word of the longest phrase, a place in the text
    last_read: np.ndarray  # int32[n_plain], the last text with each word without wildcards
    n_plain: int  # the number of these words; patterns have the numbers after them


class Output(NamedTuple):
    """Where the terms of one text are written."""

    last_seen: np.ndarray  # int32[n_terms], the last text with the term
    stamp: np.int32  # of this text
    text: int
    rows: np.ndarray  # int32[:]
    found: np.ndarray  # int32[:]


@kernel
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


@kernel
def find_piece_terms(
    lengths,  # int64[n_pieces], the number of words of each piece
    words,  # int32[:], as in PieceTexts
    lists,  # Lists, of the numbers of words
    terms,  # Terms
    found,  # int32[n_pieces], output: the terms, as in PieceTexts
    is_anchored,  # bool[n_pieces], output
    term_lists,  # Lists, output, with room for all terms
    n_lists,  # how many term lists there are
):
    """Write the terms of each piece; return the new number of term lists."""
    begin = np.int64(0)
    starts, items = term_lists.starts, term_lists.items
    for piece in range(len(found)):
        first = n_items = starts[n_lists]
        is_anchored[piece] = False
        for word in words[begin : begin + lengths[piece]]:
            if word >= 0:
                items[n_items] = terms.term_of_word[word]
                n_items += terms.term_of_word[word] >= 0
                is_anchored[piece] |= terms.anchor_starts[word] < terms.anchor_starts[word + 1]
            elif word <= MANY:
                for item in lists.items[lists.starts[MANY - word] : lists.starts[MANY - word + 1]]:
                    items[n_items] = terms.term_of_word[item]
                    n_items += terms.term_of_word[item] >= 0
                    is_anchored[piece] |= terms.anchor_starts[item] < terms.anchor_starts[item + 1]
        if n_items <= first + 1:
            found[piece] = items[first] if n_items > first else NO_TERM
        else:
            found[piece] = MANY - n_lists
            n_lists += 1
            starts[n_lists] = n_items
        begin += lengths[piece]
    return n_lists


@kernel
def find_terms(
    first_text,
    texts,  # PieceTexts
    terms,  # Terms
    last_seen,  # int32[n_terms], the last text with the term, counted over all calls
    n_before,  # number of texts before text 0
    scratch,  # Scratch
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
        output = Output(last_seen, np.int32(n_before + text), text, rows, found)
        n_then, has_anchor = write_terms(texts, begin, end, output, n_found)
        if n_then >= 0 and has_anchor:
            n_then = find_phrases(texts, begin, end, terms, scratch, output, n_then)
        if n_then < 0:
            # Clear the stamps, which would hide the terms from the next attempt.
            for at in range(n_found, ~n_then):
                last_seen[found[at]] = -1
            return text, n_found
        n_found = n_then
        begin = end
    return len(texts.ends), n_found


@kernel
def write_term(term, output, n_found):
    """Write a term unless the text has it already; return the new total."""
    if output.last_seen[term] != output.stamp:
        output.last_seen[term] = output.stamp
        output.rows[n_found] = output.text
        output.found[n_found] = term
        return n_found + 1
    return n_found


@kernel
def write_terms(texts, begin, end, output, n_found):
    """Write the terms of the pieces of a text, which are words; return the new total, or its
    complement if there is no room, and whether phrases are to be looked for.
    """
    has_anchor = False
    for at in range(begin, end):
        piece = texts.pieces[at]
        has_anchor |= texts.is_anchored[piece]
        term = texts.terms[piece]
        if term >= 0:
            n_found = write_term(term, output, n_found)
        elif term <= MANY:
            first = texts.term_lists.starts[MANY - term]
            last = texts.term_lists.starts[MANY - term + 1]
            # One term for each of the other pieces must still find room.
            if n_found + last - first + end - at > len(output.found):
                return ~n_found, has_anchor
            for own in texts.term_lists.items[first:last]:
                n_found = write_term(own, output, n_found)
    return n_found, has_anchor


@kernel
def find_phrases(texts, begin, end, terms, scratch, output, n_found):
    """Write the phrases of a text; return the new total, or its complement if there is no room."""
    n_words = n_anchors = np.int64(0)
    for at in range(begin, end):
        piece = texts.pieces[at]
        first, last = texts.word_starts[piece], texts.word_starts[piece + 1]
        if n_words + last - first > len(scratch.sequence):
            return ~n_found
        for place in range(first, last):
            word = texts.words[place]
            scratch.sequence[n_words] = word
            # A list begins with the number of the word without wildcards, if it has one.
            own = word if word > MANY else texts.lists.items[texts.lists.starts[MANY - word]]
            scratch.firsts[n_words] = own
            if 0 <= own < scratch.n_plain:
                scratch.last_read[own] = output.stamp
            if texts.is_anchored[piece]:
                scratch.anchors[n_anchors] = n_words
                n_anchors += 1
            n_words += 1
    # Patterns are anchors only of phrases without a plain word.
    has_open = terms.anchor_starts[scratch.n_plain] < len(terms.anchored)
    for at in scratch.anchors[:n_anchors]:
        word, own = scratch.sequence[at], scratch.firsts[at]
        if own >= 0:
            n_found = find_phrases_at(
                n_words, at, own, terms, texts.lists, scratch, output, n_found
            )
        if has_open and word <= MANY:
            starts = texts.lists.starts
            for item in texts.lists.items[starts[MANY - word] + 1 : starts[MANY - word + 1]]:
                if n_found >= 0:
                    n_found = find_phrases_at(
                        n_words, at, item, terms, texts.lists, scratch, output, n_found
                    )
        if n_found < 0:
            break
    return n_found


@kernel
def find_phrases_at(n_words, at, number, terms, lists, scratch, output, n_found):
    """Write the phrases that are anchored at a word, or at a pattern that it fits."""
    for slot in range(terms.anchor_starts[number], terms.anchor_starts[number + 1]):
        phrase = terms.anchored[slot]
        term = terms.term_of_phrase[phrase]
        if output.last_seen[term] == output.stamp or not may_occur(
            phrase, terms, scratch, output.stamp
        ):
            continue
        window = np.int64(terms.phrase_windows[phrase])
        if window == 0:
            first = at - terms.anchor_places[phrase]
            is_there = has_phrase(n_words, first, phrase, terms, lists, scratch)
        elif window > 0:
            is_there = has_near(n_words, at, phrase, window, terms, lists, scratch)
        else:
            is_there = has_chain(n_words, at, phrase, -window, terms, lists, scratch)
        if is_there:
            if n_found == len(output.found):
                return ~n_found
            n_found = write_term(term, output, n_found)
    return n_found


@kernel
def may_occur(phrase, terms, scratch, stamp):
    """Whether the text has all words of a phrase that have no wildcards, anywhere."""
    for slot in range(terms.phrase_starts[phrase], terms.phrase_starts[phrase + 1]):
        wanted = terms.phrase_words[slot]
        if 0 <= wanted < scratch.n_plain and scratch.last_read[wanted] != stamp:
            return False
    return True


@kernel
def has_phrase(n_words, first, phrase, terms, lists, scratch):
    """Whether the words of a phrase begin at a place of the text."""
    begin, end = terms.phrase_starts[phrase], terms.phrase_starts[phrase + 1]
    if first < 0 or first + end - begin > n_words:
        return False
    for i in range(end - begin):
        wanted = terms.phrase_words[begin + i]
        if wanted != ANY_NUMBER and not has_number(first + i, wanted, lists, scratch):
            return False
    return True


@kernel
def has_near(
    n_words,
    anchor,  # where one of the words is
    phrase,
    window,
    terms,
    lists,
    scratch,
):
    """Whether the words of a phrase are within a window of the text around one of them."""
    wanted = terms.phrase_words[terms.phrase_starts[phrase] : terms.phrase_starts[phrase + 1]]
    places = scratch.places  # the latest place of each word
    places[: len(wanted)] = -1
    for at in range(max(0, anchor - window + 1), min(n_words, anchor + window)):
        is_hit = False
        for i in range(len(wanted)):
            if has_number(at, wanted[i], lists, scratch):
                places[i] = at
                is_hit = True
        if is_hit:
            earliest = at
            for i in range(len(wanted)):
                earliest = min(earliest, places[i])
            if earliest >= 0 and at - earliest < window:
                return True
    return False


@kernel
def has_chain(
    n_words,
    anchor,  # where one of the words is
    phrase,
    window,
    terms,
    lists,
    scratch,
):
    """Whether the words of a phrase are in order within a window of the text around one of them."""
    wanted = terms.phrase_words[terms.phrase_starts[phrase] : terms.phrase_starts[phrase + 1]]
    places = scratch.places  # where the latest run of words that ends in each word begins
    places[: len(wanted)] = -1
    for at in range(max(0, anchor - window + 1), min(n_words, anchor + window)):
        # From the last to the first: a word of the text stands for one of the phrase.
        for i in range(len(wanted) - 1, -1, -1):
            if has_number(at, wanted[i], lists, scratch):
                places[i] = at if i == 0 else places[i - 1]
        last = places[len(wanted) - 1]
        if last >= 0 and at - last < window:
            return True
    return False


@kernel
def has_number(at, wanted, lists, scratch):
    """Whether a word of a text is the wanted word, or fits the wanted pattern."""
    word = scratch.sequence[at]
    if word > MANY or wanted < scratch.n_plain:
        return scratch.firsts[at] == wanted
    for item in lists.items[lists.starts[MANY - word] : lists.starts[MANY - word + 1]]:
        if item == wanted:
            return True
    return False
