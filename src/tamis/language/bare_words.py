"""Words without quotes that are read as attributes: `user = admin`.

Without a schema, such a word becomes an attribute that no event has. It is probably a string
without quotes if all expressions use it only to compare a string attribute with it, and that
attribute is also tested in other ways as often.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tamis.language.ast import Attribute, Comparison, attributes, leaves
from tamis.language.comparators import EQUALITIES
from tamis.language.types import STRING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.language.ast import Condition
    from tamis.language.schema import Path, Schema


class BareWords:
    """How often attributes occur, and how often as the second of two compared attributes."""

    def __init__(self) -> None:
        self._mentions: Counter[Path] = Counter()
        self._compared: Counter[tuple[Path, Path]] = Counter()

    def add(self, condition: Condition) -> None:
        """Count the attributes of one expression."""
        self._mentions.update(attribute.path for attribute in attributes(condition))
        for left, right in _compared(condition):
            self._compared[left.path, right.path] += 1

    def find(self, schema: Schema) -> frozenset[Path]:
        """The attributes that are probably strings without quotes."""
        return frozenset(
            right
            for (left, right), n in self._compared.items()
            if self._mentions[right] == n <= self._mentions[left] - n
            and schema.get(right) == STRING
        )


def find_mentions(condition: Condition, words: frozenset[Path]) -> Iterator[Attribute]:
    """Where the condition contains one of the words, left to right."""
    return (right for _, right in _compared(condition) if right.path in words)


def _compared(condition: Condition) -> Iterator[tuple[Attribute, Attribute]]:
    for leaf in leaves(condition):
        match leaf:
            case Comparison(operator, Attribute() as left, Attribute((_,)) as right):
                if operator in EQUALITIES and left.path != right.path:
                    yield left, right
            case _:
                pass
