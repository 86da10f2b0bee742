"""Limits on the size of an expression; each is checked before the work it bounds."""

from __future__ import annotations

from dataclasses import dataclass, fields

from tamis.errors import TamisError

# The parser takes up to six Python frames per level, tree traversals up to three; this keeps them
# far from Python's limit of 1,000.
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits checked when a subscription is added; raise them for larger rule sets."""

    text_length: int = 1_048_576  # characters of one expression; parsing takes linear time
    depth: int = 64  # nested parentheses, connectives and function calls
    predicates: int = 4_096
    in_list: int = 10_000  # members of one list: of values or of patterns
    regex_length: int = 1_024  # characters of one regular expression
    xor_operands: int = 64

    def __post_init__(self) -> None:
        for limit in fields(self):
            if getattr(self, limit.name) < 1:
                raise TamisError(f"limit {limit.name} is {getattr(self, limit.name)}; at least 1")
        if self.depth > MAX_DEPTH:
            raise TamisError(f"limit depth is {self.depth}; at most {MAX_DEPTH}")


DEFAULT_LIMITS = Limits()
_UNLIMITED = 2**62
# For a text that was within the limits when its index was built.
NO_LIMITS = Limits(_UNLIMITED, MAX_DEPTH, _UNLIMITED, _UNLIMITED, _UNLIMITED, _UNLIMITED)
