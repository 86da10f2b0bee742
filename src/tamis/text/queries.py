"""The words of a query, as an analyser splits it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from tamis.text.analysers import ANY_WORD, get_analyser
from tamis.text.wildcards import LEAST_LETTERS, find_bad_wildcard, split_query

_SHOWN: Final = 60  # characters of a query in an error


@lru_cache(maxsize=4_096)
def analyse_query(analyser: str, query: str) -> tuple[str, ...]:
    """The words of a query, without stop words at its ends."""
    words = [word.form for word in split_query(analyser, query)]
    while words and words[-1] == ANY_WORD:
        words.pop()
    first = next((at for at, word in enumerate(words) if word != ANY_WORD), len(words))
    return tuple(words[first:])


def describe_bad_wildcard(analyser: str, query: str) -> tuple[str, str] | None:
    """The error of a query that has a wildcard with too few letters, and a hint."""
    written = find_bad_wildcard(analyser, query)
    if written is None:
        return None
    letters = written.replace("*", " ").replace("?", " ").strip()
    message = f"'{written}' is too short: a word with * or ? needs {LEAST_LETTERS} letters"
    return (
        message,
        f"write more of the word, as in child*; to search for {letters}, write {letters}",
    )


def describe_no_words(analyser: str, query: str) -> tuple[str, str]:
    """The error of a query without a word to search for, and a hint."""
    shown = query if len(query) <= _SHOWN else query[: _SHOWN - 1] + "…"
    if get_analyser(analyser).words(query):
        why = ": all are stop words"
        hint = 'to search for these words take "standard", which leaves none out'
    else:
        why, hint = "", "words hold letters, numbers or emoji"
    message = f"'{shown}' has no word to search for{why}"
    return message, f"the analyser is {analyser}: {hint}"
