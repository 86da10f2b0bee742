"""Rewriting rules, one per file, applied in this order to nodes whose children are canonical.

`spelling` is applied before them, to leaves; `order` after them, to their results.

Each rule declares what it preserves. A rule that preserves VALUE may be used anywhere. A rule that
preserves only TRUTH (the rewritten condition is TRUE for the same events, but may be FALSE where
the original is undefined) is valid only where FALSE and undefined need not be distinguished: in a
tree in negation normal form, outside XOR. The property tests verify this for each rule.
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
