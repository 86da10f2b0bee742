"""The words that a keyword query searches for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.errors import TamisError
from tamis.language.names import print_path
from tamis.text import ANY_WORD
from tamis.text.queries import analyse_query
from tamis.text.terms import NEAR_IN_ORDER

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
    return analyse_query(type_.analyser, node.query)


def near_words(node: Matches) -> tuple[str, ...]:
    """The words of a query for words near each other: without stop words; if their order is of no
    importance, distinct and sorted.
    """
    words = tuple(word for word in query_words(node) if word != ANY_WORD)
    return words if node.mode == NEAR_IN_ORDER else tuple(sorted({*words}))


def distinct_words(node: Matches) -> tuple[str, ...]:
    """The distinct words that a query searches for."""
    return tuple(dict.fromkeys(word for word in query_words(node) if word != ANY_WORD))
