"""Fields: the texts that are indexed, and how their words are spelled in an index.

All words are in one column. A word begins with the number of its field, so that a phrase never
continues in another text. Stop words are there without letters, since they keep their places.
"""

from __future__ import annotations

from functools import cache, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.language.ast import Attribute
from tamis.language.types import text_type
from tamis.logic.evaluate import attribute_value
from tamis.text.analysers import analyser_versions, get_analyser

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST: Final = 100  # characters of a word; of a longer one, the digest is searched for


class Field(NamedTuple):
    """A text of an event, as an analyser splits it."""

    path: tuple[str, ...]
    analyser: str
    is_folded: bool = False  # its words are those before stemming, for wildcards

    @classmethod
    def of(cls, attribute: Attribute) -> Field | None:
        """The field of an attribute; None if its value is derived, or may be of another kind."""
        type_ = attribute.type
        if type(attribute) is not Attribute or not attribute.path or type_ is None or type_.reads:
            return None
        return cls(attribute.path, type_.analyser)

    def words(self, event: Mapping[str, Any]) -> list[str]:
        """Its words in an event."""
        text = self.text(event)
        return [] if text is None else self.split(text)

    def split(self, text: str) -> list[str]:
        """The words of a text."""
        analyser = get_analyser(self.analyser)
        return analyser.read(text).folded if self.is_folded else analyser.words(text)

    @property
    def is_whole(self) -> bool:
        """Whether its text is one word, in which * and ? are plain characters."""
        return get_analyser(self.analyser).takes_whole

    def folded(self) -> Field:
        """The same text, with its words before stemming."""
        return self._replace(is_folded=True)

    def text(self, event: Mapping[str, Any]) -> str | None:
        """Its text in an event, if it has one."""
        found: str | None = attribute_value(_attribute_of(self.path, self.analyser), event)
        return found

    def versions(self) -> dict[str, str]:
        """What the words depend on."""
        return analyser_versions(self.analyser)


@cache
def _attribute_of(path: tuple[str, ...], analyser: str) -> Attribute:
    return Attribute(path, text_type(analyser))


def is_long(word: str) -> bool:
    """Whether an index has the digest of a word."""
    return len(word) > LONGEST or bool(word and word.split() != [word])


@lru_cache(1 << 16)
def spell_term(slot: int, word: str) -> str:
    """A word of a field, by the field's number in an index: it has no blank and is short."""
    if not is_long(word):
        return f"{slot}:{word}"
    return f"{slot}#{blake2b(word.encode(), digest_size=16).hexdigest()}"
