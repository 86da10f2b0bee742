"""What to write instead of what people bring from other languages: Sigma, SQL, search boxes."""

from __future__ import annotations

import re
from typing import Final

# As in Sigma's `Image|contains: x`: the attribute, then how it is tested.
_NAME: Final = r"`(?:[^`]|``)+`|[A-Za-z_][\w.]*"
_BEFORE: Final = re.compile(rf"({_NAME})[ \t]*\Z")
_MODIFIER: Final = re.compile(r"\|[ \t]*([A-Za-z_]+)")
_ARGUMENT: Final = re.compile(rf"[ \t]*\([ \t]*({_NAME})[ \t]*\)")
_QUOTED: Final = re.compile(r'"([^"]{0,60})"')
_CONSTANT: Final = re.compile(r"[ \t]*('(?:[^'\\]|\\.|'')*'|\"[^\"]*\")")
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


def hint_at_exists(text: str, end: int, word: str) -> str:
    """How presence is tested."""
    found = _ARGUMENT.match(text, end)
    if found is None:
        return f"an attribute of that name is written `{word}`"
    return f"to test that an event has it, write {found[1]} IS NOT NULL"


def hint_at_call(name: str, arguments: str, other: str | None) -> str:
    """What takes the place of a function of an attribute; `other` is what it is compared with."""
    if name.lower() in ("lower", "upper", "lcase", "ucase"):
        return f"to compare in any case, write {arguments} ILIKE {other or '…'}"
    if name.lower() in ("length", "len", "char_length"):
        return "lengths cannot be tested, but patterns can: name LIKE '___%' has three or more"
    return "functions of attributes are not supported: compare the attribute itself"


def _written(text: str, start: int, word: str, end: int) -> str | None:
    """The test of the name before `start` by what comes after `end`."""
    form = _WRITTEN.get(word.lower())
    name = _BEFORE.search(text, 0, start)
    if form is None or name is None:
        return None
    constant = _CONSTANT.match(text, end)
    value = constant[1] if constant else "'…'"
    return form.format(name[1], f"'{value[1:-1]}'" if value.startswith('"') else value)
