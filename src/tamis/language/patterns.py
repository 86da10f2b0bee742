"""LIKE patterns and regular expressions: parsing, early errors, and simple matching."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Any

from tamis.language.regex_errors import explain_regex_error


class Wild(Enum):
    """The two wildcards of LIKE."""

    ANY_TEXT = "%"
    ONE_CHARACTER = "_"


class BadPatternError(ValueError):
    """A pattern is malformed; the message gives the reason."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@lru_cache(maxsize=4096)
def parse_like(pattern: str, escape: str) -> tuple[str | Wild, ...]:
    """The pattern's characters and wildcards; consecutive % are one."""
    tokens: list[str | Wild] = []
    for part in _like_parts(escape).findall(pattern):
        if part[0] == escape:
            tokens.append(_escaped(part, escape))
        elif part[0] == "%":
            tokens.append(Wild.ANY_TEXT)
        elif part == "_":
            tokens.append(Wild.ONE_CHARACTER)
        else:
            tokens.extend(part)
    return tuple(tokens)


@lru_cache(maxsize=64)
def _like_parts(escape: str) -> re.Pattern[str]:
    """Plain text, a run of %, one _, or the escape character and the character after it."""
    own = re.escape(escape)
    return re.compile(rf"[^%_{own}]++|%++|_|{own}.?", re.DOTALL)


def _escaped(part: str, escape: str) -> str:
    if part == escape:
        raise BadPatternError(f"the pattern ends in the escape character {escape}")
    if part[1] not in ("%", "_", escape):
        raise BadPatternError(
            f"the escape character {escape} comes before '{part[1]}'; allowed after it: % _ "
            f"{escape}"
        )
    return part[1]


def is_like(text: str, tokens: tuple[str | Wild, ...]) -> bool:
    """Whether all of `text` matches the pattern; takes at most len(text) * len(tokens) steps."""
    at_text, at_token = 0, 0
    retry_text, retry_token = 0, -1  # where to continue if the latest % takes one more
    while at_text < len(text):
        token = tokens[at_token] if at_token < len(tokens) else None
        if token is Wild.ANY_TEXT:
            retry_text, retry_token = at_text, at_token + 1
            at_token += 1
        elif token is Wild.ONE_CHARACTER or token == text[at_text]:
            at_text += 1
            at_token += 1
        elif retry_token >= 0:
            retry_text += 1
            at_text, at_token = retry_text, retry_token
        else:
            return False
    return all(token is Wild.ANY_TEXT for token in tokens[at_token:])


@lru_cache(maxsize=4096)
def compile_regex(pattern: str) -> Any:
    """The compiled RE2 expression; raises `BadPatternError` if it is invalid."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not a regular expression"
        reason = reason.decode() if isinstance(reason, bytes) else str(reason)
        message, hint = explain_regex_error(pattern, reason)
        raise BadPatternError(f"not an RE2 regular expression: {message}", hint) from None
