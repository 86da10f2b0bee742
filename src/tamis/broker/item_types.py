"""The types of the attributes that items of feeds have, whatever subscriptions imply."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.errors import SchemaError
from tamis.language.names import print_path
from tamis.language.schema import Schema
from tamis.language.types import ANY, ANY_ARRAY, text_type
from tamis.text import LANGUAGE_CODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.language.schema import Path
    from tamis.live.settings import Settings

ORIGIN: Final = "the items of feeds"
# These have a version for each language, such as `title_de`.
TEXTS: Final = ("title", "body")
_TYPES: Final = {
    "title": "text",
    "body": "text",
    "feed": "string",
    "feed_title": "string",
    "id": "string",
    "link": "string",
    "author": "string",
    "lang": "string",
    "tags": "array<string>",
    "categories": "array<string>",
    "published": "timestamp",
    "revision": "integer",
}


@cache
def item_types() -> Schema:
    """The type of each attribute. Without PyStemmer, texts have no versions for languages."""
    plain = Schema.of(_TYPES)
    types = {path: plain[path] for path in plain}
    for code, analyser in LANGUAGE_CODES.items():
        try:
            own = text_type(analyser)
        except SchemaError:
            break
        types |= {(f"{name}_{code}",): own for name in TEXTS}
    return Schema(types)


class Contradiction(NamedTuple):
    """An attribute to which subscriptions have given a type that the values of items lack."""

    path: Path
    message: str


def find_contradictions(settings: Settings) -> Iterator[Contradiction]:
    """The attributes of items that have another type in a set."""
    expected = item_types()
    for path in () if settings.is_declared else expected:
        known, own = settings.schema.get(path), expected[path]
        is_fit = known in (None, own, ANY) or (known == ANY_ARRAY and own.element is not None)
        if known is not None and not is_fit and not (known.is_numeric and own.is_numeric):
            message = f"{print_path(path)} is {known} to the subscriptions, and {own} in {ORIGIN}"
            yield Contradiction(path, message)
