"""Subscriptions into an index: read, typed, shared, laid out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.errors import ExpressionError, InputError
from tamis.index.contents import Contents
from tamis.index.finish import finish
from tamis.index.layout import LeafArrays, freeze
from tamis.index.order import order_nodes
from tamis.index.programs import write_programs
from tamis.index.reader import Reader
from tamis.index.store import Store
from tamis.index.triggers import build_triggers
from tamis.language.bulk import parse_many
from tamis.language.infer import SchemaVotes
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse
from tamis.logic.evaluate import Missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tamis.language.schema import Schema

CHUNK = 20_000  # expressions read at a time
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Built:
    """An index's contents, and the subscriptions that could not be taken in."""

    contents: Contents
    rejects: list[ExpressionError]


def build_contents(  # noqa: PLR0913 - all that decides what the index is
    subscriptions: Mapping[str, str] | Iterable[tuple[str, str]],
    schema: Schema | None = None,
    missing: Missing = Missing.UNDEFINED,
    limits: Limits = DEFAULT_LIMITS,
    *,
    tags: Mapping[str, Sequence[str]] | None = None,
    processes: int = 1,
    provenance: Mapping[str, Any] | None = None,
) -> Built:
    """The index of all subscriptions that are right; the others are rejects, each with its error.

    Of several subscriptions with one id the first is taken and the others are rejects.
    """
    pairs = subscriptions.items() if hasattr(subscriptions, "items") else subscriptions
    ids, texts, rejects = _split_duplicates(pairs)
    if schema is None:
        schema = _infer(texts, limits)
    store = Store(is_signed=missing is Missing.SATISFIES_NEGATION)
    reader = Reader(limits)
    roots = np.zeros(len(texts), dtype=np.int32)
    is_kept = np.ones(len(texts), dtype=np.bool_)
    for start in range(0, len(texts), CHUNK):
        own = slice(start, start + CHUNK)
        programs = reader.programs(reader.read(texts[own]), schema, store)
        roots[own] = store.add(programs)
        left = start + np.flatnonzero(programs.is_left)
        rows = [(ids[at], texts[at]) for at in left.tolist()]
        parsed = parse_many(rows, schema, limits, processes=processes)
        conditions = [row.condition for row in parsed if row.condition is not None]
        is_right = np.array([row.condition is not None for row in parsed], dtype=np.bool_)
        roots[left[is_right]] = store.add(write_programs(conditions, store, missing))
        is_kept[left[~is_right]] = False
        rejects.extend(row.error for row in parsed if row.error is not None)
    finished = order_nodes(finish(store, roots[is_kept]))
    rates = estimate_leaf_rates(finished.leaves, finished.n_leaves)
    triggers = build_triggers(finished.nodes, rates)
    finished.never.flags.writeable = False
    contents = Contents(
        schema,
        missing,
        finished.columns,
        finished.n_leaves,
        freeze(finished.leaves),
        freeze(finished.nodes),
        freeze(finished.roots),
        freeze(triggers),
        finished.never,
        pa.array(ids, pa.string()).filter(pa.array(is_kept)),
        _text_array(texts, is_kept),
        _tag_array(ids, tags or {}, is_kept),
        dict(provenance or {}),
    )
    return Built(contents, rejects)


def estimate_leaf_rates(leaves: LeafArrays, n_leaves: int) -> np.ndarray:
    """How often each leaf is true, guessed from its kind alone: sets by their size among the
    column's constants, bounds half of the time, complements the rest."""
    rates = np.full(n_leaves, 0.1, dtype=np.float32)
    n_constants = np.maximum(1, np.diff(leaves.column_codes) // 2)
    code_columns = np.repeat(np.arange(len(n_constants)), np.diff(leaves.column_codes))
    shares = (1 / (1 + n_constants[code_columns])).astype(np.float32)
    posting_codes = np.repeat(np.arange(len(leaves.code_slots)), np.diff(leaves.posting_starts))
    sums = np.zeros(n_leaves, dtype=np.float32)
    np.add.at(sums, leaves.posting_leaves, shares[posting_codes])
    rates[sums > 0] = sums[sums > 0]
    rates[leaves.threshold_leaves] = 0.5
    rates[leaves.complement_leaves] = 1 - rates[leaves.complement_bases]
    return np.clip(rates, 0, 1)


def _split_duplicates(
    pairs: Iterable[tuple[Any, str]],
) -> tuple[list[str], list[str], list[ExpressionError]]:
    first: dict[str, str] = {}
    rejects: list[ExpressionError] = []
    for subscription_id, text in _pairs(pairs):
        if not isinstance(subscription_id, str):
            what = f"a subscription's id is text, not {type(subscription_id).__name__}"
            rejects.append(_reject("bad-id", what, _shown(subscription_id), text))
        elif not subscription_id.isascii() and _LONE_SURROGATE.search(subscription_id):
            what = "a subscription's id is text: it holds a lone surrogate"
            rejects.append(_reject("bad-id", what, ascii(subscription_id), text))
        elif subscription_id in first:
            what = "another subscription before it has the same id"
            rejects.append(_reject("duplicate-id", what, subscription_id, text))
        else:
            first[subscription_id] = text
    return list(first), list(first.values()), rejects


def _pairs(rows: Iterable[tuple[Any, str]]) -> Iterator[tuple[Any, str]]:
    n_read = 0
    try:
        for subscription_id, text in rows:
            n_read += 1
            yield subscription_id, text
    except (TypeError, ValueError) as error:
        raise InputError(
            f"subscription {n_read + 1} is no pair: {error}",
            hint="subscriptions are {id: expression} or pairs (id, expression)",
        ) from error


def _shown(subscription_id: Any) -> str:
    try:
        return str(subscription_id)
    except Exception:  # integers of more than 4,300 digits and foreign objects may refuse
        return f"a value of class {type(subscription_id).__name__}"


def _reject(code: str, message: str, subscription_id: str, text: Any) -> ExpressionError:
    return ExpressionError(
        code,
        message,
        span=(0, 0),
        text=text if isinstance(text, str) else None,
        subscription_id=subscription_id,
    )


def _infer(texts: list[str], limits: Limits) -> Schema:
    """The schema that most uses of each attribute speak for."""
    votes = SchemaVotes()
    reader = Reader(limits)
    for start in range(0, len(texts), CHUNK):
        own = texts[start : start + CHUNK]
        chunk = reader.read(own)
        reader.vote(chunk, votes)
        for at in np.flatnonzero(chunk.scanned.is_left).tolist():
            try:
                votes.add(parse(own[at], limits))
            except ExpressionError:
                continue  # reported when it is parsed for good
    return votes.elect()


def _text_array(texts: list[str], is_kept: np.ndarray) -> pa.StringArray:
    return pa.array([texts[at] for at in np.flatnonzero(is_kept).tolist()], pa.string())


def _tag_array(
    ids: list[str], tags: Mapping[str, Sequence[str]], is_kept: np.ndarray
) -> pa.ListArray:
    kept = np.flatnonzero(is_kept).tolist()
    return pa.array([list(tags.get(ids[at], ())) for at in kept], pa.list_(pa.string()))
