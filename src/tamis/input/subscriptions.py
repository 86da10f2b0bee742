"""Subscriptions as callers pass them: rows of an id and an expression."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import pyarrow as pa

from tamis.errors import ExpressionError, InputError
from tamis.input.batches import peek
from tamis.input.details import Gathered
from tamis.input.formats import KNOWN_ENDINGS
from tamis.input.frames import to_arrow
from tamis.input.paths import find_path
from tamis.input.rows import Columns
from tamis.input.subscription_rows import SubscriptionRow, read_subscriptions, to_subscription
from tamis.input.tables import batch_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

TAKEN: Final = (
    "subscriptions are {id: expression}, pairs (id, expression), dicts or a frame (pandas, Polars, "
    'Arrow) with the columns "id" (or "subscription_id") and "expression", or the path of a file '
    f"({KNOWN_ENDINGS})"
)
Named = TypeVar("Named")
SHOWN: Final = 60  # characters shown of a text that is not a path


class Given(NamedTuple):
    """Subscriptions in the form that `index.build` takes."""

    # A mapping, or pairs of id and expression. A row without a valid subscription is an
    # `ExpressionError` in the place of its pair.
    pairs: Any
    details: Gathered  # complete when all pairs are read


def open_subscriptions(given: Any, tags: Mapping[str, Sequence[str]] | None = None) -> Given:
    """The subscriptions that a caller passes; `tags` are added to those of rows."""
    details = Gathered(_expect_tags(tags or {}))
    opened = _open(given)
    if not isinstance(opened, _Rows):
        return Given(opened, details)
    return Given(_pairs(opened, details), details)


def list_rows(given: Any) -> Iterator[SubscriptionRow]:
    """The subscriptions that a caller passes, one row for each."""
    opened = _open(given)
    if isinstance(opened, _Rows):
        yield from opened.rows
        return
    pairs = opened.items() if isinstance(opened, Mapping) else opened
    for number, pair in enumerate(pairs, start=1):
        if isinstance(pair, str | bytes) or not isinstance(pair, Iterable) or len(list(pair)) != 2:
            raise InputError(f"subscription {number} is not a pair: {pair!r:.60}", hint=TAKEN)
        name, text = pair
        yield SubscriptionRow(number, None, name, text)


def name_ids(given: Mapping[Any, Named] | None, argument: str) -> dict[Any, Named] | None:
    """A mapping by id with whole numbers as text, as ids of rows are read."""
    if given is None:
        return None
    named = {
        str(one) if isinstance(one, int) and not isinstance(one, bool) else one: value
        for one, value in given.items()
    }
    if len(named) < len(given):
        twice = next(one for one in given if isinstance(one, int) and str(one) in given)
        raise InputError(f'{argument} has {twice} and "{twice}", which are the same id')
    return named


def _expect_tags(tags: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    if not isinstance(tags, Mapping):
        raise InputError(
            f"tags are {type(tags).__name__}; allowed: a dict of subscription ids and their tags",
            hint='write {"some id": ["urgent", "news"]}',
        )
    for subscription_id, words in tags.items():
        is_list = isinstance(words, Iterable) and not isinstance(words, str)
        if not is_list or not all(isinstance(own, str) for own in words):
            raise InputError(
                f'the tags of subscription "{subscription_id}" are {words!r}; '
                "allowed: a list of strings"
            )
    return tags


class _Rows(NamedTuple):
    rows: Iterable[SubscriptionRow]
    path: Path | None = None


def _open(given: Any) -> Any:
    """Rows; mappings and pairs are returned unchanged."""
    if isinstance(given, Mapping):
        return given
    if isinstance(given, str | bytes | os.PathLike):
        path = find_path(given)
        if path is None:
            shown = "bytes" if isinstance(given, bytes) else f"the string {str(given)[:SHOWN]!r}"
            raise InputError(f"{TAKEN}, not {shown}", hint='write {"some id": "an expression"}')
        return _Rows(read_subscriptions(path), path)
    frame = to_arrow(given)
    if frame is not None:
        return _Rows(_frame_rows([frame]))
    if hasattr(given, "iter_batches"):  # an open Parquet file
        return _Rows(_frame_rows(given.iter_batches()))
    if not isinstance(given, Iterable):
        raise InputError(f"{TAKEN}, not {type(given).__name__}")
    if type(given) is list and given and type(given[0]) is tuple:
        return given
    first, rows = peek(given)
    if isinstance(first, Mapping):
        return _Rows(_dict_rows(rows))
    if isinstance(first, SubscriptionRow):  # from `read_subscriptions`
        return _Rows(rows)
    if isinstance(first, pa.RecordBatch | pa.Table):
        return _Rows(_frame_rows(rows))
    return rows


def _pairs(given: _Rows, details: Gathered) -> Iterator[tuple[str, str] | ExpressionError]:
    for row in given.rows:
        if row.error is not None or row.subscription_id is None:
            yield to_reject(row, given.path)
        elif details.add(row):
            yield row.subscription_id, row.text


def to_reject(row: SubscriptionRow, path: Path | None = None) -> ExpressionError:
    """The error of a row that has no valid subscription."""
    assert row.error is not None
    place = f"row {row.number}" if row.file_line is None else f"line {row.file_line}"
    if path is not None:
        place = f"{path}, {place}"
    return ExpressionError(
        row.error.code,
        f"{place}: {row.error.message}",
        span=(0, 0),
        hint=row.error.hint,
        subscription_id=row.subscription_id,
    )


def _dict_rows(rows: Iterable[Any]) -> Iterator[SubscriptionRow]:
    columns = Columns()
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise InputError(
                f"subscription {number} is {type(row).__name__}; the first is a dict", hint=TAKEN
            )
        if number == 1:
            columns.expect(list(map(str, row)), "the first dict", "key")
        yield to_subscription(number, None, dict(row), columns)


def _frame_rows(frames: Iterable[Any]) -> Iterator[SubscriptionRow]:
    columns = Columns()
    number = 0
    for frame in frames:
        columns.expect(frame.schema.names, "the frame")
        batches = [frame] if isinstance(frame, pa.RecordBatch) else frame
        batches = batches.to_batches() if isinstance(batches, pa.Table) else batches
        for batch in batches:
            for values in batch_records(batch, columns):
                number += 1
                yield to_subscription(number, None, values, columns)
