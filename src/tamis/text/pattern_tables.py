"""The wildcard patterns of an index, and the literals by which they are found, as flat arrays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tamis.text.kernels.wildcards import Literals, Patterns
from tamis.text.wildcards import ANY_TEXT

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUN: Final = re.compile(r"[*?]+")


class PatternTables(NamedTuple):
    """The patterns, and the literals of those that are found by a prefix, a suffix (reversed) or a
    part inside.
    """

    patterns: Patterns
    prefixes: Literals
    suffixes: Literals
    insides: Literals


def build_patterns(patterns: Sequence[str]) -> PatternTables:
    """The tables of distinct patterns, which are sorted. Each is found by its longest literal."""
    prefixes: dict[bytes, list[int]] = {}
    suffixes: dict[bytes, list[int]] = {}
    insides: dict[bytes, list[int]] = {}
    is_decided = np.zeros(len(patterns), dtype=np.uint8)
    for number, pattern in enumerate(patterns):
        parts = [part.encode() for part in _RUN.split(pattern)]
        # Of equally long ones, the prefix costs least, and then the suffix.
        longest = max(map(len, parts))
        if len(parts[0]) == longest:
            prefixes.setdefault(parts[0], []).append(number)
            is_decided[number] = pattern == parts[0].decode() + ANY_TEXT
        elif len(parts[-1]) == longest:
            suffixes.setdefault(parts[-1][::-1], []).append(number)
            is_decided[number] = pattern == ANY_TEXT + parts[-1].decode()
        else:
            literal = next(part for part in parts if len(part) == longest)
            insides.setdefault(literal, []).append(number)
            is_decided[number] = pattern == ANY_TEXT + literal.decode() + ANY_TEXT
    return PatternTables(
        Patterns(*join_bytes([pattern.encode() for pattern in patterns]), is_decided),
        *map(_build_literals, (prefixes, suffixes, insides)),
    )


def _build_literals(patterns_of: dict[bytes, list[int]]) -> Literals:
    literals = sorted(patterns_of)
    own = [patterns_of[literal] for literal in literals]
    return Literals(
        *join_bytes(literals),
        find_starts(np.array([len(numbers) for numbers in own], dtype=np.int64)),
        np.array([number for numbers in own for number in numbers], dtype=np.int32),
    )


def join_bytes(texts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """The texts end to end: where they begin, int64[n + 1], and their bytes."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    return find_starts(lengths), np.frombuffer(b"".join(texts), dtype=np.uint8)


def find_starts(lengths: np.ndarray) -> np.ndarray:
    """Where runs of these lengths begin, and where the last one ends."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
