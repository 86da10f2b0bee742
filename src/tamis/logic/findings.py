"""The findings of lint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.language.ast import Span


@dataclass(frozen=True, slots=True)
class Finding:
    """One suspicious part of an expression."""

    code: str
    message: str
    span: Span
    hint: str | None = None
