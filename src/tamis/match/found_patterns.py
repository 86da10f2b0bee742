"""The patterns of a list that match a text, for explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.language.types import print_string
from tamis.logic.evaluate import attribute_value, test_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.ast import PatternList

_N_SHOWN: Final = 3
_LONGEST: Final = 40  # characters of a pattern that are shown


def describe_patterns(node: PatternList, event: Mapping[str, Any]) -> tuple[str, ...]:
    """The patterns that match, or those that do not if all must match."""
    text = attribute_value(node.operand, event)
    if text is None:
        return ()
    matching = [test_text(own, text) for own in node.tests]
    lists_matches = not node.needs_all
    shown = [
        pattern
        for pattern, is_found in zip(node.patterns, matching, strict=True)
        if is_found == lists_matches
    ]
    if not shown:
        return ()
    few = [_short(pattern) for pattern in shown[:_N_SHOWN]]
    more = [f"{len(shown) - len(few)} more"] if len(shown) > len(few) else []
    return (f"{'matches' if lists_matches else 'does not match'}: {', '.join([*few, *more])}",)


def _short(pattern: str) -> str:
    return print_string(pattern if len(pattern) <= _LONGEST else pattern[: _LONGEST - 1] + "…")
