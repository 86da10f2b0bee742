"""Derived values as text: how an index stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.errors import ExpressionError, IndexFormatError
from tamis.language.ast import Derived, IsNull
from tamis.language.check import check
from tamis.language.limits import NO_LIMITS
from tamis.language.parser import parse

if TYPE_CHECKING:
    from tamis.language.schema import Schema


def read_derived(text: str, schema: Schema) -> Derived:
    """The derived value that prints as this text."""
    try:
        test = check(parse(f"{text} IS NULL", NO_LIMITS), schema, NO_LIMITS)
    except ExpressionError as error:
        raise IndexFormatError(f"the index has a column of {text}: {error.message}") from None
    if not isinstance(test, IsNull) or not isinstance(test.operand, Derived):
        raise IndexFormatError(f"the index has a column of {text}, which is not a derived value")
    return test.operand
