"""Searches texts by regular expressions.

    scanner = Scanner("body")
    scanner.register("body_has(string)")               body_has('CVE-[0-9]+')
    scanner.register("mail(string, ?string, ?string)") mail('(\\w+)@(\\w+)', ?user, ?host)

The first tests whether the expression occurs in the text, the second returns the values of its
groups.

Expressions use the syntax of RE2, whose time is linear in the length of the text for any
expression.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import re2

from tamis.errors import InputError
from tamis.language.names import parse_path
from tamis.language.signatures import parse_signature, read_as_text
from tamis.logic.evaluate import value_at
from tamis.operators.registry import operator
from tamis.operators.views import column_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

MAX_PATTERNS: Final = 4096  # cached compiled expressions
_GROUPS: Final = "use ( ) for a group that is captured, and (?: ) for one that is not"
MAX_MEMORY: Final = 8 << 20  # bytes of one expression


@dataclass(frozen=True)
class Scanner:
    """Operators over the text of one attribute."""

    attribute: str

    def register(self, signature: str, **options: Any) -> Callable[..., Any]:
        """Register an operator of that signature, which returns the captured groups if it binds
        variables, and otherwise whether the expression is found.

        `options` are those of `tamis.operator`.
        """
        n_groups = len(parse_signature(signature).bound)
        options = {"reads": [read_as_text(self.attribute)], "batch": not n_groups, **options}
        options.setdefault("check", partial(expect_pattern, n_groups=n_groups))
        if n_groups:
            return operator(signature, **options)(self.captured)
        return operator(signature, **options)(self.found_batch if options["batch"] else self.found)

    def found(self, event: Mapping[str, Any], pattern: str) -> bool | None:
        """Whether the expression occurs in the text; None without a text."""
        expression = compile_pattern(pattern)
        text = value_at(event, parse_path(self.attribute))
        return None if text is None else expression.search(text) is not None

    def captured(self, event: Mapping[str, Any], pattern: str) -> list[tuple[str, ...]] | None:
        """The distinct values of the groups over all matches; a group that took no part is
        empty.
        """
        expression = compile_pattern(pattern)
        if not expression.groups:
            raise InputError(f'the expression "{pattern}" has no group', hint=_GROUPS)
        text = value_at(event, parse_path(self.attribute))
        if text is None:
            return None
        places = (match.groups(default="") for match in expression.finditer(text))
        return list(dict.fromkeys(places))

    def found_batch(self, events: pa.Table, pattern: str) -> pa.Array:
        """`found` of each row."""
        import pyarrow as pa

        search = compile_pattern(pattern).search
        texts = column_at(events, parse_path(self.attribute)).to_pylist()
        return pa.array(
            [None if text is None else search(text) is not None for text in texts], pa.bool_()
        )


def expect_pattern(pattern: str, *, n_groups: int) -> None:
    """Raise an error for an invalid expression, or if its number of groups differs from the number
    of bound variables.
    """
    found = compile_pattern(pattern).groups
    if n_groups and found != n_groups:
        raise InputError(
            f'the expression "{pattern}" has {found} groups; the operator binds {n_groups}',
            hint=_GROUPS,
        )


@lru_cache(MAX_PATTERNS)
def compile_pattern(pattern: str) -> Any:
    """A compiled expression."""
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise InputError(f'the expression "{pattern}" is invalid: {reason}') from error
