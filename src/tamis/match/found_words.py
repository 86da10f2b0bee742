"""The words of a keyword query that a document has, since its text is rarely shown in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.language.queries import query_words
from tamis.logic.evaluate import attribute_value, find_words
from tamis.text.terms import NEAR, NEAR_IN_ORDER, PHRASE
from tamis.text.wildcards import split_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.ast import Matches
    from tamis.logic.truth import Truth

# What a query that places its words says if it is not true although they occur.
_PLACED: Final = {
    PHRASE: "not as this phrase",
    NEAR: "not as near each other",
    NEAR_IN_ORDER: "not as near each other in this order",
}
_N_SHOWN: Final = 5  # words
_LONGEST: Final = 30  # characters of a word that are shown


def describe_found(node: Matches, truth: Truth, event: Mapping[str, Any]) -> tuple[str, ...]:
    """The words of a query that were found and not found, if they do not follow from its truth."""
    has_text = any(attribute_value(one, event) is not None for one in node.attributes)
    if not has_text or len(query_words(node)) == 1:
        return ()
    written = _written_words(node)
    truths = find_words(node, event)
    found = [written[word] for word, is_there in truths.items() if is_there is True]
    lost = [written[word] for word, is_there in truths.items() if is_there is not True]
    if node.mode in _PLACED and truth is not True and not lost:
        return (f"the words occur, but {_PLACED[node.mode]}",)
    notes = []
    if found and node.mode in ("any", "at_least"):
        notes.append(f"found: {_few(found)}")
    if lost and node.mode != "any":
        notes.append(f"not found: {_few(lost)}")
    return tuple(notes)


def _written_words(node: Matches) -> dict[str, str]:
    """The first spelling of each word in the query, by its searched form."""
    type_ = node.attributes[0].type
    assert type_ is not None
    written: dict[str, str] = {}
    for word in split_query(type_.analyser, node.query):
        written.setdefault(word.form, word.written)
    return written


def _few(words: list[str]) -> str:
    shown = [
        word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…" for word in words[:_N_SHOWN]
    ]
    more = [f"{len(words) - _N_SHOWN} more"] if len(words) > _N_SHOWN else []
    return ", ".join([*shown, *more])
