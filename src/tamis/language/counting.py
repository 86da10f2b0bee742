"""Functions that count: the occurrences of words, and of a regular expression, in a text.

The words of a text are found once, however many functions count some of them.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.language.java_regex import is_lazy
from tamis.language.overloads import FROM_ZERO, Function, Overload, RefusedConstantError
from tamis.language.patterns import BadPatternError, compile_regex
from tamis.language.types import INTEGER, STRING
from tamis.text import ANY_WORD, get_analyser
from tamis.text.queries import analyse_query, describe_bad_wildcard, describe_no_words
from tamis.text.wildcards import find_firsts, fits, has_wildcard

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa

    from tamis.language.overloads import Constants, Parameters
    from tamis.text.analysers import TextWords

_REMEMBERED: Final = 64  # texts whose words are cached: those of a single event


# ── words ───────────────────────────────────────────────────────────────────────────────────


class _Words(NamedTuple):
    """The words of one text."""

    text: TextWords
    counts: Counter[str]


@lru_cache(maxsize=_REMEMBERED)
def _words_of(text: str, analyser: str) -> _Words:
    found = get_analyser(analyser).read(text)
    return _Words(found, Counter(found.words))


def count_words(text: str, wanted: Sequence[str], analyser: str) -> int:
    """The number of places at which the wanted words begin, one next to the other."""
    found = _words_of(text, analyser)
    if len(wanted) == 1 and not has_wildcard(wanted[0]):
        return found.counts[wanted[0]]
    return len(find_firsts(found.text, wanted))


class _Texts:
    """The words of many texts, by number. Words with wildcards have numbers of their folded
    forms.
    """

    def __init__(self, texts: pa.Array, analyser: str) -> None:
        import numpy as np

        self._is_whole = get_analyser(analyser).takes_whole
        read = get_analyser(analyser).read
        numbers: dict[tuple[str, str], int] = {}
        found: list[int] = []
        lengths: list[int] = []
        for text in texts.to_pylist():
            own = read(text)
            pairs = zip(own.words, own.folded, strict=True)
            found += [numbers.setdefault(pair, len(numbers)) for pair in pairs]
            lengths.append(len(own.words))
        self._by_word: dict[str, list[int]] = {}
        for (word, _), number in numbers.items():
            self._by_word.setdefault(word, []).append(number)
        self._folded = [folded for _, folded in numbers]
        self._n_texts = len(lengths)
        self._words = np.array(found, dtype=np.int32)
        self._texts = np.repeat(np.arange(len(lengths)), lengths)
        self._order = np.argsort(self._words, kind="stable")
        self._starts = np.searchsorted(self._words[self._order], np.arange(len(numbers) + 1))

    def count(self, wanted: Sequence[str]) -> np.ndarray:
        """`count_words` of each text."""
        import numpy as np

        at = self._places_of(wanted[0])
        at = at[at + len(wanted) <= len(self._words)]
        for step, word in enumerate(wanted[1:], 1):
            if word != ANY_WORD:
                at = at[np.isin(self._words[at + step], self._numbers_of(word))]
        if len(wanted) > 1:
            at = at[self._texts[at] == self._texts[at + len(wanted) - 1]]
        return np.bincount(self._texts[at], minlength=self._n_texts).astype(np.int64)

    def _places_of(self, word: str) -> np.ndarray:
        import numpy as np

        runs = [
            self._order[self._starts[number] : self._starts[number + 1]]
            for number in self._numbers_of(word)
        ]
        return np.concatenate(runs) if runs else self._order[:0]

    def _numbers_of(self, word: str) -> list[int]:
        if self._is_whole or not has_wildcard(word):
            return self._by_word.get(word, [])
        return [number for number, own in enumerate(self._folded) if fits(word, own)]


class _Last(threading.local):
    """The texts that a thread has split last: other functions of a batch get the same ones."""

    texts: weakref.ref[pa.Array] | None = None
    analyser: str = ""
    found: _Texts | None = None

    def find(self, texts: pa.Array, analyser: str) -> _Texts:
        """The words of the texts."""
        known = self.texts() if self.texts is not None else None
        if known is not texts or self.analyser != analyser or self.found is None:
            # The words are forgotten with the texts.
            self.texts = weakref.ref(texts, self._forget)
            self.analyser, self.found = analyser, _Texts(texts, analyser)
        return self.found

    def _forget(self, gone: weakref.ref[pa.Array]) -> None:
        if self.texts is gone:
            self.texts = self.found = None


_LAST: Final = _Last()


def _count_words(text: str, query: str, analyser: str) -> int:
    return count_words(text, analyse_query(analyser, query), analyser)


def _count_words_of_many(texts: pa.Array, query: str, analyser: str) -> np.ndarray:
    return _LAST.find(texts, analyser).count(analyse_query(analyser, query))


def _resolve_occurrences(types: Parameters, constants: Constants) -> Overload | None:
    if types != (STRING, STRING):
        return None
    analyser, query = types[0].analyser, constants[1]
    if isinstance(query, str) and not analyse_query(analyser, query):
        raise RefusedConstantError("no-words", *describe_no_words(analyser, query))
    if isinstance(query, str) and (short := describe_bad_wildcard(analyser, query)):
        raise RefusedConstantError("bad-wildcard", *short)
    return Overload(
        (STRING, STRING),
        INTEGER,
        partial(_count_words, analyser=analyser),
        partial(_count_words_of_many, analyser=analyser),
    )


OCCURRENCES: Final[Function] = Function(
    "occurrences(string, 'word')",
    (Overload((STRING, STRING), INTEGER, partial(_count_words, analyser="standard")),),
    constants=(1,),
    resolve=_resolve_occurrences,
    is_analysed=True,
    range=FROM_ZERO,
)


# ── regular expressions ─────────────────────────────────────────────────────────────────────


def count_matches(text: str, pattern: str) -> int:
    """The number of matches of a regular expression, none of which overlaps another."""
    return sum(1 for _ in compile_regex(pattern).finditer(text))


def _check_counted(pattern: str) -> None:
    if compile_regex(pattern).search("") is not None:
        raise BadPatternError(
            "the regular expression matches an empty text, which is not counted",
            "write one that matches at least one character: x+ instead of x*",
        )
    if is_lazy(pattern):
        raise BadPatternError(
            "matches are counted with the longest repetitions: no *?, +?, ?? and (?U)",
            "write what may be repeated: [^>]* instead of .*?",
        )


REGEXP_COUNT: Final[Function] = Function(
    "regexp_count(string, 'regex')",
    (Overload((STRING, STRING), INTEGER, count_matches),),
    constants=(1,),
    check_regex=_check_counted,
    range=FROM_ZERO,
)
