"""What a rewriting rule is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.ast import Condition


class Preserves(Enum):
    """What stays the same when a rule is applied."""

    VALUE = "true, false and undefined"
    TRUTH = "being true"


@dataclass(frozen=True, slots=True)
class Rule:
    """A named rewriting of one node; returns the node itself where it does not apply."""

    name: str
    preserves: Preserves
    rewrite: Callable[[Condition], Condition]
    # Whether it replaces leaves by their opposites, which `Missing.SATISFIES_NEGATION` forbids:
    # there NOT a < 1 holds on a missing attribute, and a >= 1 does not.
    uses_opposites: bool = False
