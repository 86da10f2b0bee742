"""Columns: how values become codes, and which leaves a code makes true.

Everything an expression can ask of an event is asked of a column, and a column has a code for an
event or none. Five kinds:

- *scalar*: an attribute. Its constants, sorted, are c0 < c1 < …; a value equal to c_i has the
  code 2i + 1, one between c_(i-1) and c_i the code 2i. Equality and IN are sets of codes, `<` and
  `<=` are `code <= t`, and every other comparison is the complement of one of these.
- *array*: the same, with a code for each element.
- *pattern*: the text of an attribute that LIKE, RLIKE or their like look at. Its codes are the
  distinct texts of a batch, numbered as they come.
- *text*: the words of an attribute that keyword queries look at, as its analyser makes them. Its
  constants are terms, words and phrases (`tamis.text.terms`), and an event has the code of each
  term that is in its text, as an array has one of each element.
- *pair*: two attributes compared; the code is 0, 1 or 2 as the first is below, equal or above.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.language.ast import Attribute, Like, Rlike, StringTest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.index.constants import Constants
    from tamis.index.patterns.arrays import PatternArrays
    from tamis.kernels.arrays import Int32
    from tamis.language.types import Type
    from tamis.text.numbering import TermArrays

SCALAR: Final = "scalar"
ARRAY: Final = "array"
PATTERN: Final = "pattern"
TEXT: Final = "text"
PAIR: Final = "pair"
PAIR_CODES: Final = 3


Pattern = Like | Rlike | StringTest


_NO_LEAVES: Final = np.empty(0, dtype=np.int32)


@dataclass(slots=True)
class Column:
    """One column: what it looks at, and the constants or patterns it is compared with."""

    kind: str
    attributes: tuple[Attribute, ...]  # two for a pair
    constants: Constants | None = None  # scalar, array and text only
    patterns: Sequence[Pattern] = ()  # distinct tests; pattern only, as all that follows but one
    pattern_leaves: Int32 = field(default_factory=lambda: _NO_LEAVES)  # the leaf of each pattern
    pattern_arrays: PatternArrays | None = None  # by which the patterns are found
    term_arrays: TermArrays | None = None  # by which the terms of a text are found

    @property
    def type(self) -> Type:
        """The type of the (first) attribute's values, of an array's elements."""
        type_ = self.attributes[0].type
        assert type_ is not None
        return type_.element or type_

    @property
    def n_codes(self) -> int:
        """How many codes the column has of its own."""
        if self.kind == PATTERN:
            return 0
        return PAIR_CODES if self.kind == PAIR else 2 * self.n_constants + 1

    @property
    def n_constants(self) -> int:
        """How many constants it is compared with."""
        return 0 if self.constants is None else len(self.constants)
