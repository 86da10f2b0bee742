r"""RE2 patterns rewritten for Java, so that `find()` matches the same texts.

Only whether a text matches counts: groups need no numbers, quantifiers no laziness, and (?U) has no
effect. The dialects differ most in their sets of characters (\s, \b, case folding, the version of
Unicode), so these sets are computed with RE2 itself and written as ranges. The result uses no flags
and no named classes, and has the same meaning in every version of Java.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache, lru_cache
from typing import Final, NamedTuple
from unicodedata import is_normalized

from tamis.language.patterns import BadPatternError, compile_regex

TOKEN: Final = re.compile(
    r"""
      (?P<quote> \\Q (?P<quoted> .*? ) (?: \\E | \Z ) )
    | (?P<set>
          \.
        | \[ \^? (?: \] (?: -(?!\]) (?: \\. | [^\\] ) )? )?
          (?:
              \[:\^?[a-z]+:\]
            | \\[pP] (?: \{ [^}]* \} | . )
            | \\[dDsSwW]
            | (?: \\. | [^]\\] ) (?: -(?!\]) (?: \\. | [^\\] ) )?  # in a range, [ is plain text
          )* \]
        | \\[pP] (?: \{ [^}]* \} | . )
        | \\x (?: \{ [^}]* \} | .. )
        | \\[0-7]{1,3}
        | \\[^AzbBC]
      )
    | (?P<assertion> [$^] | \\[AzbB] )
    | (?P<any_byte> \\C )
    | (?P<quantifier>
          # {01}, and counts of ten digits, are plain text.
          (?P<count>
              [*+?]
            | \{ (?P<least> 0 | [1-9][0-9]{0,8} )
              (?P<comma> , (?P<most> 0 | [1-9][0-9]{0,8} )? )? \}
          ) \??
      )
    | (?P<flags> \(\? (?P<on> [imsU]* ) (?: - (?P<off> [imsU]+ ) )? (?P<until> [:)] ) )
    | (?P<opening> \( (?: \?P?< [^>]* > )? )
    | (?P<closing> \) )
    | (?P<bar> \| )
    | (?P<literal> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def is_lazy(pattern: str) -> bool:
    """Whether a repetition of an RE2 pattern prefers few."""
    for found in TOKEN.finditer(pattern):
        if found["quantifier"] and found["quantifier"] != found["count"]:
            return True
        if found["flags"] and "U" in found["flags"]:
            return True
    return False


_WORD: Final = "[0-9A-Z_a-z]"  # RE2's \b uses ASCII words only, with any flags
_ASSERTIONS: Final = {
    "^": r"\A",
    "$": r"\z",
    r"\A": r"\A",
    r"\z": r"\z",
    r"\b": f"(?:(?<!{_WORD})(?={_WORD})|(?<={_WORD})(?!{_WORD}))",
    r"\B": f"(?:(?<!{_WORD})(?!{_WORD})|(?<={_WORD})(?={_WORD}))",
}
# Java's (?m) accepts more line ends than \n, and no line after a final one.
_LINE_ASSERTIONS: Final = {"^": r"(?:\A|(?<=\n))", "$": r"(?:\z|(?=\n))"}

# Java's stack grows with every copy, and an overflow kills a local Spark. 30,000 characters fit in
# the default of 1 MiB.
_LONGEST_UNROLLED: Final = 8_000

_SPECIAL: Final = frozenset(r"\^$.|?*+()[]{}-&")  # outside of [] or inside
_CONTROLS: Final = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


class _Range(NamedTuple):
    first: int
    last: int  # included


class _Emptiness(IntEnum):
    """Where an expression can match the empty text, from the least to the most."""

    NOWHERE = 0
    AT_ASSERTIONS = 1  # at a word's end, at the start of the text …
    EVERYWHERE = 2


class _Piece(NamedTuple):
    atom: str  # a quantifier after it applies to all of it
    emptiness: _Emptiness = _Emptiness.NOWHERE
    quantifier: str = ""

    def to_atom(self) -> str:
        return f"(?:{self.atom}{self.quantifier})" if self.quantifier else self.atom


@dataclass(slots=True)
class _Group:
    """A group being parsed; the whole pattern is also one."""

    flags: frozenset[str]  # those of "imsU" in effect
    pieces: list[_Piece] = field(default_factory=list)  # of the latest alternative
    alternatives: list[str] = field(default_factory=list)  # the earlier ones
    emptiness: _Emptiness = _Emptiness.NOWHERE  # theirs

    def end_alternative(self) -> None:
        self.alternatives.append("".join(piece.atom + piece.quantifier for piece in self.pieces))
        emptiness = min((piece.emptiness for piece in self.pieces), default=_Emptiness.EVERYWHERE)
        self.emptiness = max(self.emptiness, emptiness)
        self.pieces = []

    def close(self) -> str:
        self.end_alternative()
        return "|".join(self.alternatives)

    def close_to_piece(self) -> _Piece:
        if not self.alternatives and len(self.pieces) == 1:
            return self.pieces[0]
        return _Piece(f"(?:{self.close()})", self.emptiness)


def to_java_regex(pattern: str) -> str:
    r"""The Java pattern that finds the same texts as the valid RE2 `pattern`.

    Raises `BadPatternError` for \C, and for high counts of expressions that are empty only at
    assertions.
    """
    groups = [_Group(frozenset())]
    for token in TOKEN.finditer(pattern):
        _read(token, groups)
    java_pattern = groups[0].close()
    # RE2 also looks between bytes, so it finds \B inside every multi-byte character.
    if r"\B" in pattern and compile_regex(pattern).fullmatch("é".encode(), 1, 1):
        return java_pattern + r"|[^\x{0}-\x{7f}]"
    return java_pattern


def _read(token: re.Match[str], groups: list[_Group]) -> None:
    group, text = groups[-1], token[0]
    match token.lastgroup:
        case "literal":
            group.pieces.append(_print_literal(text, group.flags))
        case "quote":
            group.pieces += (_print_literal(each, group.flags) for each in token["quoted"])
        case "set":
            flags = "".join(group.flags & {"s" if text == "." else "i"})
            group.pieces.append(_print_set(_ask_ranges(f"(?{flags}){text}")))
        case "assertion":
            meanings = _ASSERTIONS | (_LINE_ASSERTIONS if "m" in group.flags else {})
            group.pieces.append(_Piece(meanings[text], _Emptiness.AT_ASSERTIONS))
        case "quantifier":
            # In a(?i)* too, the quantifier applies to the atom before the flags.
            group.pieces.append(_quantify(group.pieces.pop(), token))
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
            groups[-1].pieces.append(group.close_to_piece())
        case "bar":
            group.end_alternative()
        case _:
            raise BadPatternError(
                rf"\C at position {token.start() + 1}: Java cannot match a single byte; "
                "allowed are . and (?s:.)"
            )


def _quantify(piece: _Piece, token: re.Match[str]) -> _Piece:
    quantifier, least = token["count"], int(token["least"] or token["count"] == "+")
    emptiness = piece.emptiness if least else _Emptiness.EVERYWHERE
    if least > 1 and emptiness is _Emptiness.AT_ASSERTIONS:
        return _Piece(_unroll(piece.to_atom(), token), emptiness)
    if {piece.quantifier, quantifier} <= {"*", "+", "?"}:
        # (x*)+ is x*: Java's time and stack would multiply with each nested loop.
        return _Piece(piece.atom, emptiness, quantifier if quantifier == piece.quantifier else "*")
    return _Piece(piece.to_atom(), emptiness, quantifier)


def _unroll(atom: str, token: re.Match[str]) -> str:
    """`atom`, repeated the given number of times.

    A round of a Java loop that matches the empty text is its last, so with (?:^|a){2} Java would
    not find the text a. For fewer than two rounds this is right: an empty round can be left out.
    """
    least = int(token["least"])
    if len(atom) * least > _LONGEST_UNROLLED:
        raise BadPatternError(
            rf"{token[0]} at position {token.start() + 1}: too many copies for Java of an "
            r"expression that can be empty only at ^, $, \A, \z, \b or \B; a lower count is allowed"
        )
    others = ""
    if token["most"]:
        others = f"{atom}{{0,{int(token['most']) - least}}}"
    elif token["comma"]:
        others = f"{atom}*"
    return f"(?:{atom * least}{others})"


# ── sets of characters ──────────────────────────────────────────────────────────────────────


@cache
def _every_character() -> bytes:
    """UTF-8 of all code points in order, without the surrogates, which no text contains."""
    return "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000)))).encode()


@lru_cache(maxsize=4096)
def _ask_ranges(atom: str) -> tuple[_Range, ...]:
    """The code points that RE2 finds with an expression for one character."""
    runs = map(bytes.decode, compile_regex(atom + "+").findall(_every_character()))
    return tuple(_Range(ord(run[0]), ord(run[-1])) for run in runs)


def _print_literal(character: str, flags: frozenset[str]) -> _Piece:
    if "i" in flags:
        return _print_set(_ask_ranges(f"(?i)\\x{{{ord(character):x}}}"))
    return _Piece(_print_character(ord(character)))


def _print_set(ranges: tuple[_Range, ...]) -> _Piece:
    others = _complement(ranges)
    if len(ranges) == 1 and ranges[0].first == ranges[0].last:
        text = _print_character(ranges[0].first)
    elif not others or 0 < len(ranges) <= len(others):  # Java has neither [] nor [^]
        text = f"[{''.join(map(_print_range, ranges))}]"
    else:
        text = f"[^{''.join(map(_print_range, others))}]"
    return _Piece(text)


def _complement(ranges: tuple[_Range, ...]) -> tuple[_Range, ...]:
    firsts = (0, *(each.last + 1 for each in ranges))
    lasts = (*(each.first - 1 for each in ranges), 0x10FFFF)
    return tuple(_Range(*gap) for gap in zip(firsts, lasts, strict=True) if gap[0] <= gap[1])


def _print_range(limits: _Range) -> str:
    first, last = map(_print_character, limits)
    return first if first == last else f"{first}-{last}"


def _print_character(code_point: int) -> str:
    character = chr(code_point)
    if character in _SPECIAL:
        return f"\\{character}"
    if character.isascii() and character.isprintable():
        return character
    # U+212A looks like K, and an editor that normalizes text would replace it.
    if character.isalnum() and is_normalized("NFC", character):
        return character
    return _CONTROLS.get(character, f"\\x{{{code_point:x}}}")
