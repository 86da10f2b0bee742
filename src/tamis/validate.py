"""Checks subscriptions and events; problems are collected, and one never stops the rest.

An error rejects its row. A warning (lint) is about an expression that is valid but perhaps not what
its author meant.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, islice, tee
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import ExpressionError, RowError
from tamis.input.details import find_bad_weight
from tamis.input.subscription_rows import SubscriptionRow
from tamis.language.ast import EVENT, SUBSCRIPTION, attributes
from tamis.language.bare_words import BareWords, find_mentions
from tamis.language.check import check
from tamis.language.definitions import find_subscriptions, parse_good
from tamis.language.infer import infer_schema
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.lookalikes import Use, find_alike, find_lookalikes
from tamis.language.names import parse_path, print_path
from tamis.language.parser import parse
from tamis.language.printer import print_reference
from tamis.language.processes import map_chunks
from tamis.language.types import WrongTypeError, read_value
from tamis.logic.evaluate import Missing, value_at
from tamis.logic.lint import lint
from tamis.operators.registry import with_registered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tamis.language.ast import Attribute, Condition
    from tamis.language.lookalikes import Lookalike
    from tamis.language.schema import Path, Schema

CHUNK: Final = 1_000  # expressions passed to a process at a time


class Severity(StrEnum):
    """Whether a problem rejects its expression."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of an expression or its row."""

    severity: Severity
    reason: ExpressionError | RowError  # never raised; it has code, place, message and hint

    def to_dict(self) -> dict[str, Any]:
        """The problem as a dictionary of JSON values."""
        return {"severity": str(self.severity), **self.reason.to_dict()}


@dataclass(frozen=True, slots=True)
class Checked:
    """A row and its problems."""

    row: SubscriptionRow
    problems: tuple[Problem, ...]

    @property
    def is_ok(self) -> bool:
        """Whether the row is valid; warnings do not reject it."""
        return all(problem.severity is not Severity.ERROR for problem in self.problems)


def check_expression(  # noqa: PLR0913 - one parameter per choice of the caller
    text: str,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    subscription_id: str | None = None,
    *,
    missing: Missing = Missing.UNDEFINED,
    with_lint: bool = True,
) -> tuple[Condition | None, tuple[Problem, ...]]:
    """The typed condition, None if there is an error, and all problems of one expression.

    `missing` changes only warnings: it decides which parts are always or never true.
    """
    try:
        condition = parse(text, limits)
        if schema is None or not (len(schema) or schema.operators):
            schema = complete_schema(schema, [condition], limits)
        condition = check(condition, with_registered(schema), limits, text)
    except ExpressionError as error:
        error.subscription_id = subscription_id
        return None, (Problem(Severity.ERROR, error),)
    if not with_lint:
        return condition, ()
    warnings = (
        ExpressionError(found.code, found.message, span=found.span, hint=found.hint)
        for found in lint(condition, missing)
    )
    located = (warning.located(text, subscription_id) for warning in warnings)
    return condition, tuple(Problem(Severity.WARNING, warning) for warning in located)


def complete_schema(
    schema: Schema | None, conditions: Iterable[Condition], limits: Limits
) -> Schema:
    """The schema; without declared types, those that the conditions and definitions indicate."""
    if schema is not None and not schema.is_open:
        return schema
    definitions = {} if schema is None else schema.definitions
    every = chain(conditions, parse_good(definitions.values(), limits))
    return infer_schema(every).with_definitions(definitions)


