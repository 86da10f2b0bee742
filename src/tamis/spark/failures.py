"""Errors of a worker or of Spark, without the surrounding lines of Java."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from tamis import errors
from tamis.spark.workers import LACKING, WHAT_TO_DO

if TYPE_CHECKING:
    from collections.abc import Iterator

# The last line of a worker's traceback, and the hint below it.
_OURS: Final = re.compile(r"^tamis\.errors\.(\w+): (.*?)(?:\n  hint: ([^\n]*))?$", re.MULTILINE)

# The message, ours or Spark's, about a module that a worker cannot import, if we need it.
_OWN_MODULES: Final = ("tamis", "click", "numba", "numpy", "orjson", "pyarrow", "re2", "rich")
_LACKING: Final = re.compile(
    rf"^ModuleNotFoundError: (?:{LACKING} '([\w.]+)'|"
    rf"No module named '((?:{'|'.join(_OWN_MODULES)})(?:\.[\w.]+)?)')",
    re.MULTILINE,
)


@contextmanager
def raising_worker_errors() -> Iterator[None]:
    """Raise the error that a worker raised; Spark's own errors are raised unchanged."""
    try:
        yield
    except PySparkException as error:
        own = read_failure(str(error))
        if own is None:
            raise
        raise own from error


def read_failure(message: str) -> errors.TamisError | None:
    """The Tamis error at the end of a worker's traceback, or the error for a missing module."""
    found = _OURS.search(message)
    if found is None:
        lacking = _LACKING.search(message)
        return lacking and errors.MissingDependencyError(
            f"{LACKING} '{lacking[1] or lacking[2]}'", hint=WHAT_TO_DO
        )
    kind = getattr(errors, found[1], errors.TamisError)
    is_plain = isinstance(kind, type) and not issubclass(kind, errors.ExpressionError)
    return (kind if is_plain else errors.TamisError)(found[2], hint=found[3])


# The start of a cause in a Java trace, and the last line of a Python trace.
_CAUSE: Final = re.compile(r"^Caused by: (?:[\w.$]+\.)?([\w$]+: .+)$", re.MULTILINE)
_PYTHON: Final = re.compile(r"^(\w[\w.]*(?:Error|Exception|Interrupt): .+)$", re.MULTILINE)
_CLASS: Final = re.compile(r"\b(?:[a-z]\w*\.){2,}(?=[A-Z])")
MOST_CHARACTERS: Final = 500


def shorten_failure(message: str) -> str:
    """The reason that Spark gives, on one line: the innermost cause, if there is one."""
    causes = _PYTHON.findall(message) if "Traceback (most recent" in message else []
    causes = causes or _CAUSE.findall(message)
    reason = causes[-1] if causes else message.strip().partition("\n")[0]
    return _CLASS.sub("", reason.strip())[:MOST_CHARACTERS]
