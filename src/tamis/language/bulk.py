"""Many expressions at once: a value or an error for each, never an exception for one."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

from tamis.errors import ExpressionError
from tamis.language.check import check
from tamis.language.infer import infer_schema
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.language.ast import Condition
    from tamis.language.schema import Schema

CHUNK = 2_000  # expressions handed to a process at a time


@dataclass(frozen=True, slots=True)
class Parsed:
    """One row of a bulk parse: either `condition` or `error` is None."""

    subscription_id: str
    text: Any  # what was given; a row that is no text has an error
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

    Without a schema it is inferred from all expressions that parse. With `processes` above one
    the work is spread over that many processes.
    """
    rows = list(subscriptions)
    if processes <= 1:
        parsed = _parse_rows(rows, schema, limits)
        return parsed if schema is not None else _check_rows(parsed, _infer(parsed), limits)
    chunks = [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]
    # Imported here: it takes longer than all the rest of the package.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Spawned, not forked: the caller may hold threads (Arrow, Spark) that a fork would break.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        parsed_chunks = list(pool.map(_parse_rows, chunks, repeat(schema), repeat(limits)))
        if schema is None:
            inferred = _infer([row for chunk in parsed_chunks for row in chunk])
            parsed_chunks = list(
                pool.map(_check_rows, parsed_chunks, repeat(inferred), repeat(limits))
            )
    return [row for chunk in parsed_chunks for row in chunk]


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
    """Trees hold no cycles, and collecting among millions of live nodes costs half the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