def check_subscriptions(  # noqa: PLR0913 - one parameter per choice of the caller
    rows: Iterable[SubscriptionRow],
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    *,
    missing: Missing = Missing.UNDEFINED,
    with_lint: bool = True,
    processes: int = 1,
) -> Iterator[Checked]:
    """Each row with its problems, in order; one invalid row never hides another.

    Without a schema, all rows are read first and the schema is inferred from those that parse; an
    attribute that is probably misspelt is then a warning. With a schema, rows are checked as they
    are read. Lint takes several times as long as the rest. Definitions of the schema that have
    problems come first, as rows of number 0 and with ids such as `@office_hours`: a definition is
    checked once, and not in each expression that refers to it.
    """
    judged = _refuse_duplicates(rows)
    misspelt: dict[Path, Lookalike] = {}
    bare_words: frozenset[Path] = frozenset()
    if schema is None or schema.is_open:
        kept: list[Checked] = []
        n_uses: Counter[Path] = Counter()
        words = BareWords()
        conditions = _count_uses(_parse_good(judged, limits, kept), n_uses, words)
        schema = complete_schema(schema, conditions, limits)
        schema = _with_subscriptions(schema, kept, limits)
        judged = iter(kept)
        if with_lint:
            bare_words = words.find(schema)
            alike = find_lookalikes({path: Use(n, None) for path, n in n_uses.items()})
            misspelt = {parse_path(one.attribute): one for one in alike}
    else:
        kept = list(judged)
        schema = _with_subscriptions(schema, kept, limits)
        judged = iter(kept)
    judge = _Judge(with_registered(schema), limits, missing, with_lint, misspelt, bare_words)
    defined = list(_check_definitions(schema.definitions, judge))
    yield from defined
    found_there = (problem.reason for own in defined for problem in own.problems)
    judge = replace(judge, known=frozenset((own.code, own.message) for own in found_there))
    judged, ahead = tee(judged)
    good = (checked.row for checked in ahead if checked.is_ok)
    size = CHUNK if processes > 1 else 1
    chunks = iter(lambda: list(islice(good, size)), [])
    found = chain.from_iterable(map_chunks(judge, chunks, processes))
    for checked in judged:
        yield Checked(checked.row, next(found)) if checked.is_ok else checked


def _check_definitions(definitions: Mapping[str, str], judge: _Judge) -> Iterator[Checked]:
    """The definitions that have problems; those of subscriptions are rows anyway."""
    for name, text in definitions.items():
        if not name.startswith(SUBSCRIPTION):
            row = SubscriptionRow(0, None, print_reference(name), text)
            (problems,) = judge([row])
            if problems:
                yield Checked(row, problems)


def find_wrong_values(condition: Condition, event: Mapping[str, Any]) -> dict[str, str]:
    """For each attribute of the condition whose value in the event has another type, the reason."""
    wrong: dict[str, str] = {}
    for attribute in attributes(condition):
        name = print_path(attribute.path)
        if name not in wrong and (reason := _why_wrong(attribute, event)):
            wrong[name] = reason
    return wrong


def _why_wrong(attribute: Attribute, event: Mapping[str, Any]) -> str | None:
    value: Any = event
    for name in attribute.path:
        value = value.get(name) if hasattr(value, "get") else None
    if value is None or attribute.type is None or attribute.path == EVENT:
        return None  # the strings of a whole event have no other type
    try:
        read_value(value, attribute.type)
    except WrongTypeError as error:
        return str(error)
    return None


def find_near_misses(condition: Condition, event: Mapping[str, Any]) -> dict[str, str]:
    """For each attribute of the condition that the event does not have, one that it has and whose
    name resembles it.
    """
    wanted = {own.path for own in attributes(condition) if value_at(event, own.path) is None}
    if not wanted:
        return {}
    had = set(_paths_of(event)) - wanted
    pairs = (
        pair for pair in find_alike(sorted(wanted | had)) if len(wanted.intersection(pair)) == 1
    )
    found = (sorted(pair, key=had.__contains__) for pair in pairs)
    return {print_path(missing): print_path(like) for missing, like in found}


def _paths_of(event: Mapping[str, Any], above: Path = ()) -> Iterator[Path]:
    for name, value in event.items():
        path = (*above, name)
        if isinstance(value, dict):
            yield from _paths_of(value, path)
        elif value is not None and isinstance(name, str):
            yield path


# ── rows ────────────────────────────────────────────────────────────────────────────────────


def _refuse_duplicates(rows: Iterable[SubscriptionRow]) -> Iterator[Checked]:
    """Every row, with the errors that do not depend on its expression."""
    first_rows: dict[str, SubscriptionRow] = {}
    for row in rows:
        error = row.error
        if error is None and row.subscription_id is not None:
            first = first_rows.setdefault(row.subscription_id, row)
            if first is not row:
                place = f"row {first.number}" if not first.file_line else f"line {first.file_line}"
                error = RowError("duplicate-id", f"the id was already given in {place}")
        error = error or find_bad_weight(row.details.attributes)
        yield Checked(row, () if error is None else (Problem(Severity.ERROR, error),))


