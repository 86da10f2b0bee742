r"""The strings that a text must contain for a regular expression to match it.

The pattern is interpreted as RE2 does. Constructs that are not supported (wide sets, \C, …) require
nothing, so a requirement may be weak but never wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.language.java_regex import TOKEN as RE2_TOKEN
from tamis.language.patterns import BadPatternError, compile_regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_SPELLINGS: Final = 16  # strings that a run of characters may expand to
MAX_ALTERNATIVES: Final = 256  # texts of one clause
MAX_COPIES: Final = 4  # of a repeated expression
MAX_CLAUSES: Final = 8  # of one pattern; the best are kept

# Under (?i), RE2 matches ASCII letters with only one character whose lower case is not that letter:
# this one.
LONG_S: Final = "ſ"

_ASCII: Final = "".join(map(chr, range(128)))
# Sets that may have members outside ASCII; all others are assumed to have some.
_WIDE_SET: Final = re.compile(r"\A\.|\A\[\^|\[:\^|\\[pPDSWx0-7]|[^\x00-\x7f]")


class Clause(NamedTuple):
    """Strings of which every matching text contains at least one."""

    texts: frozenset[str]
    is_folded: bool  # in lower case, searched in the lower case of the text

    @property
    def weakness(self) -> float:
        """An estimate of the share of texts that satisfy the clause: a 16th for each further
        character.
        """
        return sum(16.0 ** -len(text) for text in self.texts)


class Requirement(NamedTuple):
    """All known requirements."""

    clauses: tuple[Clause, ...]  # the best first
    min_length: int  # in characters


def require(pattern: str) -> Requirement:
    """The requirements on texts in which RE2 finds `pattern`, which must be a valid RE2 pattern."""
    groups = [_Group(frozenset())]
    for token in RE2_TOKEN.finditer(pattern):
        if token.lastgroup == "set" and not _is_one_set(token[0]):
            return Requirement((), 0)
        _read(token, groups)
    piece = groups[0].close()
    best = sorted(piece.clauses, key=attrgetter("weakness"))[:MAX_CLAUSES]
    return Requirement(tuple(map(_admit_long_s, best)), piece.min_length)


def fold(clause: Clause) -> Clause | None:
    """The clause for the lower case of texts; None if lower case depends on the context."""
    if clause.is_folded:
        return clause
    if not all(map(str.isascii, clause.texts)):
        return None
    return Clause(frozenset(map(str.lower, clause.texts)), is_folded=True)


def _admit_long_s(clause: Clause) -> Clause:
    if clause.is_folded and any("s" in text for text in clause.texts):
        return clause._replace(texts=clause.texts | {LONG_S})
    return clause


# ── pieces ──────────────────────────────────────────────────────────────────────────────────


class _Piece(NamedTuple):
    """A part of the pattern, with facts about the texts it matches.

    A matching text begins with one of the heads and ends with one of the tails; if the part is
    exact, the text is one of the heads, and the tails are the same.
    """

    min_length: int
    heads: Clause
    tails: Clause
    is_exact: bool = False
    inner: tuple[Clause, ...] = ()

    @property
    def clauses(self) -> list[Clause]:
        return _useful([self.heads, *self.inner, self.tails])


_EMPTY: Final = Clause(frozenset([""]), is_folded=False)
_ANYTHING: Final = _Piece(0, _EMPTY, _EMPTY)
_ANY_CHARACTER: Final = _Piece(1, _EMPTY, _EMPTY)


def _exactly(clause: Clause, min_length: int) -> _Piece:
    return _Piece(min_length, clause, clause, is_exact=True)


_NOTHING: Final = _exactly(_EMPTY, 0)  # assertions match the empty string, if they match


def _useful(clauses: Iterable[Clause]) -> list[Clause]:
    """The clauses without duplicates and without those that all texts satisfy."""
    return [clause for clause in dict.fromkeys(clauses) if "" not in clause.texts]


@dataclass(slots=True)
class _Group:
    """A group being parsed; the whole pattern is also one."""

    flags: frozenset[str]  # those of "imsU" in effect
    pieces: list[_Piece] = field(default_factory=list)  # of the latest alternative
    alternatives: list[_Piece] = field(default_factory=list)  # the earlier ones

    def end_alternative(self) -> None:
        self.alternatives.append(_concatenate(self.pieces))
        self.pieces = []

    def close(self) -> _Piece:
        self.end_alternative()
        return _alternate(self.alternatives)


def _read(token: re.Match[str], groups: list[_Group]) -> None:
    group, text = groups[-1], token[0]
    match token.lastgroup:
        case "literal":
            group.pieces.append(_read_character(text, group.flags))
        case "quote":
            group.pieces += (_read_character(each, group.flags) for each in token["quoted"])
        case "set":
            group.pieces.append(_read_set(text, group.flags))
        case "assertion":
            group.pieces.append(_NOTHING)
        case "quantifier":
            group.pieces.append(_repeat(group.pieces.pop(), token))
        case "flags":
            flags_now = (group.flags | set(token["on"])) - set(token["off"] or "")
            if token["until"] == ":":
                groups.append(_Group(flags_now))
            else:
                group.flags = flags_now
        case "opening":
            groups.append(_Group(group.flags))
        case "closing":
            groups.pop()
            groups[-1].pieces.append(group.close())
        case "bar":
            group.end_alternative()
        case _:  # \C, one byte of a character
            group.pieces.append(_ANYTHING)


def _read_character(character: str, flags: frozenset[str]) -> _Piece:
    if "i" not in flags:
        return _exactly(Clause(frozenset([character]), is_folded=False), 1)
    if not character.isascii():
        return _ANY_CHARACTER
    return _exactly(Clause(frozenset([character.lower()]), is_folded=True), 1)


def _read_set(text: str, flags: frozenset[str]) -> _Piece:
    members = _members(text)
    if "i" in flags:
        members = frozenset(map(str.lower, members))
    if not 0 < len(members) <= MAX_SPELLINGS:
        return _ANY_CHARACTER
    return _exactly(Clause(members, "i" in flags), 1)


@lru_cache(maxsize=4096)
def _members(text: str) -> frozenset[str]:
    """The ASCII members of a set; None if it may have others."""
    if _WIDE_SET.search(text):
        return frozenset()
    return frozenset(compile_regex(text).findall(_ASCII))


@lru_cache(maxsize=4096)
def _is_one_set(text: str) -> bool:
    """Whether RE2 parses the text as one set: the first ] that can end it does."""
    ends = [at for at, character in enumerate(text, 1) if character == "]"]
    if text.startswith("[") and any(_is_accepted(text[:end]) for end in ends[:-1]):
        return False
    return _is_accepted(text)


def _is_accepted(pattern: str) -> bool:
    try:
        compile_regex(pattern)
    except BadPatternError:
        return False
    return True


def _repeat(piece: _Piece, token: re.Match[str]) -> _Piece:
    least = int(token["least"] or token["count"] == "+")
    if token["count"] == "?":
        return _alternate([piece, _NOTHING])
    copies = _concatenate([piece] * min(least, MAX_COPIES))
    is_fixed = bool(token["least"]) and not token["comma"] and least <= MAX_COPIES
    return copies._replace(
        min_length=least * piece.min_length, is_exact=copies.is_exact and is_fixed
    )


def _concatenate(pieces: list[_Piece]) -> _Piece:
    run = _EMPTY  # the strings that the latest pieces spell
    ends: list[Clause] = []  # of the runs before
    inner: list[Clause] = []
    for piece in pieces:
        joined = _join(run, piece.heads)
        if joined is not None and piece.is_exact:
            run = joined
        else:
            ends.append(run if joined is None else joined)
            inner += piece.inner
            run = piece.tails
    min_length = sum(piece.min_length for piece in pieces)
    if not ends:
        return _exactly(run, min_length)
    return _Piece(min_length, ends[0], run, inner=tuple(_useful([*ends[1:], *inner])))


def _join(left: Clause, right: Clause) -> Clause | None:
    """All concatenations of strings of both; None if there are too many."""
    if left.is_folded == right.is_folded:
        if len(left.texts) * len(right.texts) <= MAX_SPELLINGS:
            texts = frozenset(map("".join, product(left.texts, right.texts)))
            return Clause(texts, left.is_folded)
        if left.is_folded:
            return None
    # In lower case there are fewer: [Nn][Ee][Tt] is net.
    folded_left, folded_right = fold(left), fold(right)
    if folded_left is None or folded_right is None:
        return None
    return _join(folded_left, folded_right)


def _alternate(pieces: list[_Piece]) -> _Piece:
    if len(pieces) == 1:
        return pieces[0]
    min_length = min(piece.min_length for piece in pieces)
    heads = _unite([piece.heads for piece in pieces], MAX_SPELLINGS)
    if heads is not None and all(piece.is_exact for piece in pieces):
        return _exactly(heads, min_length)
    tails = _unite([piece.tails for piece in pieces], MAX_SPELLINGS)
    best = [min(piece.clauses, key=attrgetter("weakness"), default=None) for piece in pieces]
    inner = _unite(best, MAX_ALTERNATIVES)
    return _Piece(
        min_length, heads or _EMPTY, tails or _EMPTY, inner=() if inner is None else (inner,)
    )


def _unite(clauses: Sequence[Clause | None], max_texts: int) -> Clause | None:
    """One clause for all alternatives; None if one is unknown, or there are too many strings."""
    known = [clause for clause in clauses if clause is not None]
    if len(known) < len(clauses):
        return None
    if len({clause.is_folded for clause in known}) > 1:
        return _unite([fold(clause) for clause in known], max_texts)
    texts = frozenset[str]().union(*(clause.texts for clause in known))
    return Clause(texts, known[0].is_folded) if len(texts) <= max_texts else None
