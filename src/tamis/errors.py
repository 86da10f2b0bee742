"""The errors and warnings of the package.

Every error a caller can provoke is a `TamisError`. An error about one expression is an
`ExpressionError`: it holds the code, the place and the subscription, draws a caret picture for
people (`str(error)`) and returns a plain dictionary for programs (`error.to_dict()`).
"""

from __future__ import annotations

import sys
import warnings
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

PICTURE_WIDTH = 96
MESSAGE_LENGTH = 400
MIN_SUGGESTION_LENGTH = 2


class TamisError(Exception):
    """Base class of every error raised on purpose: a message and an optional hint."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  hint: {self.hint}"


class MissingDependencyError(TamisError):
    """A package is not installed in this process or on Spark's workers."""


class JavaNotFoundError(TamisError):
    """No Java runtime that Spark accepts could be found."""


class SchemaError(TamisError):
    """A schema is invalid: it contains an unknown type or an invalid attribute name."""


class InputError(TamisError):
    """A file or a value passed in by the caller cannot be read."""


class RowError(InputError):
    """One row of a file or of a list of events cannot be read; the code is for programs, like that
    of an `ExpressionError`."""

    def __init__(self, code: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code

    def to_dict(self) -> dict[str, Any]:
        """The error for programs, with the keys of `ExpressionError.to_dict`."""
        nowhere = {"line": None, "column": None, "span": None}
        return {"code": self.code, **nowhere, "message": self.message, "hint": self.hint}


class BuildError(InputError):
    """No index was built, since every subscription was rejected."""

    def __init__(self, message: str, rejects: list[ExpressionError]) -> None:
        """`rejects` are all of them, as `Index.rejects` would list them."""
        only = rejects[0].hint if len(rejects) == 1 else None
        super().__init__(message, hint=only or "the attribute rejects of this error lists them")
        self.rejects = rejects

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.rejects)


class IndexFormatError(TamisError):
    """A saved index is missing, damaged, or has another format."""


class StoreError(TamisError):
    """A store of subscriptions cannot be opened, read or written."""


class StoreInUseError(StoreError):
    """Another process, or another object of this one, writes to the store."""


class StoreFormatError(StoreError):
    """A store is damaged, of another format, or none at all."""


