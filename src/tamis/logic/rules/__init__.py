"""Rewriting rules, one per file, applied in this order to nodes whose children are canonical.

`spelling` comes before them, on leaves; `order` after them, on what they leave.

Each rule says what it preserves. A rule that preserves VALUE may be used anywhere. A rule that
preserves only TRUTH (the rewritten condition is TRUE for the same events, but may be FALSE where
the original is undefined) is right only where being TRUE is all that matters: in a tree in negation
normal form, outside XOR. The property tests hold each rule to what it says.
"""

from __future__ import annotations

from typing import Final

from tamis.logic.rules import (
    absorption,
    complements,
    constants,
    duplicates,
    empty_sets,
    flatten,
    parity,
    presence,
    value_sets,
)
from tamis.logic.rules.rule import Preserves, Rule

RULES: Final[tuple[Rule, ...]] = (
    flatten.RULE,
    constants.RULE,
    duplicates.RULE,
    absorption.RULE,
    value_sets.RULE,
    parity.RULE,
    empty_sets.RULE,
    presence.RULE,
    complements.RULE,
)

__all__ = ["RULES", "Preserves", "Rule"]
