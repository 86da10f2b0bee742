"""The distinct pattern tests that the fast reader found, as leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.errors import ExpressionError
from tamis.index.kernels import lexer
from tamis.index.kernels.bases import number_patterns
from tamis.language.ast import Attribute, In, Like, Rlike, StringTest
from tamis.language.check import check
from tamis.language.patterns import BadPatternError
from tamis.language.types import STRING
from tamis.logic.rules import spelling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.index.columns import Pattern
    from tamis.index.dag_builder import DagBuilder
    from tamis.index.kernels.scan import Scanned
    from tamis.language.limits import Limits
    from tamis.language.schema import Path, Schema

_FUNCTIONS = {
    lexer.STARTSWITH: "startswith",
    lexer.ENDSWITH: "endswith",
    lexer.CONTAINS: "contains",
}


class PatternTests:
    """Leaves of pattern tests, by attribute and pattern."""

    def __init__(self, schema: Schema, builder: DagBuilder, limits: Limits) -> None:
        self._schema = schema
        self._builder = builder
        self._limits = limits
        self._leaves = {-1: -1}  # of a text that is not a valid pattern
        self._attributes: dict[Path, Attribute | None] = {}

    def place(
        self, scanned: Scanned, tests: np.ndarray, data: np.ndarray, paths: Sequence[Path]
    ) -> np.ndarray:
        """The leaf of each test; -1 if the expression must be parsed."""
        keys = np.empty(len(tests), dtype=np.int64)
        number_patterns(scanned, tests, data, self._builder.texts, keys)
        distinct, places = np.unique(keys, return_inverse=True)
        leaves = np.array([self._leaf(key, paths) for key in distinct.tolist()], dtype=np.int32)
        return leaves[places]

    def _leaf(self, key: int, paths: Sequence[Path]) -> int:
        leaf = self._leaves.get(key)
        if leaf is None:
            name, kind = divmod(key >> 32, lexer.N_TEST_CODES)
            attribute = self._attribute(paths[name])
            text = self._builder.text(key & 0xFFFFFFFF)
            leaf = self._place(_spell(kind, attribute, text)) if attribute else -1
            self._leaves[key] = leaf
        return leaf

    def _attribute(self, path: Path) -> Attribute | None:
        """The typed attribute, one object for all its tests; None if it is not a string."""
        if path not in self._attributes:
            type_ = self._schema.get(path)
            self._attributes[path] = Attribute(path, type_) if type_ == STRING else None
        return self._attributes[path]

    def _place(self, test: Pattern) -> int:
        try:
            if isinstance(test, Rlike):
                check(test, self._schema, self._limits)
            spelled = spelling.rewrite(test)
        except (ExpressionError, BadPatternError):
            return -1
        # A pattern that matches all texts may be true on a missing attribute: left to the parser.
        return -1 if isinstance(spelled, In) else self._builder.leaf(spelled)


def _spell(kind: int, attribute: Attribute, text: str) -> Pattern:
    if kind == lexer.RLIKE:
        return Rlike(attribute, text)
    if kind in _FUNCTIONS:
        return StringTest(_FUNCTIONS[kind], attribute, text)
    return Like(attribute, text, ignores_case=kind == lexer.ILIKE)
