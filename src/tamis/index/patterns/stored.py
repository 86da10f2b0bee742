"""Patterns as flat arrays, converted to objects on access."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.index.carriers import text_buffers
from tamis.index.layout import freeze
from tamis.language.ast import Attribute, Like, Rlike, StringTest

if TYPE_CHECKING:
    from tamis.index.patterns.plan import Pattern
    from tamis.kernels.arrays import Int64, UInt8

KINDS: Final = ("contains", "startswith", "endswith", "like", "ilike", "rlike")


class PatternTexts(NamedTuple):
    """The texts and kinds of patterns."""

    kinds: UInt8  # [n_patterns], indices into KINDS
    offsets: Int64  # [n_patterns + 1]
    data: UInt8  # UTF-8


class StoredPatterns(Sequence[Any]):
    """The patterns of one attribute by number."""

    def __init__(self, texts: PatternTexts, attribute: Attribute) -> None:
        self.texts = texts
        self._attribute = attribute

    def __len__(self) -> int:
        return len(self.texts.kinds)

    def __repr__(self) -> str:
        return repr(list(self))

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        begin, end = self.texts.offsets[at : at + 2].tolist()
        text = self.texts.data[begin:end].tobytes().decode()
        return _read_pattern(KINDS[self.texts.kinds[at]], text, self._attribute)


def store_patterns(patterns: Sequence[Pattern], attribute: Attribute) -> StoredPatterns:
    """The same patterns as flat arrays."""
    spelled = [_spell_pattern(pattern) for pattern in patterns]
    kinds = np.array([KINDS.index(kind) for kind, _ in spelled], dtype=np.uint8)
    texts = pa.array([text for _, text in spelled], pa.large_string())
    offsets, data = text_buffers(texts)
    return StoredPatterns(freeze(PatternTexts(kinds, offsets, data)), attribute)


def _spell_pattern(pattern: Pattern) -> tuple[str, str]:
    match pattern:
        case StringTest():
            return pattern.function, pattern.text
        case Rlike():
            return "rlike", pattern.pattern
        case Like():
            return "ilike" if pattern.ignores_case else "like", pattern.pattern


def _read_pattern(kind: str, text: str, attribute: Attribute) -> Pattern:
    match kind:
        case "rlike":
            return Rlike(attribute, text)
        case "like" | "ilike":
            return Like(attribute, text, ignores_case=kind == "ilike")
        case _:
            return StringTest(kind, attribute, text)
