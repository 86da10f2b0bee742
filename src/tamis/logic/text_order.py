"""Lint of strings compared by order, where a number, a date or a time is probably meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tamis.language.ast import Between, Comparison, Literal
from tamis.language.types import STRING
from tamis.logic.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.language.ast import Condition

_NUMBER: Final = re.compile(r"\s*[+-]?\d+(\.\d*)?\s*")
_VERSION: Final = re.compile(r"v?\d+(\.\d+){2,}")
_CLOCK: Final = re.compile(r"\d{1,2}:\d\d(:\d\d)?( ?[AaPp][Mm])?")
_DATE: Final = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}")


def find_text_order(leaf: Condition) -> Iterator[Finding]:
    """A finding for each such string; ISO dates as strings have the right order."""
    for literal in _ordered(leaf):
        text = literal.value
        hint = _hint(text)
        if hint is not None:
            message = f"'{text}' is compared as text, letter by letter: '9' is above '10'"
            span = literal.span if literal.span != (0, 0) else leaf.span
            yield Finding("text-order", message, span, hint)


def _ordered(leaf: Condition) -> Iterator[Literal]:
    match leaf:
        case Comparison() if not leaf.operator.is_equality:
            sides = (leaf.left, leaf.right)
        case Between():
            sides = (leaf.low, leaf.high)
        case _:
            return
    yield from (side for side in sides if isinstance(side, Literal) and side.type == STRING)


def _hint(text: str) -> str | None:
    if _NUMBER.fullmatch(text):
        return f"compare numbers without quotes: {text.strip()}"
    if _VERSION.fullmatch(text):
        return "parts of a version are not ordered as strings: store them as numbers"
    if _CLOCK.fullmatch(text):
        return "write a TIMESTAMP, or times with two digits for the hour, 09:00"
    if _DATE.fullmatch(text):
        return "write DATE '2024-01-31', and use the same form in the events"
    return None
