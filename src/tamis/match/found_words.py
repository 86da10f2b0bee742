"""The words of a keyword query that a document has, since its text is rarely shown in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.language.queries import query_words
from tamis.logic.evaluate import attribute_value, find_words
from tamis.text import get_analyser
from tamis.text.segment import segment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.ast import Matches
    from tamis.logic.truth import Truth

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
    if node.mode == "phrase" and truth is not True and not lost:
        return ("the words occur, but not as this phrase",)
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
    normalize = get_analyser(type_.analyser).normalize
    written: dict[str, str] = {}
    for word in segment(node.query):
        written.setdefault(normalize(word), word)
    return written


def _few(words: list[str]) -> str:
    shown = [
        word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…" for word in words[:_N_SHOWN]
    ]
    more = [f"{len(words) - _N_SHOWN} more"] if len(words) > _N_SHOWN else []
    return ", ".join([*shown, *more])