def _parse_good(
    rows: Iterable[Checked], limits: Limits, kept: list[Checked]
) -> Iterator[Condition]:
    """The conditions of the rows that parse, one in memory at a time; all rows are added to
    `kept`.
    """
    for checked in rows:
        kept.append(checked)
        if checked.is_ok:
            try:
                yield parse(checked.row.text, limits)
            except ExpressionError:
                continue


def _with_subscriptions(schema: Schema, rows: Iterable[Checked], limits: Limits) -> Schema:
    """The schema with the expressions of the subscriptions that others refer to."""
    good = [own.row for own in rows if own.is_ok and own.row.subscription_id is not None]
    ids = [row.subscription_id or "" for row in good]
    found = find_subscriptions(ids, [row.text for row in good], limits)
    return schema.with_definitions(schema.definitions | found) if found else schema


def _count_uses(
    conditions: Iterable[Condition], n_uses: Counter[Path], words: BareWords
) -> Iterator[Condition]:
    """The conditions; their uses of attributes are added to `n_uses` and `words`."""
    for condition in conditions:
        words.add(condition)
        n_uses.update({attribute.path for attribute in attributes(condition)})
        yield condition


@dataclass(frozen=True, slots=True)
class _Judge:
    """The settings for checking a row; sent to the processes."""

    schema: Schema
    limits: Limits
    missing: Missing
    with_lint: bool
    misspelt: dict[Path, Lookalike]  # attributes that are probably misspelt
    bare_words: frozenset[Path]  # attributes that are probably strings without quotes
    known: frozenset[tuple[str, str]] = frozenset()  # codes and messages about definitions

    def __call__(self, rows: list[SubscriptionRow]) -> list[tuple[Problem, ...]]:
        return [self._find_problems(row) for row in rows]

    def _find_problems(self, row: SubscriptionRow) -> tuple[Problem, ...]:
        condition, problems = check_expression(
            row.text,
            self.schema,
            self.limits,
            row.subscription_id,
            missing=self.missing,
            with_lint=self.with_lint,
        )
        if self.known:
            problems = tuple(own for own in problems if not self._is_known(own.reason, row.text))
        if condition is None or not (self.misspelt or self.bare_words):
            return problems
        bare = (_warn_bare(own, row) for own in find_mentions(condition, self.bare_words))
        # The first use of each.
        mentions = {own.path: own for own in reversed(list(attributes(condition)))}
        found = (
            _warn_misspelt(self.misspelt[path], own, row)
            for path, own in reversed(mentions.items())
            if path in self.misspelt
        )
        return (*problems, *bare, *found)

    def _is_known(self, reason: ExpressionError | RowError, text: str) -> bool:
        """Whether a problem of a reference was found in its definition."""
        if not isinstance(reason, ExpressionError) or reason.span is None:
            return False
        is_reference = text[reason.span[0] : reason.span[0] + 1] == "@"
        return is_reference and (reason.code, reason.message) in self.known


def _warn_bare(attribute: Attribute, row: SubscriptionRow) -> Problem:
    name = print_path(attribute.path)
    warning = ExpressionError(
        "bare-word",
        f"{name} is read as an attribute, but expressions only compare others with it",
        span=attribute.span,
        hint=f"write a string in quotes: '{attribute.path[0]}'; declare a schema that has {name} "
        "if it is an attribute",
    )
    return Problem(Severity.WARNING, warning.located(row.text, row.subscription_id))


def _warn_misspelt(found: Lookalike, attribute: Attribute, row: SubscriptionRow) -> Problem:
    n, n_like = found.n_subscriptions, found.n_like
    warning = ExpressionError(
        "misspelt-attribute",
        f"{found.attribute} looks like {found.looks_like}: {n_like:,} subscriptions use that one, "
        f"and {n:,} this one",
        span=attribute.span,
        hint=f"write {found.looks_like}, or declare a schema that has both if this is right",
    )
    return Problem(Severity.WARNING, warning.located(row.text, row.subscription_id))
