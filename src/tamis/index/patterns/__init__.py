"""Matches many patterns against many texts with few individual tests.

One pass of an automaton over a text finds every literal of every pattern in it. That decides
prefixes, suffixes and substrings. LIKE with more wildcards is tested only if all its literals were
found, a regular expression only if strings that it requires were found. Patterns that ignore case
have a separate automaton over the lower case of the text.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tamis.errors import IndexFormatError
from tamis.index.carriers import frozen
from tamis.index.patterns.kernels.folding import fold_texts
from tamis.index.patterns.kernels.matching import (
    N_COUNTS,
    N_LEAVES,
    N_PAIRS,
    TEST_LIKE,
    TEST_LIKE_FOLDED,
    TEST_REGEX,
    PatternResults,
    PatternScratch,
    Search,
    TextBytes,
    match_block,
)
from tamis.index.patterns.kernels.skipping import find_skips
from tamis.language.ast import Rlike, StringTest
from tamis.language.patterns import BadPatternError, compile_regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tamis.index.patterns.arrays import PatternArrays
    from tamis.index.patterns.plan import Pattern
    from tamis.kernels.arrays import Int32, Int64, UInt8

# Room for the leaves of a text, and of all texts; if there are more, the kernel is called again.
ROOM_PER_TEXT: Final = 64
MAX_ROOM: Final = 1 << 20
_N_ASCII: Final = 128


class AlwaysEvaluated(NamedTuple):
    """A pattern that is tested on every text, and why."""

    pattern: str
    reason: str


class PatternMatcher:
    """The patterns of one attribute; threads may share it."""

    def __init__(self, patterns: Sequence[Pattern], arrays: PatternArrays) -> None:
        self._patterns = patterns
        self.n_patterns = len(patterns)
        self.arrays = arrays
        tests = arrays.candidates.tests
        # An empty automaton has its root and the end of the root's children.
        self.reads_folded = len(arrays.folded.nodes) > 2 or bool((tests == TEST_LIKE_FOLDED).any())
        has_plain = len(arrays.plain.nodes) > 2 or bool((tests == TEST_LIKE).any())
        self.reads_plain = has_plain or not self.reads_folded
        # Compiled on first use: most never are, and a compiled one is large.
        self._compiled: dict[int, Any] = {}

    @cached_property
    def search(self) -> Search:
        """What kernels need to search for them."""
        arrays = self.arrays
        return Search(*arrays, find_skips(arrays.plain), find_skips(arrays.folded))

    def find_regex(self, candidate: int, text: bytes) -> bool:
        """Whether the regular expression of a candidate is found in a text."""
        return self._regex(candidate).search(text) is not None

    @property
    def always_evaluated(self) -> Iterator[AlwaysEvaluated]:
        """The patterns that are tested on every text because they have no literal."""
        candidates = self.arrays.candidates
        for at in candidates.always.tolist():
            pattern = self._patterns[int(candidates.patterns[at])]
            yield AlwaysEvaluated(
                pattern.text if isinstance(pattern, StringTest) else pattern.pattern,
                "no text that every match must contain could be found in it"
                if candidates.tests[at] == TEST_REGEX
                else "it has wildcards only",
            )

    def match_texts(self, texts: Sequence[str]) -> tuple[Int64, Int32]:
        """For each text, the leaves of the patterns it satisfies, as starts and leaves.

        The leaves of one text have an arbitrary but fixed order.
        """
        return self.match_bytes(_encode(texts))

    def match_bytes(self, texts: TextBytes) -> tuple[Int64, Int32]:
        """The same for texts in UTF-8."""
        n_texts = len(texts.begins)
        starts = np.zeros(n_texts + 1, dtype=np.int64)
        plain = texts if self.reads_plain else _unread(n_texts)
        folded = _fold(texts) if self.reads_folded else _unread(n_texts)
        scratch = self._make_scratch()
        runs = [np.zeros(0, dtype=np.int32)]
        n_leaves = next_text = 0
        while next_text < n_texts:
            first_text = next_text
            found = self._make_room(n_texts - first_text, leaf_ends=starts[1:])
            next_text = match_block(
                first_text, len(self._patterns), plain, folded, self.search, scratch, found
            )
            leaves = found.leaves[: scratch.counts[N_LEAVES]]
            leaf_ends = starts[first_text + 1 : next_text + 1]
            if scratch.counts[N_PAIRS]:
                hits = self._find_regexes(texts, found.pairs[: scratch.counts[N_PAIRS]])
                leaves = self._insert(hits - (first_text, 0), leaf_ends, leaves)
            leaf_ends += n_leaves
            n_leaves += len(leaves)
            runs.append(leaves)
        return starts, np.concatenate(runs)

    def _find_regexes(self, texts: TextBytes, pairs: Int32) -> Int32:
        """The pairs of a text and a candidate whose regular expression is found in the text."""
        is_found: list[bool] = []
        latest, encoded = -1, b""
        for text, candidate in pairs.tolist():
            if text != latest:
                latest, encoded = text, _text_at(texts, text)
            is_found.append(self.find_regex(candidate, encoded))
        return pairs[is_found]

    def _regex(self, candidate: int) -> Any:
        regex = self._compiled.get(candidate)
        if regex is None:
            pattern = self._patterns[int(self.arrays.candidates.patterns[candidate])]
            assert isinstance(pattern, Rlike)
            try:
                regex = self._compiled[candidate] = compile_regex(pattern.pattern)
            except BadPatternError as error:
                raise IndexFormatError(f"the index contains an invalid pattern: {error}") from None
        return regex

    def _insert(self, hits: Int32, leaf_ends: Int64, leaves: Int32) -> Int32:
        """The leaves, with those of the hits appended to the others of their texts; shifts the
        ends.
        """
        of_texts, of_candidates = hits.T
        leaves = np.insert(
            leaves, leaf_ends[of_texts], self.arrays.candidates.leaves[of_candidates]
        )
        leaf_ends += np.cumsum(np.bincount(of_texts, minlength=len(leaf_ends)))
        return leaves

    def _make_scratch(self) -> PatternScratch:
        n_candidates = len(self.arrays.candidates.tests)
        return PatternScratch(
            np.zeros(len(self.arrays.literals.table), dtype=np.int32),
            np.zeros(n_candidates, dtype=np.int32),
            np.empty(n_candidates, dtype=np.int32),
            np.empty(N_COUNTS, dtype=np.int64),
        )

    def _make_room(self, n_texts: int, leaf_ends: Int64) -> PatternResults:
        room = min(n_texts * ROOM_PER_TEXT, MAX_ROOM)
        return PatternResults(
            leaf_ends,
            np.empty(len(self._patterns) + room, dtype=np.int32),
            np.empty((len(self.arrays.candidates.tests) + room, 2), dtype=np.int32),
        )


def _encode(texts: Iterable[str]) -> TextBytes:
    encoded = [text.encode() for text in texts]
    starts = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=starts[1:])
    return _adjacent(np.frombuffer(b"".join(encoded), dtype=np.uint8), starts)


def _adjacent(text: UInt8, starts: Int64) -> TextBytes:
    """Texts one after another, given where each starts and the last one ends."""
    return TextBytes(frozen(text), frozen(starts[:-1]), frozen(starts[1:]))


def _fold(texts: TextBytes) -> TextBytes:
    """The texts in lower case: ASCII as bytes, other texts by Python."""
    n_bytes = int((texts.ends - texts.begins).sum())
    folded, starts = np.empty(n_bytes, np.uint8), np.empty(len(texts.begins) + 1, np.int64)
    if fold_texts(*texts, folded, starts):
        return _adjacent(folded, starts)
    others = np.flatnonzero(folded >= _N_ASCII)
    pieces, here, n_more = [], 0, np.zeros(len(starts), dtype=np.int64)
    for at in np.unique(np.searchsorted(starts, others, side="right") - 1).tolist():
        pieces.append(folded[here : starts[at]].tobytes())
        pieces.append(_text_at(texts, at).decode().lower().encode())
        here = int(starts[at + 1])
        n_more[at + 1] = len(pieces[-1]) - (starts[at + 1] - starts[at])
    pieces.append(folded[here:].tobytes())
    joined = np.frombuffer(b"".join(pieces), dtype=np.uint8)
    return _adjacent(joined, starts + np.cumsum(n_more))


def _text_at(texts: TextBytes, at: int) -> bytes:
    return texts.text[texts.begins[at] : texts.ends[at]].tobytes()


def _unread(n_texts: int) -> TextBytes:
    return _adjacent(np.empty(0, dtype=np.uint8), np.zeros(n_texts + 1, dtype=np.int64))
