"""Wildcards in the words of a query: `child*`, `wom?n`, `*itis`.

`*` stands for any characters, also none, and `?` for one character. A word with wildcards is
compared with the folded form of a word before it is stemmed: the author of `studies*` means the
letters that he wrote, and not those that a stemmer leaves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.text.analysers import ANY_WORD, get_analyser
from tamis.text.segment import segment_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tamis.text.analysers import Analyser, TextWords

ANY_TEXT: Final = "*"
ONE_CHARACTER: Final = "?"
LEAST_LETTERS: Final = 2  # besides the wildcards: c* would find a tenth of all words
_WILDCARDS: Final = "*?"
_RUN: Final = re.compile(r"[*?]+")
# The ? of an address is not a wildcard.
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S*")
_NO_WILDCARDS: Final = str.maketrans(_WILDCARDS, "  ")


class QueryWord(NamedTuple):
    """A word of a query: as it is written, and the form that is searched for."""

    written: str
    form: str  # the analyser's; ANY_WORD for a stop word; with wildcards, the folded letters


def has_wildcard(form: str) -> bool:
    """Whether the searched form of a word has a wildcard."""
    return ANY_TEXT in form or ONE_CHARACTER in form


def split_query(analyser: str, query: str) -> list[QueryWord]:
    """The words of a query, in order, as the analyser of that name splits it."""
    own = get_analyser(analyser)
    if own.takes_whole:
        return [QueryWord(query, query)] if query else []
    if not has_wildcard(query):
        spans = segment_spans(query)
        return [QueryWord(query[a:b], own.normalize(query[a:b])) for a, b in spans]
    marked = _ADDRESS.sub(lambda found: found[0].translate(_NO_WILDCARDS), query)
    return [_read_word(own, query[a:b], marked[a:b]) for a, b in _join_spans(marked)]


def _join_spans(query: str) -> Iterator[tuple[int, int]]:
    """Where words begin and end, with the wildcards in them, before and after them.

    A question mark is a wildcard only inside a word: queries may be questions.
    """
    end = 0
    begin: int | None = None
    for first, last in segment_spans(query):
        between = query[end:first]
        if begin is None or not between or between.strip(_WILDCARDS):
            if begin is not None:
                yield begin, end + _count_after(query[end:first])
                end += _count_after(query[end:first])
            begin = first - _count_before(query[end:first])
        end = last
    if begin is not None:
        yield begin, end + _count_after(query[end:])


def _count_after(text: str) -> int:
    """How many of the first characters belong to the word before them: wildcards up to a *."""
    run = _RUN.match(text)
    return len(run[0].rstrip(ONE_CHARACTER)) if run else 0


def _count_before(text: str) -> int:
    """How many of the last characters belong to the word after them: wildcards from a * on."""
    run = text[len(text.rstrip(_WILDCARDS)) :]
    return len(run.lstrip(ONE_CHARACTER))


def _read_word(analyser: Analyser, written: str, marked: str) -> QueryWord:
    if not has_wildcard(marked):
        return QueryWord(written, analyser.normalize(written))
    parts = re.split(r"([*?]+)", marked)
    # Of several wildcards, the ? come first: equal patterns have one spelling.
    parts[0::2] = [analyser.fold(part) if part else "" for part in parts[0::2]]
    parts[1::2] = [
        ONE_CHARACTER * run.count(ONE_CHARACTER) + ANY_TEXT * (ANY_TEXT in run)
        for run in parts[1::2]
    ]
    return QueryWord(written, "".join(parts))


def find_bad_wildcard(analyser: str, query: str) -> str | None:
    """The first word of a query, as it is written, that is hardly more than wildcards."""
    if get_analyser(analyser).takes_whole:
        return None
    for word in split_query(analyser, query):
        is_short = len(_RUN.sub("", word.form)) < LEAST_LETTERS
        if has_wildcard(word.form) and is_short:
            return word.written
    return None


# ── meaning ─────────────────────────────────────────────────────────────────────────────────


def fits(pattern: str, word: str) -> bool:
    """Whether all of the word matches the pattern; takes at most len(word) * len(pattern)
    steps.
    """
    if word == ANY_WORD:  # a stop word is never found
        return False
    at_word, at_pattern = 0, 0
    retry_word, retry_pattern = 0, -1  # where to continue if the latest * takes one more
    while at_word < len(word):
        wanted = pattern[at_pattern] if at_pattern < len(pattern) else ""
        if wanted == ANY_TEXT:
            retry_word, retry_pattern = at_word, at_pattern + 1
            at_pattern += 1
        elif wanted in (ONE_CHARACTER, word[at_word]):
            at_word, at_pattern = at_word + 1, at_pattern + 1
        elif retry_pattern >= 0:
            retry_word += 1
            at_word, at_pattern = retry_word, retry_pattern
        else:
            return False
    return not pattern[at_pattern:].strip(ANY_TEXT)


def find_occurring(text: TextWords, wanted: Iterable[str]) -> set[str]:
    """Those of the wanted words, which may have wildcards, that occur in a text."""
    words, folded = frozenset(text.words), frozenset(text.folded)
    return {
        word
        for word in wanted
        if (any(fits(word, own) for own in folded) if _is_open(word, text) else word in words)
    }


def find_places(text: TextWords, wanted: str) -> list[int]:
    """Where a wanted word, which may have wildcards, is among the words of a text."""
    if _is_open(wanted, text):
        return [at for at, word in enumerate(text.folded) if fits(wanted, word)]
    return [at for at, word in enumerate(text.words) if word == wanted]


def _is_open(word: str, text: TextWords) -> bool:
    return has_wildcard(word) and not text.is_whole


def find_firsts(text: TextWords, wanted: Sequence[str]) -> set[int]:
    """The places in a text at which the wanted words begin, adjacent and in order."""
    last = len(text.words) - len(wanted)
    firsts: set[int] | None = None
    for place, word in enumerate(wanted):
        if word != ANY_WORD:
            own = {at - place for at in find_places(text, word) if 0 <= at - place <= last}
            firsts = own if firsts is None else firsts & own
            if not firsts:
                break
    return firsts or set()


def has_words(text: TextWords, wanted: Sequence[str]) -> bool:
    """Whether the wanted words are adjacent, in order, in a text."""
    return bool(find_firsts(text, wanted))
