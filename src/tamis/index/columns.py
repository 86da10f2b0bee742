"""Columns: how values are mapped to codes, and which leaves a code makes true.

Every test of an expression is a test of a column, and a column has one code, several codes or none
for an event. There are six kinds:

- *scalar*: an attribute. Its constants, sorted, are c0 < c1 < …; a value equal to c_i has the code
  2i + 1, one between c_(i-1) and c_i the code 2i. Equality and IN are sets of codes, `<` and `<=`
  are `code <= t`, and every other comparison is the complement of one of these.
- *array*: the same, with a code for each element.
- *pattern*: the text of an attribute that LIKE, RLIKE and similar tests read. Its codes are the
  distinct texts of a batch, in the order of their first occurrence.
- *text*: the words of an attribute that keyword queries search, as split by its analyser. Its
  constants are terms, words and phrases (`tamis.text.terms`), and an event has the code of each
  term in its text, as an array has one of each element.
- *elements*: the elements of an array that lambdas test. Its constants are the tests
  (`tamis.index.elements`), and an event has the code of each test that its elements satisfy.
- *pair*: two attributes compared; the code is 0, 1 or 2 as the first is below, equal or above.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.language.ast import Attribute, Like, Rlike, StringTest, sources
from tamis.language.types import STRING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.index.constants import Constants
    from tamis.index.contents import Contents
    from tamis.index.patterns.arrays import PatternArrays
    from tamis.kernels.arrays import Int32
    from tamis.language.types import Type
    from tamis.text.numbering import TermArrays

SCALAR: Final = "scalar"
ARRAY: Final = "array"
PATTERN: Final = "pattern"
TEXT: Final = "text"
ELEMENTS: Final = "elements"
PAIR: Final = "pair"
PAIR_CODES: Final = 3


Pattern = Like | Rlike | StringTest


_NO_LEAVES: Final = np.empty(0, dtype=np.int32)


@dataclass(slots=True)
class Column:
    """One column: its attributes, and the constants or patterns it is compared with."""

    kind: str
    attributes: tuple[Attribute, ...]  # two for a pair
    constants: Constants | None = None  # scalar, array, text and elements only
    patterns: Sequence[Pattern] = ()  # distinct tests; pattern only, like all below but one
    pattern_leaves: Int32 = field(default_factory=lambda: _NO_LEAVES)  # the leaf of each pattern
    pattern_arrays: PatternArrays | None = None  # finds the patterns of a text
    term_arrays: TermArrays | None = None  # finds the terms of a text
    inner: Contents | None = None  # elements only: matches the elements

    @property
    def type(self) -> Type:
        """The type of the (first) attribute's values, or of an array's elements; of the constants
        of an elements column.
        """
        if self.kind == ELEMENTS:
            return STRING
        type_ = self.attributes[0].type
        assert type_ is not None
        return type_.element or type_

    @property
    def sources(self) -> tuple[Attribute, ...]:
        """The attributes that an event must have for a code: of derived values, their arguments."""
        return tuple(own for attribute in self.attributes for own in sources(attribute))

    @property
    def n_codes(self) -> int:
        """The number of codes that the column has."""
        if self.kind == PATTERN:
            return 0
        return PAIR_CODES if self.kind == PAIR else 2 * self.n_constants + 1

    @property
    def n_constants(self) -> int:
        """The number of constants it is compared with."""
        return 0 if self.constants is None else len(self.constants)
