"""Tamis: a standing-query engine.

    >>> import tamis
    >>> tamis.evaluate("age >= 18 AND NOT country = 'DE'", {"age": 30, "country": "FR"})
    True

`build` makes an index of many expressions, `open` opens one that was saved. `parse`, `evaluate`
and `check` work on one expression. The parts, such as `tamis.input`, `tamis.validate` and
`tamis.spark`, are imported when they are first named, and so is all that matching needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tamis.errors import (
    BuildError,
    ExpressionError,
    IndexFormatError,
    InputError,
    LimitError,
    MissingOperatorError,
    ParseError,
    QueryError,
    RejectWarning,
    SchemaError,
    TamisError,
    TamisWarning,
    TypeCheckError,
    UnknownAttributeError,
    warn,
)
from tamis.language import DEFAULT_LIMITS, Limits, Schema, search_query

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from tamis.language.ast import Condition
    from tamis.live import LiveIndex
    from tamis.match.index import Index
    from tamis.operators.registry import operator
    from tamis.validate import Problem

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_LIMITS",
    "BuildError",
    "ExpressionError",
    "Index",
    "IndexFormatError",
    "InputError",
    "LimitError",
    "Limits",
    "LiveIndex",
    "MissingOperatorError",
    "ParseError",
    "QueryError",
    "RejectWarning",
    "Schema",
    "SchemaError",
    "TamisError",
    "TamisWarning",
    "TypeCheckError",
    "UnknownAttributeError",
    "__version__",
    "build",
    "check",
    "evaluate",
    "open",
    "operator",
    "parse",
    "search_query",
]

_PARTS = frozenset(
    "events index input language live logic match operators spark text validate versions".split()
)


def build(  # noqa: PLR0913 - all that decides what the index is
    subscriptions: Any,
    schema: Any = None,
    *,
    missing: str = "undefined",
    limits: Limits = DEFAULT_LIMITS,
    tags: Mapping[str, Sequence[str]] | None = None,
    weights: Mapping[str, float] | None = None,
    sample: Any = None,
    frequencies: Mapping[str, Mapping[str, float]] | None = None,
    processes: int = 1,
    operators: Any = (),
    definitions: Mapping[str, str] | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Index:
    """An index of subscriptions: {id: expression}, or pairs (id, expression).

    They may also be dicts or a frame (pandas, Polars, Arrow) with the columns `id` (or
    `subscription_id`) and `expression`, an iterator of record batches, or the path of a file of
    them, in a format that `tamis build --help` lists.

    An expression that is wrong becomes one of `index.rejects`, an `ExpressionError`, and the others
    go on; if none is left, a `BuildError` has the rejects. `schema` is anything `Schema.of` takes;
    without one the types are inferred from all expressions together. `missing` is as in `evaluate`,
    for all events ever matched. `tags` gives subscriptions words by which `Index.tagged` finds
    them, `weights` numbers by which `Index.match_top` orders matches; a column `weight` of rows
    does the same. From a `sample` of events it is learned which tests seldom hold, and single
    events are matched faster.
    `frequencies`, from `Index.term_frequencies`, says how often words are in texts, for speed
    alone. `operators` names modules that register operators; those registered already can be called
    too. `definitions` are conditions by name: `@name` stands for one in any expression, also of
    another definition. `progress` is called with how many subscriptions are read, and how many
    there are.
    """
    importlib.import_module("tamis.index.build")  # whose kernels are announced too
    from tamis.kernels.cold import announce
    from tamis.match.build import build as build_index
    from tamis.match.reports import refuse_useless, report_unused

    _expect_missing(missing)
    announce()
    index = build_index(
        subscriptions,
        schema,
        missing=missing,
        limits=limits,
        tags=tags,
        weights=weights,
        sample=sample,
        frequencies=frequencies,
        processes=processes,
        operators=operators,
        definitions=definitions,
        progress=progress,
    )
    refuse_useless(index)
    if schema is not None:
        report_unused(index, schema)
    return index


def open(  # noqa: A001, PLR0913 - all that decides how it is opened
    path: str | os.PathLike[str],
    *,
    version: int | str | None = None,
    verify: bool = True,
    trusted: bool = True,
    mmap: bool = True,
    key: str | bytes | None = None,
    operators: Any = (),
) -> Index:
    """The index at `path`, memory-mapped: one that `Index.save` wrote, or a version of one.

    A folder or URI to which `tamis.spark` publishes holds versions: the newest is opened, or the
    one that `version` names, by its number (1 or "1") or name. `Index.version` is its name.

    A folder of a `LiveIndex` is followed, read-only: answers are as of its last change, also while
    another process changes it. `version` opens one of its saved versions, which may be older.

    With `verify` the checksums of all files are compared; a damaged, incomplete or unknown one
    raises an `IndexFormatError` that names the file. `trusted=False` is for an index that somebody
    else wrote: its whole structure is checked, so that it cannot crash the process. With a `key`,
    the index must have been signed with it (`Index.save(key=…)`). `mmap=False` reads the files into
    memory: a process that maps a file dies when somebody else cuts that file short.

    An index calls operators by name, and all must be registered, or a `MissingOperatorError` names
    them: `operators` are modules to import first, and None opens the index for inspection only.
    """
    from tamis.kernels.cold import announce
    from tamis.match.index import Index
    from tamis.places import holds_versions, is_live, refuse_server, refuse_version

    refuse_version(path)
    refuse_server(path)
    announce()
    options: dict[str, Any] = {"verify": verify, "trusted": trusted, "mmap": mmap, "key": key}
    if version is None and is_live(path):
        from tamis.live import follow_checked

        return follow_checked(path, operators=operators, trusted=trusted, key=key)
    if version is None and not holds_versions(path):
        return Index.open(path, operators=operators, **options)
    from tamis.versions import open_index

    return open_index(path, version, operators=operators, **options)


def parse(text: str, schema: Any = None, limits: Limits = DEFAULT_LIMITS) -> Condition:
    """The typed condition written in `text`; raises an `ExpressionError` that shows the place.

    `schema` is anything `Schema.of` takes: `"level BIGINT, name STRING"`,
    `{"level": "integer"}`, an Arrow or a Spark schema. Without one, each attribute has the type
    that the expression implies. Operators that are registered can be called.
    """
    from tamis.language import check as check_types
    from tamis.language import parse as parse_text
    from tamis.operators.registry import with_registered
    from tamis.validate import complete_schema

    condition = parse_text(text, limits)
    known = complete_schema(None if schema is None else Schema.of(schema), [condition], limits)
    return check_types(condition, with_registered(known), limits, text)


def evaluate(
    expression: str | Condition,
    event: Mapping[str, Any],
    schema: Any = None,
    missing: str = "undefined",
) -> bool | None:
    """Whether the expression holds for the event: True, False, or None for undefined.

    `expression` is text or what `parse` returned (then `schema` is not used). A value of the
    wrong type counts as missing, with a `RejectWarning`. `missing="satisfies_negation"` makes a
    test on a missing attribute false and its negation true. Operators that are registered are
    called, each once.
    """
    from tamis.logic.evaluate import Missing
    from tamis.logic.evaluate import evaluate as evaluate_condition
    from tamis.operators.ask import ask
    from tamis.validate import find_wrong_values

    _expect_missing(missing)
    if not hasattr(event, "get"):
        raise TamisError(f"an event is a mapping of attributes, not {type(event).__name__}")
    condition = parse(expression, schema) if isinstance(expression, str) else expression
    for name, reason in find_wrong_values(condition, event).items():
        warn(f"attribute {name}: {reason}; it is treated as missing", RejectWarning)
    return evaluate_condition(condition, event, Missing(missing), ask(condition, event).answers)


def check(
    text: str,
    schema: Any = None,
    limits: Limits = DEFAULT_LIMITS,
    missing: str = "undefined",
) -> list[Problem]:
    """All errors and warnings of one expression; nothing is raised.

    `missing` is the one of `build`: it decides which parts are always or never true.
    """
    from tamis.logic.evaluate import Missing
    from tamis.validate import check_expression

    _expect_missing(missing)
    known = None if schema is None else Schema.of(schema)
    return list(check_expression(text, known, limits, missing=Missing(missing))[1])


def _expect_missing(missing: str) -> None:
    from tamis.logic.evaluate import Missing

    if missing not in tuple(Missing):
        raise TamisError(f"missing is {missing!r}; allowed: {', '.join(Missing)}")


def __getattr__(name: str) -> Any:
    if name == "Index":
        from tamis.match.index import Index

        return Index
    if name == "LiveIndex":
        from tamis.live import LiveIndex

        return LiveIndex
    if name == "operator":
        from tamis.operators.registry import operator

        return operator
    if name in _PARTS:
        return importlib.import_module(f"tamis.{name}")
    raise AttributeError(f"module 'tamis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})
