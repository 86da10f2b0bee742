"""The strings of an event: what `any_attribute` tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.language.spelled import SpelledEvent
from tamis.language.types import STRING, WrongTypeError, read_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def strings_of(event: Mapping[str, Any]) -> tuple[str, ...]:
    """All values of the event that are strings, also those inside objects and lists; no names.

    In a row of CSV, every value is a string.
    """
    return tuple(_find(event.texts if isinstance(event, SpelledEvent) else event))


def _find(event: Any) -> Iterator[str]:
    # Without recursion: an event may be nested deeper than Python's stack, or contain itself.
    pending = [event]
    seen: dict[int, Any] = {}  # by id; it holds the values, so that no id is used again
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            try:
                yield read_value(value, STRING)
            except WrongTypeError:  # it has a lone surrogate: no expression has such a text
                continue
        elif id(value) not in seen and (members := _members_of(value)):
            seen[id(value)] = value
            pending.extend(reversed(members))


def _members_of(value: Any) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    if hasattr(value, "values") and hasattr(value, "get"):
        return list(value.values())
    if hasattr(value, "tolist"):  # of NumPy; a scalar may stay what it is
        plain = value.tolist()
        return plain if isinstance(plain, list) else [plain] if isinstance(plain, str) else ()
    return ()
