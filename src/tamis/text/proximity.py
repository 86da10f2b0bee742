"""Words near each other: `near(body, 'back pain', 3)`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

from tamis.text.terms import NEAR, PHRASE
from tamis.text.wildcards import find_places, has_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.text.analysers import TextWords
    from tamis.text.terms import Term

MAX_DISTANCE: Final = 1_000  # words between


def has_term(text: TextWords, term: Term) -> bool:
    """Whether the words of a term are in a text, placed as the term requires."""
    if term.mode == PHRASE:
        return has_words(text, term.words)
    find = has_near if term.mode == NEAR else has_chain
    return find(text, term.words, term.distance)


def has_near(text: TextWords, wanted: Sequence[str], distance: int) -> bool:
    """Whether all of the wanted words, which are distinct, are somewhere in a text in any order
    with at most `distance` other words between the first and the last.
    """
    window = len(wanted) + distance
    places = [find_places(text, word) for word in wanted]
    return any(
        all(_has_between(own, first, first + window) for own in places)
        for first in sorted({at for own in places for at in own})
    )


def _has_between(places: Sequence[int], first: int, end: int) -> bool:
    """Whether one of the ascending places is at least `first` and less than `end`."""
    following = bisect_left(places, first)
    return following < len(places) and places[following] < end


def has_chain(text: TextWords, wanted: Sequence[str], distance: int) -> bool:
    """Whether the wanted words are somewhere in a text in this order with at most `distance` other
    words between the first and the last.
    """
    window = len(wanted) + distance
    firsts, *others = (find_places(text, word) for word in wanted)
    for first in firsts:
        at: int | None = first
        for own in others:
            if at is not None:
                following = bisect_right(own, at)
                at = own[following] if following < len(own) else None
        if at is not None and at - first < window:
            return True
    return False
