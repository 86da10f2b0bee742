"""Derived values as text: how an index stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.errors import ExpressionError, IndexFormatError
from tamis.language.array_keys import ARRAY_KEY
from tamis.language.ast import Comparison, Derived, IsNull
from tamis.language.check import check
from tamis.language.limits import NO_LIMITS
from tamis.language.parser import parse

if TYPE_CHECKING:
    from tamis.language.schema import Schema


def read_derived(text: str, schema: Schema) -> Derived:
    """The derived value that prints as this text."""
    if text.startswith(f"{ARRAY_KEY}("):
        return _read_key(text, schema)
    try:
        test = check(parse(f"{text} IS NULL", NO_LIMITS), schema, NO_LIMITS)
    except ExpressionError as error:
        raise IndexFormatError(f"the index has a column of {text}: {error.message}") from None
    if not isinstance(test, IsNull) or not isinstance(test.operand, Derived):
        raise IndexFormatError(f"the index has a column of {text}, which is not a derived value")
    return test.operand


def _read_key(text: str, schema: Schema) -> Derived:
    """The key of an array, which only comparisons of arrays have."""
    array = text[len(ARRAY_KEY) + 1 : -1]
    try:
        test = check(parse(f"{array} = array()", NO_LIMITS), schema, NO_LIMITS)
    except ExpressionError as error:
        raise IndexFormatError(f"the index has a column of {text}: {error.message}") from None
    if not isinstance(test, Comparison) or not isinstance(test.left, Derived):
        raise IndexFormatError(f"the index has a column of {text}, which is not a derived value")
    return test.left
