"""How each pattern is decided: by literals only, or by a test for texts with its literals."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.index.patterns.required import Clause, fold, require
from tamis.language.ast import Like, Rlike, StringTest
from tamis.language.patterns import Wild, parse_like

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    Pattern: TypeAlias = Like | Rlike | StringTest
    Tokens: TypeAlias = tuple[str | Wild, ...]

# A literal at a fixed position counts as rare as one anywhere that is this many characters longer.
ANCHOR_BONUS: Final = 4
# Shorter literals are in most texts, and they make every byte of a text a place to look for one:
# only triggers may be as short.
LEAST_CLAUSE: Final = 3


class LiteralPosition(IntEnum):
    """The position at which a literal must occur in a text."""

    ANYWHERE = 0
    START = 1
    END = 2
    WHOLE = 3


_STRING_TESTS: Final = {
    "contains": LiteralPosition.ANYWHERE,
    "startswith": LiteralPosition.START,
    "endswith": LiteralPosition.END,
}

# By whether other characters may come before and after.
_PLACES: Final = {
    (True, True): LiteralPosition.ANYWHERE,
    (False, True): LiteralPosition.START,
    (True, False): LiteralPosition.END,
    (False, False): LiteralPosition.WHOLE,
}


class Trigger(NamedTuple):
    """A literal at a position."""

    text: str
    place: LiteralPosition
    is_folded: bool  # in the lower case of the text


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """How one pattern is decided.

    Without a test, the single trigger decides. With a test, a trigger makes the pattern a
    candidate, and a text that satisfies all clauses is tested. A pattern without triggers is tested
    on all texts.
    """

    triggers: tuple[Trigger, ...]
    test: Tokens | str | None = None  # of LIKE; a regular expression
    is_folded: bool = False  # the test uses the lower case of the text
    clauses: tuple[Clause, ...] = ()
    min_length: int = 0  # of the text, in characters


def plan_patterns(patterns: Sequence[Pattern]) -> list[PatternPlan]:
    """The plan of each pattern."""
    # If lower case is searched anyway, regexes are searched there too: it saves a second pass.
    reads_folded = any(isinstance(each, Like) and each.ignores_case for each in patterns)
    return [plan_pattern(each, prefers_folded=reads_folded) for each in patterns]


def plan_pattern(pattern: Pattern, *, prefers_folded: bool) -> PatternPlan:
    """The plan of one pattern; `prefers_folded` searches literals of regexes in lower case."""
    match pattern:
        case Like(ignores_case=True):
            return plan_like(parse_like(pattern.pattern.lower(), pattern.escape), is_folded=True)
        case Like():
            return plan_like(parse_like(pattern.pattern, pattern.escape), is_folded=False)
        case Rlike():
            return plan_regex(pattern.pattern, prefers_folded=prefers_folded)
        case StringTest(text=""):
            return plan_like((Wild.ANY_TEXT,), is_folded=False)
        case StringTest():
            return PatternPlan((Trigger(pattern.text, _STRING_TESTS[pattern.function], False),))


def plan_like(tokens: Tokens, *, is_folded: bool) -> PatternPlan:
    """The plan of a pattern of LIKE."""
    opens, closes = tokens[:1] == (Wild.ANY_TEXT,), tokens[-1:] == (Wild.ANY_TEXT,)
    middle = tokens[opens : len(tokens) - closes]
    if middle and Wild.ANY_TEXT not in middle and Wild.ONE_CHARACTER not in middle:
        text = "".join(map(str, middle))
        return PatternPlan((Trigger(text, _PLACES[opens, closes], is_folded),))
    min_length = sum(token is not Wild.ANY_TEXT for token in tokens)
    runs = _split(tokens)
    best = max(runs, key=_quality, default=None)
    clauses = tuple(
        Clause(frozenset([run[0]]), is_folded)
        for run in runs
        if run is best or len(run[0]) >= LEAST_CLAUSE
    )
    triggers = () if best is None else (Trigger(*best, is_folded),)
    return PatternPlan(triggers, tokens, is_folded, clauses, min_length)


def _split(tokens: Tokens) -> list[tuple[str, LiteralPosition]]:
    """The runs of plain characters, each with its required position."""
    runs: list[tuple[str, LiteralPosition]] = []
    begin = 0
    while begin < len(tokens):
        end = begin
        while end < len(tokens) and isinstance(tokens[end], str):
            end += 1
        if end > begin:
            text = "".join(map(str, tokens[begin:end]))
            runs.append((text, _PLACES[begin > 0, end < len(tokens)]))
        begin = end + 1
    return runs


def _quality(run: tuple[str, LiteralPosition]) -> int:
    text, place = run
    return len(text) + ANCHOR_BONUS * (place is not LiteralPosition.ANYWHERE)


def _is_rare(clause: Clause) -> bool:
    return all(len(text) >= LEAST_CLAUSE for text in clause.texts)


def plan_regex(pattern: str, *, prefers_folded: bool) -> PatternPlan:
    """The plan of a regular expression."""
    clauses, min_length = require(pattern)
    if prefers_folded:
        clauses = tuple(fold(clause) or clause for clause in clauses)
    clauses = clauses[:1] + tuple(filter(_is_rare, clauses[1:]))
    triggers = tuple(
        Trigger(text, LiteralPosition.ANYWHERE, clause.is_folded)
        for clause in clauses[:1]
        for text in sorted(clause.texts)
    )
    return PatternPlan(triggers, pattern, clauses=clauses, min_length=min_length)
