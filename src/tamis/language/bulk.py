"""Parses many expressions at once: a result or an error for each, never an exception for one."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tamis.errors import ExpressionError
from tamis.language.check import check
from tamis.language.infer import infer_schema
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse
from tamis.language.processes import map_chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.language.ast import Condition
    from tamis.language.schema import Schema

CHUNK = 2_000  # expressions passed to a process at a time
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Parsed:
    """One row of a bulk parse: either `condition` or `error` is None."""

    subscription_id: str
    text: Any  # the input; a row that is not a string has an error
    condition: Condition | None
    error: ExpressionError | None


def parse_many(
    subscriptions: Iterable[tuple[str, str]],
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    *,
    processes: int = 1,
) -> list[Parsed]:
    """Each (subscription id, text) parsed and typed, in order.

    Without a schema, the schema is inferred from all expressions that parse. With `processes` above
    one, the work is distributed over that many processes.
    """
    rows = list(subscriptions)
    if schema is not None:
        return [row for chunk in parse_chunks(rows, schema, limits, processes) for row in chunk]
    parsed = [row for chunk in parse_chunks(rows, None, limits, processes) for row in chunk]
    check_rows = partial(_check_rows, schema=_infer(parsed), limits=limits)
    checked = map_chunks(check_rows, _chunks(parsed), processes)
    return [row for chunk in checked for row in chunk]


def parse_chunks(
    rows: list[tuple[str, str]], schema: Schema | None, limits: Limits, processes: int
) -> Iterator[list[Parsed]]:
    """The rows parsed, and typed if there is a schema, in chunks and in order.

    The chunks are the same for any number of processes.
    """
    parse_rows = partial(_parse_rows, schema=schema, limits=limits)
    return map_chunks(parse_rows, _chunks(rows), processes)


def _chunks(rows: list[Row]) -> Iterator[list[Row]]:
    return (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK))


def _infer(parsed: list[Parsed]) -> Schema:
    return infer_schema(row.condition for row in parsed if row.condition is not None)


def _parse_rows(rows: list[tuple[str, str]], schema: Schema | None, limits: Limits) -> list[Parsed]:
    with _without_garbage_collection():
        return [_parse_row(row, schema, limits) for row in rows]


def _parse_row(row: tuple[str, str], schema: Schema | None, limits: Limits) -> Parsed:
    subscription_id, text = row
    try:
        condition = parse(text, limits)
        if schema is not None:
            condition = check(condition, schema, limits, text)
        return Parsed(subscription_id, text, condition, None)
    except ExpressionError as error:
        error.subscription_id = subscription_id
        return Parsed(subscription_id, text, None, error)


def _check_rows(parsed: list[Parsed], schema: Schema, limits: Limits) -> list[Parsed]:
    with _without_garbage_collection():
        return [_check_row(row, schema, limits) for row in parsed]


def _check_row(row: Parsed, schema: Schema, limits: Limits) -> Parsed:
    if row.condition is None:
        return row
    try:
        condition = check(row.condition, schema, limits, row.text)
        return Parsed(row.subscription_id, row.text, condition, None)
    except ExpressionError as error:
        error.subscription_id = row.subscription_id
        return Parsed(row.subscription_id, row.text, None, error)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection: trees have no cycles, and a collection among millions of live
    nodes costs half the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
