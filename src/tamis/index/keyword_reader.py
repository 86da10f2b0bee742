"""Reads plain keyword queries, `matches(body, 'some words')`, into programs without a tree.

There may be millions of search subscriptions, nearly all of this form. All other texts, including
invalid ones, are left to the parser.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.index.kernels import scan
from tamis.index.programs import Programs
from tamis.language.ast import Attribute, Matches, Words
from tamis.language.names import print_path
from tamis.language.queries import distinct_words, query_words
from tamis.language.types import STRING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.index.dag_builder import DagBuilder
    from tamis.language.limits import Limits
    from tamis.language.schema import Schema

# Words without any character that is special to the tokenizer, and without wildcards.
_QUERY: Final = re.compile(
    r"matches(_any|_phrase)?\(([A-Za-z_][A-Za-z0-9_]*), ?"
    r"'([^'\\$*?\x00-\x1f\x7f-\x9f\ud800-\udfff]*)'\)"
)
_MODES: Final = {None: "all", "_any": "any", "_phrase": "phrase"}


class KeywordReader:
    """Reads plain keyword queries over the attributes of a schema."""

    def __init__(self, schema: Schema, builder: DagBuilder, limits: Limits) -> None:
        self._builder = builder
        self._limits = limits
        # A name that must be quoted has another meaning without quotes.
        self._attributes = {
            path[0]: (Attribute(path, schema[path]),)
            for path in schema
            if len(path) == 1 and schema[path] == STRING and print_path(path) == path[0]
        }
        self._leaves: dict[tuple[str, str], int] = {}  # of one word, by attribute

    def read(self, texts: Sequence[str]) -> Programs:
        """The programs of the texts; other texts are left to the parser."""
        starts = array("q", (0,))
        operators, operands = array("B"), array("i")
        is_left = np.ones(len(texts), dtype=np.uint8)
        for at, text in enumerate(texts):
            leaves, operator = self._read(text)
            if leaves:
                is_left[at] = 0
                operands.extend(leaves)
                operators.extend([scan.STEP_LEAF] * len(leaves))
                if len(leaves) > 1:
                    operands.append(len(leaves))
                    operators.append(operator)
            starts.append(len(operators))
        return Programs(
            np.array(starts, dtype=np.int64),
            np.array(operators, dtype=np.uint8),
            np.array(operands, dtype=np.int32),
            np.zeros(len(operators), dtype=np.int32),
            is_left,
        )

    def _read(self, text: str) -> tuple[list[int], int]:
        """The leaves of a plain query and their connective; None for another text."""
        found = _QUERY.fullmatch(text) if isinstance(text, str) else None
        attributes = self._attributes.get(found[2]) if found else None
        if found is None or attributes is None or len(text) > self._limits.text_length:
            return [], scan.STEP_AND
        node = Matches(_MODES[found[1]], attributes, found[3])
        if node.mode == "phrase":
            words = query_words(node)
            is_small = 0 < len(words) <= self._limits.predicates
            leaves = [self._builder.leaf(Words(attributes[0], words))] if is_small else []
            return leaves, scan.STEP_AND
        each = distinct_words(node)
        if len(query_words(node)) > self._limits.predicates:
            return [], scan.STEP_AND
        leaves = [self._leaf(attributes[0], found[2], word) for word in each]
        return leaves, scan.STEP_AND if node.mode == "all" else scan.STEP_OR

    def _leaf(self, attribute: Attribute, name: str, word: str) -> int:
        leaf = self._leaves.get((name, word))
        if leaf is None:
            leaf = self._leaves[name, word] = self._builder.leaf(Words(attribute, (word,)))
        return leaf
