"""Assigns subscriptions to parts.

Either by a hash of the id, or by shared structure: subscriptions that use the same attributes are
in the same part, so a part needs fewer attributes and shares more nodes (Irmak's index partitions).
Both depend only on the subscription, so a change affects one part, or two. The choice affects the
speed only, never an answer.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from tamis.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HASH: Final = "hash"
STRUCTURE: Final = "structure"
PARTITIONINGS: Final = (HASH, STRUCTURE)
N_SLOTS: Final = 4096  # counted to find bounds; the finest division into parts

_TEXTS: Final = r"'(?:[^'\\]|\\.|'')*'"
_NAMES: Final = r"`(?:[^`]|``)+`|[A-Za-z_][A-Za-z_0-9.]*"
_WORDS: Final = (
    "and or not in like ilike rlike between is null true false escape xor xnor at_least matches "
    "startswith endswith contains array_contains arrays_overlap date timestamp"
).split()


def structure_slot(expression: Column) -> Column:
    """A number below N_SLOTS, close for expressions that use the same attributes.

    It is made of the two smallest hashes among the names (a min-hash): expressions with the same
    smallest hash are close, and among them those with the same second one.
    """
    bare = F.regexp_replace(expression, _TEXTS, " ")
    names = F.regexp_extract_all(bare, F.lit(f"({_NAMES})"), F.lit(1))
    known = F.array(*map(F.lit, _WORDS))
    own = F.filter(F.array_distinct(names), lambda name: ~F.array_contains(known, F.lower(name)))
    hashes = F.array_sort(F.transform(own, lambda name: F.pmod(F.xxhash64(name), F.lit(64))))
    first = F.coalesce(F.get(hashes, F.lit(0)), F.lit(0))
    second = F.coalesce(F.get(hashes, F.lit(1)), F.lit(0))
    return (first * 64 + second).cast("int")


def hash_slot(subscription_id: Column) -> Column:
    """A number below N_SLOTS, evenly distributed."""
    return F.pmod(F.xxhash64(subscription_id), F.lit(N_SLOTS)).cast("int")


def choose_bounds(slots: DataFrame, n_parts: int) -> list[int]:
    """The first slot of each part, such that parts are about equally large.

    In: slot int, one row for each subscription. One small row per slot is sent to the driver.
    """
    counts = {row["slot"]: row["count"] for row in slots.groupBy("slot").count().collect()}
    total, seen, bounds = sum(counts.values()), 0, [0]
    for slot in range(N_SLOTS):
        if seen >= total * len(bounds) / n_parts and slot > bounds[-1]:
            bounds.append(slot)
        if len(bounds) == n_parts:
            break
        seen += counts.get(slot, 0)
    return bounds


def even_bounds(n_parts: int) -> list[int]:
    """Bounds for evenly distributed slots."""
    return [part * N_SLOTS // n_parts for part in range(n_parts)]


def part_of(slot: Column, bounds: list[int]) -> Column:
    """The number of the part that a slot belongs to."""
    part = F.when(slot < (bounds[1] if len(bounds) > 1 else N_SLOTS), 0)
    for number, (_, end) in enumerate(pairwise(bounds[1:]), start=1):
        part = part.when(slot < end, number)
    return part.otherwise(len(bounds) - 1)


def check_partitioning(kind: str, n_parts: int | None) -> None:
    """Raise an error for an invalid partitioning."""
    if kind not in PARTITIONINGS:
        raise InputError(f'unknown partitioning "{kind}"; allowed: {", ".join(PARTITIONINGS)}')
    if n_parts is not None and not 1 <= n_parts <= N_SLOTS:
        raise InputError(f"{n_parts} parts; 1 to {N_SLOTS} are allowed")


def describe(kind: str, bounds: list[int]) -> dict[str, Any]:
    """The form stored in a version."""
    return {"kind": kind, "bounds": bounds}
