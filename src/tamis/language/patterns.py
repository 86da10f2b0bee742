"""LIKE patterns and regular expressions: read, refused early, and matched plainly."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Any


class Wild(Enum):
    """The two wildcards of LIKE."""

    ANY_TEXT = "%"
    ONE_CHARACTER = "_"


class BadPatternError(ValueError):
    """A pattern is malformed; the message says how."""


def parse_like(pattern: str, escape: str) -> tuple[str | Wild, ...]:
    """The pattern's characters and wildcards; runs of % are one."""
    tokens: list[str | Wild] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            position += 1
            if position == len(pattern):
                raise BadPatternError(f"the pattern ends in the escape character {escape}")
            if pattern[position] not in ("%", "_", escape):
                raise BadPatternError(
                    f"the escape character {escape} stands before '{pattern[position]}'; "
                    f"allowed after it: % _ {escape}"
                )
            tokens.append(pattern[position])
        elif character == "%":
            if not tokens or tokens[-1] is not Wild.ANY_TEXT:
                tokens.append(Wild.ANY_TEXT)
        else:
            tokens.append(Wild.ONE_CHARACTER if character == "_" else character)
        position += 1
    return tuple(tokens)


def is_like(text: str, tokens: tuple[str | Wild, ...]) -> bool:
    """Whether all of `text` fits the pattern; at most len(text) * len(tokens) steps."""
    at_text, at_token = 0, 0
    retry_text, retry_token = 0, -1  # where to go on when the latest % must take one more
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
    """The compiled RE2 expression; raises `BadPatternError` where RE2 refuses it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not a regular expression"
        reason = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise BadPatternError(f"not an RE2 regular expression: {reason}") from None