class TooOftenError(TamisError):
    """Something was asked for too often; it can be asked for again after some `seconds`."""

    def __init__(self, message: str, *, seconds: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.seconds = seconds


class RefusedError(TamisError):
    """A change of a subscription was refused: it exists already, does not exist, or has changed."""

    def __init__(self, message: str, reason: str, revision: int | None = None) -> None:
        """`reason` is a `tamis.subscriptions.Reason`; `revision` that of the subscription."""
        super().__init__(message)
        self.reason = reason
        self.revision = revision


class HistoryError(StoreError):
    """The log no longer has what was asked for: start from a version or from the whole state."""


class BrokerError(TamisError):
    """A request about keys, mailboxes or deliveries was refused."""


class NotAllowedError(BrokerError):
    """The caller has no right to do this."""


class UnknownItemError(BrokerError):
    """What a request names does not exist."""


class NameTakenError(BrokerError):
    """Another item has this name already."""


class EpochError(BrokerError):
    """A position belongs to another history of the archive: its numbers mean other events."""


class TamisWarning(UserWarning):
    """The request was carried out, but something needs attention."""


class RejectWarning(TamisWarning):
    """Subscriptions, events or values were rejected; the message says where they are listed."""


class MissingOperatorError(TamisError):
    """An index calls an operator that is not registered in this process."""


class ExpressionError(TamisError):
    """An error at one place of one expression."""

    def __init__(  # noqa: PLR0913 - an error carries everything that a program may show
        self,
        code: str,
        message: str,
        *,
        span: tuple[int, int],
        text: str | None = None,
        hint: str | None = None,
        subscription_id: str | None = None,
    ) -> None:
        # A message may quote the expression, which may be as long as the limits allow.
        super().__init__(_shorten(message), hint=None if hint is None else _shorten(hint))
        self.code = code
        self.span = span
        self.text = text
        self.subscription_id = subscription_id
        self.decider: str | None = None  # another subscription, which the hint names as the reason
        self.users = ""  # the end of the hint, if it names those who use the same attribute

    def __reduce__(self) -> tuple[Any, ...]:
        # Bulk parsing sends errors between processes; Exception's default pickling drops keywords.
        keywords = {
            "span": self.span,
            "text": self.text,
            "hint": self.hint,
            "subscription_id": self.subscription_id,
        }
        return _rebuild_expression_error, (type(self), self.code, self.message, keywords)

    @property
    def line(self) -> int:
        """The line of the first wrong character, counted from 1."""
        return 1 if self.text is None else self.text.count("\n", 0, self.span[0]) + 1

    @property
    def column(self) -> int:
        """The column of the first wrong character, counted from 1."""
        if self.text is None:
            return self.span[0] + 1
        return self.span[0] - (self.text.rfind("\n", 0, self.span[0]) + 1) + 1

    def located(self, text: str, subscription_id: str | None = None) -> ExpressionError:
        """This error, with its text and, if given, its subscription set."""
        self.text = text
        if subscription_id is not None:
            self.subscription_id = subscription_id
        return self

    def picture(self) -> str:
        """The wrong line with carets under the wrong part, cut to a readable width."""
        if self.text is None:
            return ""
        line = self.text.split("\n")[self.line - 1] if self.text else ""
        start = self.column - 1
        width = max(1, min(self.span[1] - self.span[0], len(line) - start))
        left_cut = max(0, start - PICTURE_WIDTH // 2)
        shown = line[left_cut : left_cut + PICTURE_WIDTH]
        # One column per character, however the terminal shows tabs and control characters.
        shown = "".join(c if c.isprintable() else " " if c == "\t" else "�" for c in shown)
        width = min(width, max(1, PICTURE_WIDTH - (start - left_cut)))
        lead = "…" if left_cut else ""
        tail = "…" if left_cut + PICTURE_WIDTH < len(line) else ""
        carets = " " * (start - left_cut + len(lead)) + "^" * width
        return f"  {lead}{shown}{tail}\n  {carets}"

    def __str__(self) -> str:
        place = f"{self.line}:{self.column}"
        if self.subscription_id is not None:
            place = f'subscription "{self.subscription_id}", {place}'
        parts = [f"{place}: {self.message}"]
        if self.text is not None:
            parts.append(self.picture())
        if self.hint is not None:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """The error as a dictionary of JSON values."""
        return {
            "code": self.code,
            "line": self.line,
            "column": self.column,
            "span": list(self.span),
            "message": self.message,
            "hint": self.hint,
            "subscription_id": self.subscription_id,
        }


class ParseError(ExpressionError):
    """The text is not an expression of the language."""


class QueryError(ParseError, InputError):
    """The text typed into a search box is not a valid query."""


class LimitError(ExpressionError):
    """The expression is larger than the configured limits allow."""


class TypeCheckError(ExpressionError):
    """The text is an expression, but its types are wrong."""


class UnknownAttributeError(TypeCheckError):
    """The expression names an attribute that the schema does not declare."""


def _rebuild_expression_error(
    cls: type[ExpressionError], code: str, message: str, keywords: dict[str, Any]
) -> ExpressionError:
    return cls(code, message, **keywords)


def _shorten(message: str) -> str:
    if len(message) <= MESSAGE_LENGTH:
        return message
    half = MESSAGE_LENGTH // 2
    return f"{message[:half]} … {message[-half:]}"


def suggest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate most similar to `word`, or None if none is similar enough."""
    if len(word) < MIN_SUGGESTION_LENGTH:
        return None
    by_folded = {candidate.lower(): candidate for candidate in candidates}
    close = get_close_matches(word.lower(), by_folded, n=1, cutoff=0.7)
    return by_folded[close[0]] if close else None


def warn(message: str, category: type[TamisWarning] = TamisWarning) -> None:
    """Issue a warning that points at the caller's line outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module == "tamis" or module.startswith("tamis.")
