"""What to write instead of what people bring from other languages: Sigma, SQL, search boxes."""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = r"`(?:[^`]|``)+`|[A-Za-z_][\w.]*"
_STRING: Final = r"'(?:[^'\\]|\\.|'')*'|\"[^\"]*\""
# A name, or a name and NOT, at the end of what was read.
_BEFORE: Final = re.compile(rf"({_NAME})[ \t]*(?:(?<=[ \t])(not)[ \t]*)?\Z", re.IGNORECASE)
# As in Sigma's `Image|contains: x`: the attribute, then how it is tested.
_MODIFIER: Final = re.compile(r"\|[ \t]*([A-Za-z_]+)")
_ARGUMENT: Final = re.compile(rf"[ \t]*\([ \t]*({_NAME})[ \t]*\)")
_QUOTED: Final = re.compile(r'"([^"]{0,60})"')
_CONSTANT: Final = re.compile(rf"[ \t]*(?:\|[ \t]*\w+[ \t]*)*:?[ \t]*({_STRING})")
_LISTED: Final = re.compile(r"\[([^\[\]]{0,60})\]")
_WORDS: Final = re.compile(r":[ \t]*([\w.*]+)")
_NUMBER: Final = re.compile(r"[+-]?[\d.]+")
_PATTERN: Final = re.compile(rf"[ \t]*(not[ \t]+)?i?like[ \t]*({_STRING})", re.IGNORECASE)
_CONNECTIVES: Final = ("AND", "OR", "NOT", "XOR")
_TESTS: Final = ("contains", "startswith", "endswith", "matches")
_WRITTEN: Final = {
    **{name: f"{name}({{0}}, {{1}})" for name in _TESTS},
    "includes": "contains({0}, {1})",
    "re": "{0} RLIKE {1}",
    "regex": "{0} RLIKE {1}",
    "regexp": "{0} RLIKE {1}",
    "cased": "{0} = {1}",
}


def hint_at_double_quote(text: str, position: int) -> str:
    """The string as it is written here."""
    found = _QUOTED.match(text, position)
    if found is None:
        return "strings are written 'so'"
    inner = found[1].replace("'", "''")
    return f"strings are written in single quotes: '{inner}'"


def hint_at_bar(text: str, position: int) -> str:
    """The test, if the bar is followed by one of Sigma's modifiers."""
    modifier = _MODIFIER.match(text, position)
    known = modifier and _written(text, position, modifier[1], modifier.end())
    return f"write {known}" if known else "write OR"


def hint_at_infix(text: str, start: int, end: int) -> str | None:
    """The call, if a word that tests texts stands after an attribute."""
    known = _written(text, start, text[start:end], end)
    return f"write {known}" if known else None


def hint_at_colon(text: str, position: int) -> str | None:
    """The comparison, if a name stands before the colon."""
    name = _name_before(text, position)
    if name is None:
        return None
    if constant := _CONSTANT.match(text, position):
        return f"write {name} = {_single_quoted(constant[1])}"
    word = _WORDS.match(text, position)
    if word is None:
        return f"write {name} = …"
    if _NUMBER.fullmatch(word[1]):
        return f"write {name} = {word[1]}"
    return f"write {name} = '{word[1]}', or matches({name}, '{word[1]}') to look for words"


def hint_at_bracket(text: str, position: int) -> str:
    """The list as it is written here."""
    found = _LISTED.match(text, position)
    members = found[1].replace('"', "'") if found else "…"
    return f"a list is written in parentheses: ({members})"


def hint_at_tilde(text: str, position: int) -> str:
    """The test by a regular expression."""
    name = _name_before(text, position - text.startswith("=~", position - 1))
    constant = _CONSTANT.match(text, position + 1)
    value = _single_quoted(constant[1]) if constant else "'…'"
    return f"write {name or 'name'} RLIKE {value}"


def hint_at_exists(text: str, start: int, end: int) -> str:
    """How presence is tested."""
    found = _ARGUMENT.match(text, end)
    name = found[1] if found else _name_before(text, start)
    if name is None:
        return f"an attribute of that name is written `{text[start:end]}`"
    return f"to test that an event has it, write {name} IS NOT NULL"


def hint_at_comparison(name: str, arguments: str, operator: str, other: str) -> str:
    """What takes the place of a function of an attribute, compared with `other`."""
    is_plain = re.fullmatch(_STRING, other) and "\\" not in other
    if name.lower() in _FOLDING and operator in ("=", "<>") and is_plain:
        # A pattern in which nothing stands for anything else.
        pattern = re.sub(r"([%_])", r"\\\1", other)
        test = "ILIKE" if operator == "=" else "NOT ILIKE"
        return f"to compare in any case, write {arguments} {test} {pattern}"
    return hint_at_function(name, arguments) or _NO_FUNCTIONS


def hint_at_tested(name: str, arguments: str, text: str, end: int) -> str:
    """What takes the place of a function of an attribute that is tested by what comes after."""
    pattern = _PATTERN.match(text, end)
    if name.lower() in _FOLDING and pattern:
        test = "NOT ILIKE" if pattern[1] else "ILIKE"
        value = _single_quoted(pattern[2])
        return f"to compare in any case, write {arguments} {test} {value}"
    return hint_at_function(name, arguments) or _NO_FUNCTIONS


def hint_at_function(name: str, arguments: str) -> str | None:
    """What takes the place of a function that other languages have."""
    folded = name.lower().replace("_", "")
    if folded in _FOLDING:
        return f"to compare in any case, write {arguments} ILIKE '…'"
    if folded in ("length", "len", "charlength"):
        return "lengths cannot be tested, but patterns can: name LIKE '___%' has three or more"
    if folded in ("isnull", "isempty", "missing"):
        return f"write {arguments} IS NULL"
    if folded in ("isnotnull", "notnull", "has", "present"):
        return f"write {arguments} IS NOT NULL"
    return None


_FOLDING: Final = ("lower", "upper", "lcase", "ucase", "tolower", "toupper", "casefold")
_NO_FUNCTIONS: Final = "functions of attributes are not supported: compare the attribute itself"


def _written(text: str, start: int, word: str, end: int) -> str | None:
    """The test of the name before `start` by what comes after `end`."""
    form = _WRITTEN.get(word.lower())
    found = _BEFORE.search(text, 0, start)
    if form is None or found is None or found[1].upper() in _CONNECTIVES:
        return None
    constant = _CONSTANT.match(text, end)
    value = _single_quoted(constant[1]) if constant else "'…'"
    return ("NOT " if found[2] else "") + form.format(found[1], value)


def _name_before(text: str, position: int) -> str | None:
    found = _BEFORE.search(text, 0, position)
    return None if found is None or found[1].upper() in _CONNECTIVES else found[1]


def _single_quoted(constant: str) -> str:
    return "'" + constant[1:-1].replace("'", "''") + "'" if constant[0] == '"' else constant
