"""Keys that a JSON object has twice. Readers of JSON take the last value and do not say so."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any


def has_plain_keys(text: str | bytes, found: dict[str, Any]) -> bool:
    """Whether the text plainly has no more keys than `found`, which it was read as: a quick look
    that tells nothing of texts with objects inside, or with blanks before colons."""
    n_keys = text.count(b'":') if isinstance(text, bytes) else text.count('":')
    return n_keys == len(found)


def find_repeated_key(text: str | bytes) -> str | None:
    """The first key that an object of the text has twice, found by reading the text again."""
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
