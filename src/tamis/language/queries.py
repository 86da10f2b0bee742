"""The words that a keyword query searches for."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tamis.errors import TamisError
from tamis.language.names import print_path
from tamis.text import ANY_WORD, get_analyser

if TYPE_CHECKING:
    from tamis.language.ast import Matches


def query_words(node: Matches) -> tuple[str, ...]:
    """The words of a typed query, in order, as split by its attributes' analyser.

    ANY_WORD is in the place of a stop word, but not at the ends.
    """
    type_ = node.attributes[0].type
    if type_ is None:
        raise TamisError(
            f"{print_path(node.attributes[0].path)} has no type",
            hint="check the condition against a schema",
        )
    return _analyse(type_.analyser, node.query)


@lru_cache(maxsize=4_096)
def _analyse(analyser: str, query: str) -> tuple[str, ...]:
    words = get_analyser(analyser).words(query)
    while words and words[-1] == ANY_WORD:
        words.pop()
    first = next((at for at, word in enumerate(words) if word != ANY_WORD), len(words))
    return tuple(words[first:])


def distinct_words(node: Matches) -> tuple[str, ...]:
    """The distinct words that a query searches for."""
    return tuple(dict.fromkeys(word for word in query_words(node) if word != ANY_WORD))
