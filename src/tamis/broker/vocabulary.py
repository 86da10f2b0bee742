"""The words of expressions: attributes, values seen, functions, keywords."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.errors import TamisError
from tamis.events.json_texts import parse_event
from tamis.language.ast import Literal, attributes
from tamis.language.functions import SIGNATURES
from tamis.language.limits import NO_LIMITS
from tamis.language.names import print_path
from tamis.language.parser import parse
from tamis.language.printer import print_literal
from tamis.language.tokens import KEYWORDS
from tamis.language.types import STRING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tamis.archive import Archive
    from tamis.live.index import LiveIndex

MOST_EVENTS: Final = 200  # the newest, in which values are looked for
MOST_VALUES: Final = 12  # of an attribute
MOST_ATTRIBUTES: Final = 2_000
_LONGEST: Final = 80  # characters of a value
_DEEPEST: Final = 8  # levels of an event
_SURROGATE: Final = re.compile("[\ud800-\udfff]")  # alone, it is no character


class Word(NamedTuple):
    """An attribute."""

    name: str  # as expressions spell it
    type: str | None  # None if no subscription uses it
    values: list[str]  # as expressions spell them, the most frequent first


class Vocabulary(NamedTuple):
    """All words."""

    attributes: list[Word]
    functions: dict[str, str]  # signatures by name
    keywords: list[str]


def list_words(
    live: LiveIndex, archive: Archive | None, expressions: Iterable[str] | None = None
) -> Vocabulary:
    """The words for expressions of a live set; with an archive, also the values of its newest
    events. `expressions` are those whose attributes may be named; None for all of the set.
    """
    settings = live.settings
    seen = {} if archive is None else _find_values(archive)
    schemas = (settings.schema, live.view.catalogue.schema)
    fixed = {print_path(path): str(schema[path]) for schema in schemas for path in schema}
    expected = settings.expected.schema
    types = {print_path(path): str(expected[path]) for path in expected} | fixed
    used = fixed if expressions is None else find_attributes(expressions)
    names = sorted({*used, *seen})[:MOST_ATTRIBUTES]
    words = [Word(name, types.get(name), _most_frequent(seen.get(name))) for name in names]
    calls = {own.name: str(own) for own in settings.operators}
    return Vocabulary(words, dict(sorted((SIGNATURES | calls).items())), sorted(KEYWORDS))


def find_attributes(expressions: Iterable[str]) -> set[str]:
    """The attributes of these expressions, as expressions spell them."""
    found: set[str] = set()
    for text in expressions:
        try:
            found |= {print_path(own.path) for own in attributes(parse(text, NO_LIMITS))}
        except TamisError:  # of a schema that was declared differently
            continue
    return found


def _most_frequent(counts: Counter[str] | None) -> list[str]:
    return [] if counts is None else [value for value, _ in counts.most_common(MOST_VALUES)]


def _find_values(archive: Archive) -> dict[str, Counter[str]]:
    page = archive.read_events(
        after=max(archive.first_event - 1, archive.last_event - MOST_EVENTS), limit=MOST_EVENTS
    )
    found: dict[str, Counter[str]] = {}
    for path, value in _flatten_all(own.event for own in page.events if own.event is not None):
        counts = found.setdefault(print_path(path), Counter())
        spelled = _spell(value)
        if spelled is not None:
            counts[spelled] += 1
    return found


def _flatten_all(texts: Iterable[bytes]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for text in texts:
        try:
            yield from _flatten((), parse_event(text))
        except TamisError:  # it was archived as it came
            continue


def _flatten(path: tuple[str, ...], event: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    for name, value in event.items():
        if _SURROGATE.search(name):  # no expression can name it
            continue
        if isinstance(value, dict) and len(path) < _DEEPEST:
            yield from _flatten((*path, name), value)
        else:
            yield (*path, name), value


def _spell(value: Any) -> str | None:
    """A constant as expressions spell it; None if it is too long or none."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        is_shown = len(value) <= _LONGEST and not _SURROGATE.search(value)
        return print_literal(Literal(value, STRING)) if is_shown else None
    if isinstance(value, int | float | Decimal):
        spelled = str(value)
        return spelled if len(spelled) <= _LONGEST else None
    return None
