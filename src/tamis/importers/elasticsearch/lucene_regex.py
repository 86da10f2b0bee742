"""Lucene's regular expressions, as RE2 spells them.

They describe the whole value: `^` and `$` are plain characters, `.` is any character, and there are
neither lazy quantifiers nor groups that begin with `(?`. This follows the syntax of Lucene 8.6 and
later, with all optional operators unless the query gives others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.importers.elasticsearch.errors import bad
from tamis.importers.model import not_expressible

if TYPE_CHECKING:
    from tamis.errors import RowError

# The optional operators by the name of the flag that switches them on.
_OPERATORS: Final = {
    "ALL": "~&#@<",
    "ANYSTRING": "@",
    "AUTOMATON": "<",
    "COMPLEMENT": "~",
    "EMPTY": "#",
    "INTERSECTION": "&",
    "INTERVAL": "<",
    "NONE": "",
}
ALL_OPERATORS: Final = frozenset(_OPERATORS["ALL"])
_MEANING: Final = {"~": "not", "&": "and", "#": "nothing", "<": "a range of numbers"}
_SPECIAL: Final = frozenset("\\.+*?()|[]{}^$")
_SPECIAL_IN_CLASSES: Final = frozenset("\\[]^-")
_QUANTIFIERS: Final = "?*+{"
_SPACES: Final = r" \t\n\r"
# What \S and its relatives add to a class; RE2's \s has a form feed, too.
_CLASSES: Final = {
    "d": r"\d",
    "D": r"\D",
    "w": r"\w",
    "W": r"\W",
    "s": _SPACES,
    "S": r"\x00-\x08\x0B\x0C\x0E-\x1F!-\x{10FFFF}",
}


def read_flags(flags: str) -> frozenset[str]:
    """The operators that flags such as `INTERVAL|EMPTY` switch on."""
    names = [own.strip().upper() for own in flags.split("|") if own.strip()]
    unknown = [own for own in names if own not in _OPERATORS]
    if unknown:
        raise bad(f"regexp has an unknown flag {unknown[0]}; known ones: {', '.join(_OPERATORS)}")
    return frozenset("".join(_OPERATORS[own] for own in names))


def translate(field: str, pattern: str, operators: frozenset[str]) -> str:
    """The regular expression of RE2 for whole values that the pattern describes."""
    return _Translator(field, pattern, operators).whole()


class _Translator:
    def __init__(self, field: str, pattern: str, operators: frozenset[str]) -> None:
        self._field = field
        self._pattern = pattern
        self._operators = operators
        self._at = 0

    def whole(self) -> str:
        if not self._pattern:
            return ""
        found = self._union()
        if self._at < len(self._pattern):
            raise self._wrong("has a ) without a (")
        return found

    # ── structure ──────────────────────────────────────────────────────────────────────────

    def _union(self) -> str:
        found = [self._sequence()]
        while self._take("|"):
            found.append(self._sequence())
        return "|".join(found)

    def _sequence(self) -> str:
        parts: list[str] = []
        while self._at < len(self._pattern) and self._peek() not in "|)":
            self._refuse_operator()
            parts.append(self._repeated())
        if not parts:
            raise self._refuse("an empty alternative, which Lucene reads as a character")
        return "".join(parts)

    def _repeated(self) -> str:
        if self._peek() in _QUANTIFIERS:
            raise self._refuse(
                f"{self._peek()} after nothing, which Lucene reads as a character",
                f"to search for the character, write \\{self._peek()}; groups are written (…)",
            )
        found, is_repeated = self._atom(), False
        while self._peek() and self._peek() in _QUANTIFIERS:
            # A second one is a repetition of a repetition: there are no lazy ones.
            found = (f"(?:{found})" if is_repeated else found) + self._quantifier()
            is_repeated = True
        return found

    def _quantifier(self) -> str:
        sign = self._next()
        if sign != "{":
            return sign
        end = self._pattern.find("}", self._at)
        counts = self._pattern[self._at : end].split(",")
        is_range = len(counts) <= 2 and counts[0].isdecimal()
        if end < 0 or not is_range or not (counts[-1] == "" or counts[-1].isdecimal()):
            raise self._wrong("has a { without numbers, such as {2} or {2,5}")
        self._at = end + 1
        return "{" + ",".join(counts) + "}"

    # ── characters ─────────────────────────────────────────────────────────────────────────

    def _atom(self) -> str:
        character = self._next()
        match character:
            case ".":
                return "."
            case "@" if "@" in self._operators:
                return "(?:.*)"
            case '"':
                return self._quoted()
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escaped()
        return _escape(character)

    def _quoted(self) -> str:
        end = self._pattern.find('"', self._at)
        if end < 0:
            raise self._wrong('has a " without a second one')
        text = self._pattern[self._at : end]
        self._at = end + 1
        return f"(?:{''.join(map(_escape, text))})"

    def _group(self) -> str:
        if self._take(")"):
            return "(?:)"
        inner = self._union()
        if not self._take(")"):
            raise self._wrong("has a ( without a )")
        return f"({inner})"

    def _escaped(self) -> str:
        character = self._next()
        if character in _CLASSES:
            return rf"[{_SPACES}]" if character == "s" else _whole_class(character)
        return _escape(self._plain(character))

    def _plain(self, character: str) -> str:
        """The character after a backslash; a letter is reserved."""
        if character.isascii() and character.isalpha():
            raise self._wrong(
                rf"has \{character}; Lucene knows \d, \s, \w and their capitals alone"
            )
        return character

    def _class(self) -> str:
        is_negated = self._take("^")
        items = [self._class_item()]  # a ] in the first place is a character
        while self._peek() != "]":
            items.append(self._class_item())
        self._at += 1
        return f"[{'^' if is_negated else ''}{''.join(items)}]"

    def _class_item(self) -> str:
        first = self._next()
        if first == "\\":
            first = self._next()
            if first in _CLASSES:
                return _CLASSES[first]
            first = self._plain(first)
        if not self._take("-"):
            return _escape(first, _SPECIAL_IN_CLASSES)
        last = self._next()
        last = self._next() if last == "\\" else last
        if last < first:
            raise self._wrong(f"has the range {first}-{last}, whose end is before its start")
        return "-".join(_escape(own, _SPECIAL_IN_CLASSES) for own in (first, last))

    # ── reading ────────────────────────────────────────────────────────────────────────────

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        if self._at >= len(self._pattern):
            raise self._wrong("ends where a character is expected")
        self._at += 1
        return self._pattern[self._at - 1]

    def _take(self, character: str) -> bool:
        is_next = self._peek() == character
        self._at += is_next
        return is_next

    def _refuse_operator(self) -> None:
        sign = self._peek()
        if sign in self._operators and sign in _MEANING:
            raise self._refuse(
                f"the operator {sign} ({_MEANING[sign]})",
                f"to search for the character, write \\{sign}",
            )

    def _refuse(self, what: str, hint: str | None = None) -> RowError:
        return not_expressible(f"{self._field}: {what}, in {self._pattern!r}", hint=hint)

    def _wrong(self, what: str) -> RowError:
        return bad(f"{self._field}: the regular expression {self._pattern!r} {what}")


def _whole_class(letter: str) -> str:
    return rf"[^{_SPACES}]" if letter == "S" else _CLASSES[letter]


def _escape(character: str, special: frozenset[str] = _SPECIAL) -> str:
    return f"\\{character}" if character in special else character
