"""Converts attribute names between text and paths: `a.b` is a path of two names, "`a.b`" is one
name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tamis.errors import SchemaError
from tamis.language.tokens import KEYWORDS, REFUSED_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEP = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)|`((?:[^`]|``)+)`")
# Words that would have another meaning without quotes, in Spark or here.
_QUOTED_WORDS = (
    KEYWORDS
    | REFUSED_WORDS.keys()
    | {"DATE", "TIMESTAMP", "ARRAY"}
    # In Spark a function, the start of a subquery, or a word before an argument.
    | {"CURRENT_PATH", "FROM", "VALUES", "ALL", "DISTINCT"}
)


# The path of a derived value is its text after this character, which no name can contain.
DERIVED_MARK = "\0"


def print_path(path: tuple[str, ...]) -> str:
    """The path as an expression spells it; of a derived value, its text. The empty path, the whole
    event, is that of any_attribute().
    """
    if not path:
        return "any_attribute"
    if path[0].startswith(DERIVED_MARK):
        return path[0][len(DERIVED_MARK) :]
    return ".".join(map(_print_name, path))


def _print_name(name: str) -> str:
    if _PLAIN.fullmatch(name) and name.upper() not in _QUOTED_WORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def parse_path(name: str) -> tuple[str, ...]:
    """The path of a name; a name that is not a plain path (`user-id`) is a single step."""
    if not name:
        raise SchemaError("an attribute needs a name; found an empty one")
    steps: list[str] = []
    position = 0
    while match := _STEP.match(name, position):
        steps.append(match[1] or match[2].replace("``", "`"))
        position = match.end()
        if position == len(name):
            return tuple(steps)
        if name[position] != ".":
            break
        position += 1
    return (name,)


def split_listed(text: str) -> Iterator[str]:
    """Split at commas outside parentheses, angle brackets and backticks."""
    depth, start, is_quoted = 0, 0, False
    for position, character in enumerate(text):
        if character == "`":
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif character in "(<":
            depth += 1
        elif character in ")>":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:position]
            start = position + 1
    if text[start:].strip():
        yield text[start:]
