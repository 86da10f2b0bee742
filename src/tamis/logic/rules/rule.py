"""The record of a rewriting rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.ast import Condition


class Preserves(Enum):
    """What a rule preserves."""

    VALUE = "true, false and undefined"
    TRUTH = "being true"


@dataclass(frozen=True, slots=True)
class Rule:
    """A named rewriting of one node; returns the node itself if it does not apply."""

    name: str
    preserves: Preserves
    rewrite: Callable[[Condition], Condition]
    # Whether it replaces leaves by their opposites, which is invalid for
    # `Missing.SATISFIES_NEGATION`: there NOT a < 1 is true on a missing attribute, and a >= 1 is
    # not.
    uses_opposites: bool = False
