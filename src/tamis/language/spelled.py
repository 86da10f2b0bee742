"""Events whose values are texts: rows of CSV and of `map<string,string>`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.language.types import WrongTypeError, read_text

if TYPE_CHECKING:
    from tamis.language.types import Type


class SpelledEvent(dict[str, Any]):
    """An event of texts. As a mapping it has values in the types that expressions use; `texts` are
    the original texts, for readers that use other types.
    """

    __slots__ = ("texts",)

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, Any] = {}

    def put(self, path: tuple[str, ...], text: Any, type_: Type | None) -> None:
        """Add an attribute; the first of a name is kept. A text that its type rejects is also kept,
        as an invalid value.
        """
        value = text
        if isinstance(text, str) and type_ is not None:
            try:
                value = read_text(text, type_)
            except WrongTypeError:
                value = text
        _put(self, path, value)
        _put(self.texts, path, text)


def _put(event: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        inside = event.setdefault(step, {})
        if not isinstance(inside, dict):  # "a" and "a.b": the first is kept
            return
        event = inside
    event.setdefault(path[-1], value)
