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
from typing import TYPE_CHECKING, Any, Final

from tamis.language.ast import Attribute, Like, Rlike, StringTest

if TYPE_CHECKING:
    from tamis.language.types import Type

SCALAR: Final = "scalar"
ARRAY: Final = "array"
PATTERN: Final = "pattern"
TEXT: Final = "text"
PAIR: Final = "pair"
PAIR_CODES: Final = 3


Pattern = Like | Rlike | StringTest


@dataclass(slots=True)
class Column:
    """One column: what it looks at, and the constants or patterns it is compared with."""

    kind: str
    attributes: tuple[Attribute, ...]  # two for a pair
    constants: list[Any] = field(default_factory=list)  # sorted, distinct; scalar, array, text
    patterns: list[Pattern] = field(default_factory=list)  # distinct tests; pattern only
    pattern_leaves: list[int] = field(default_factory=list)  # the leaf of each pattern

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
        return PAIR_CODES if self.kind == PAIR else 2 * len(self.constants) + 1
