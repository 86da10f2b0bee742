"""Repeated keys of JSON objects. JSON parsers use the last value without a warning."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

_BLANK: Final = re.compile(r'"[ \t\r\n]+:')  # a blank between a key and its colon
_BLANK_BYTES: Final = re.compile(_BLANK.pattern.encode())


def has_plain_keys(text: str | bytes, found: dict[str, Any]) -> bool:
    """Whether the text certainly has no more keys than `found`, its parsed form: a quick check that
    cannot decide for texts with nested objects, or with blanks before colons.
    """
    if isinstance(text, bytes):
        return text.count(b'":') == len(found) and _BLANK_BYTES.search(text) is None
    return text.count('":') == len(found) and _BLANK.search(text) is None


def describe_repeated(key: str) -> str:
    """The note on a repeated key."""
    return f'the event has the key "{key}" twice; the last value counts'


def check_keys(text: str | bytes, found: dict[str, Any]) -> str | None:
    """The first repeated key of a text, whose parsed form is `found`; None if there is none."""
    return None if has_plain_keys(text, found) else find_repeated_key(text)


def find_repeated_key(text: str | bytes) -> str | None:
    """The first repeated key of an object in the text, found by parsing the text again."""
    repeated: list[str] = []

    def to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            counted = Counter(key for key, _ in pairs)
            repeated.append(next(key for key, n in counted.items() if n > 1))
        return made

    try:
        json.loads(text, object_pairs_hook=to_object)
    except (ValueError, RecursionError):
        return None
    return repeated[0] if repeated else None
