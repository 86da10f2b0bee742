r"""Explains why RE2 rejects a regular expression: the construct, its place, what to write instead.

RE2's own message names the fragment only, such as `invalid perl operator: (?!`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SECOND_TEST: Final = "test the other part separately: name RLIKE '…' AND {}name RLIKE '…'"
_NO_REFERENCE: Final = (
    "RE2 cannot compare a part of the text with another; if there are few possible parts, list "
    "them: (?:aa|bb)"
)


class _Construct(NamedTuple):
    pattern: str  # of Python's `re`
    name: str
    hint: str


_CONSTRUCTS: Final = (
    _Construct(r"\(\?=", "lookahead", _SECOND_TEST.format("")),
    _Construct(r"\(\?!", "lookahead", _SECOND_TEST.format("NOT ")),
    _Construct(r"\(\?<=", "lookbehind", _SECOND_TEST.format("")),
    _Construct(r"\(\?<!", "lookbehind", _SECOND_TEST.format("NOT ")),
    _Construct(r"\(\?>", "atomic groups", "write (?:…): RE2 does not backtrack"),
    _Construct(r"\(\?\(", "conditional groups", "write the alternatives: (?:…|…)"),
    _Construct(r"\(\?\#[^)]*\)?", "comments", "remove it"),
    _Construct(r"\(\?P=\w*\)?", "backreferences", _NO_REFERENCE),
    _Construct(r"\(\?(?:R|[0-9]+|&\w+|P>\w+)\)", "recursion", "write the repeated part out"),
    _Construct(
        r"\(\?[imsU]*x[imsUx]*[:)]", "flag x", "remove it, and all white space and comments"
    ),
    _Construct(r"\\(?:[1-9]|k[<{']?\w*[>}']?|g\{?-?\w+\}?)", "backreferences", _NO_REFERENCE),
    _Construct(r"\\Z", r"\Z", r"write \z, or \n?\z to allow a line break at the end"),
    _Construct(r"\\[hH]", r"\h and \H", r"write [ \t] and [^ \t]"),
    _Construct(r"\\R", r"\R", r"write (?:\r\n|\n|\r)"),
    _Construct(r"\\u[0-9A-Fa-f]{0,4}", r"\u", r"write \x{…}, such as \x{e9}"),
    _Construct(r"\\e", r"\e", r"write \x1b"),
    _Construct(r"\\c.", r"\c", r"write the number of the character, such as \x01"),
    _Construct(r"\\<|\\>", r"\< and \>", r"write \b"),
    _Construct(
        r"(?:[*+?]|\{[0-9]+,?[0-9]*\})\+",
        "possessive quantifiers",
        "write it without the last +: RE2 does not backtrack",
    ),
)
# Text in which nothing is a construct: \Q…\E, and an escape that RE2 knows.
_SKIPPED: Final = r"\\Q.*?(?:\\E|\Z)|\\[^1-9kgZhHRuec<>]"
_CLASS: Final = r"\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^]\\])*\]"
_SCAN: Final = re.compile(
    "|".join((_SKIPPED, _CLASS, *(f"(?P<c{at}>{own[0]})" for at, own in enumerate(_CONSTRUCTS)))),
    re.DOTALL,
)


def explain_regex_error(pattern: str, reason: str) -> tuple[str, str | None]:
    """The message and the hint for a pattern that RE2 rejects for this reason."""
    kind, _, fragment = reason.partition(": ")
    if kind not in _BY_CONSTRUCT:
        hint = _hint_at_class(fragment) if kind == _CLASS_ERROR else _OTHER_HINTS.get(kind)
        return _place(reason, pattern, fragment), hint
    for found in _SCAN.finditer(pattern):
        if found.lastgroup is not None:
            construct = _CONSTRUCTS[int(found.lastgroup[1:])]
            shown = _shown(pattern, found.start(), found.end())
            place = f"{shown} at character {found.start() + 1}"
            return f"RE2 has no {construct.name}: {place}", construct.hint
    return _place(reason, pattern, fragment), _BY_CONSTRUCT[kind]


def _hint_at_class(fragment: str) -> str:
    """What to write instead of a class or a range of characters that RE2 does not have."""
    if fragment.startswith("\\"):
        return r"write a script or a category of Unicode, such as \p{Greek} or \p{Lu}"
    if fragment.startswith("[:"):
        return "write one of alpha, digit, alnum, upper, lower, punct, space, xdigit, word"
    return "write the lower character first, or - last, where it is a plain character"


_CLASS_ERROR: Final = "invalid character class range"
# The kinds of errors in which a construct is looked for, and the hint if there is none.
_BY_CONSTRUCT: Final = {
    "invalid perl operator": "after (? come :, a name as in P<name>, or the flags i, m, s and U",
    "invalid escape sequence": r"write the character itself, or its number as in \x{e9}",
    "bad repetition operator": "put what is repeated first in parentheses: (?:a*)*",
}
_OTHER_HINTS: Final = {
    "missing ]": r"write a bracket that is plain text as \[",
    "missing )": r"write a parenthesis that is plain text as \(",
    "unexpected )": r"write a parenthesis that is plain text as \)",
    "no argument for repetition operator": r"write a plain *, + or ? as \*, \+ or \?",
    "invalid repetition size": "a count is at most 1,000, those around it included; of two, the "
    "lower comes first",
    "invalid named capture group": "write (?P<name>…), or (?:…) without a name",
    "trailing \\": r"write a backslash that is plain text as \\",
}
_SHOWN: Final = 20


def _shown(pattern: str, start: int, end: int) -> str:
    """The construct; of a group, its beginning to the next parenthesis."""
    if pattern[start] == "(" and pattern[end - 1] != ")":
        closing = re.compile(r"[^()]*\)?").match(pattern, end)
        end = closing.end() if closing else end
    return pattern[start:end] if end - start <= _SHOWN else pattern[start : start + _SHOWN] + "…"


def _place(reason: str, pattern: str, fragment: str) -> str:
    at = pattern.find(fragment) if fragment and fragment != pattern else -1
    return reason if at < 0 else f"{reason} at character {at + 1}"
