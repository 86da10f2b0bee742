"""Lint: constants that a derived value never equals, such as lower(name) = 'Smith'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.ast import Comparison, Condition, Derived, In, Like, Literal, StringTest
from tamis.language.comparators import Comparator
from tamis.language.names import print_path
from tamis.language.patterns import parse_like
from tamis.language.printer import print_value
from tamis.language.types import STRING
from tamis.language.value_functions import overload_of
from tamis.logic.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

# Their results are the texts that they do not change.
_IDEMPOTENT = ("lower", "upper", "trim", "ltrim", "rtrim")


def find_wrong_case(leaf: Condition) -> Iterator[Finding]:
    """Findings for equality with a string that the outermost function would change."""
    if isinstance(leaf, StringTest | Like):
        yield from _find_wrong_pattern(leaf)
        return
    match leaf:
        case Comparison(Comparator.EQUAL, left=Derived() as value, right=Literal() as constant):
            constants: tuple[Literal, ...] = (constant,)
        case Comparison(Comparator.EQUAL, left=Literal() as constant, right=Derived() as value):
            constants = (constant,)
        case In(operand=Derived() as value, values=constants, negated=False):
            pass
        case _:
            return
    if value.function not in _IDEMPOTENT:
        return
    compute = overload_of(value).compute
    wrong = [own for own in constants if compute(own.value) != own.value]
    if wrong:
        right = print_value(Literal(compute(wrong[0].value), STRING))
        hint = f"write the constant as {value.function}() returns it: {right}"
        message = f"never true: {print_path(value.path)} cannot have such a value"
        code = "never-true"
        if len(wrong) < len(constants):
            message = f"{print_path(value.path)} is never {print_value(wrong[0])}"
            code = "redundant"
        yield Finding(code, message, leaf.span, hint=hint)


def _find_wrong_pattern(leaf: StringTest | Like) -> Iterator[Finding]:
    """Findings for letters in a pattern that lower() or upper() never returns."""
    value = leaf.operand
    if not isinstance(value, Derived) or value.function not in ("lower", "upper"):
        return
    if isinstance(leaf, Like):
        if leaf.ignores_case or leaf.negated or leaf.escape.isalpha():
            return
        written = leaf.pattern
        parts = parse_like(written, leaf.escape)
        letters = "".join(part for part in parts if isinstance(part, str))
    else:
        written = letters = leaf.text
    compute = overload_of(value).compute
    if any(own.isascii() and compute(own) != own for own in letters):
        message = f"never true: {print_path(value.path)} has no such letters"
        hint = f"write the text as {value.function}() returns it: "
        hint += print_value(Literal(compute(written), STRING))
        yield Finding("never-true", message, leaf.span, hint=hint)
