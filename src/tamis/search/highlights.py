"""Where the words of a query are found in the texts of an event."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tamis.errors import RowError
from tamis.events.json_texts import parse_quickly
from tamis.language.names import print_path
from tamis.text.analysers import ANY_WORD, get_analyser
from tamis.text.segment import segment, segment_spans
from tamis.text.wildcards import find_firsts, has_wildcard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.search.fields import Field
    from tamis.search.model import Highlights
    from tamis.search.relaxing import HasWords

MOST_SPANS: Final = 1_000  # of an attribute


class Marker:
    """Finds words in events, one event after the other."""

    def __init__(self, tests: Iterable[HasWords]) -> None:
        self._wanted: dict[Field, list[tuple[str, ...]]] = {}
        for test in tests:
            self._wanted.setdefault(test.field, []).append(test.words)

    def find(self, text: bytes | None) -> Highlights:
        """By attribute, where found words begin and end, in characters; ascending, none within
        another. A phrase is one span.
        """
        if text is None or not self._wanted:
            return {}
        try:
            event = parse_quickly(text)
        except RowError:  # it matches nothing
            return {}
        found: dict[str, set[tuple[int, int]]] = {}
        for field, phrases in self._wanted.items():
            content = field.text(event)
            if content:
                spans = _find(field, phrases, content)
                found.setdefault(print_path(field.path), set()).update(spans)
        return {name: _join(own)[:MOST_SPANS] for name, own in found.items() if own}


def _find(field: Field, phrases: list[tuple[str, ...]], content: str) -> Iterator[tuple[int, int]]:
    analyser = get_analyser(field.analyser)
    if analyser.takes_whole:
        if (content,) in phrases:
            yield 0, len(content)
        return
    written = segment(content)
    words = list(map(analyser.normalize, written))
    places = []
    for phrase in phrases:
        if any(map(has_wildcard, phrase)):
            firsts: Iterable[int] = find_firsts(analyser.read(content), phrase)
        else:
            firsts = _find_phrase(words, phrase)
        places += [(at, at + len(phrase) - 1) for at in firsts]
    if places:
        spans = _list_spans(content, written[: 1 + max(last for _, last in places)])
        for first, last in places:
            yield spans[first][0], spans[last][1]


def _find_phrase(words: list[str], phrase: tuple[str, ...]) -> Iterator[int]:
    """Where words without wildcards begin, side by side; the first is not empty."""
    at, n_words = -1, len(phrase)
    with suppress(ValueError):
        while True:
            at = words.index(phrase[0], at + 1)
            beside = words[at : at + n_words]
            if len(beside) == n_words and all(map(_fits, phrase, beside)):
                yield at


def _fits(wanted: str, word: str) -> bool:
    return wanted in (ANY_WORD, word)


def _list_spans(content: str, written: list[str]) -> list[tuple[int, int]]:
    """Where the first words of a text begin and end. Between words are no characters of words, so
    that the next place that has the letters of a word is its own.
    """
    if not content.isascii():
        return list(segment_spans(content))
    spans = []
    end = 0
    for word in written:
        begin = content.index(word, end)
        end = begin + len(word)
        spans.append((begin, end))
    return spans


def _join(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that overlap become one."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined
