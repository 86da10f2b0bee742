"""Lint: differences that may be names, such as user-id = 7."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.ast import Attribute, Condition, Derived, tested_attributes
from tamis.language.printer import print_value
from tamis.logic.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator


def find_minus_names(leaf: Condition) -> Iterator[Finding]:
    """Findings for two names with a minus and no blank between them."""
    pending = list(tested_attributes(leaf))
    while pending:
        value = pending.pop()
        if not isinstance(value, Derived):
            continue
        names = [own for own in value.arguments if isinstance(own, Attribute)]
        pending.extend(names)
        if value.function != "-" or len(names) < 2 or any(isinstance(n, Derived) for n in names):
            continue
        left, right = names
        if left.span[1] + 1 == right.span[0]:
            one, other = print_value(left), print_value(right)
            yield Finding(
                "minus-name",
                f"{one}-{other} subtracts {other} from {one}",
                value.span,
                hint=f"if it is one name, write `{one}-{other}`; else put blanks around the minus",
            )
