"""The subscriptions that use an attribute, computed from the arrays of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.language.ast import EVENT
from tamis.language.lookalikes import Use
from tamis.language.names import print_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.index.columns import Column
    from tamis.index.contents import Contents
    from tamis.kernels.arrays import Int32
    from tamis.language.ast import Attribute
    from tamis.language.schema import Path

AT_ONCE: Final = 64  # attributes, a bit for each
NO_BIT: Final = np.uint64(0)
OTHER: Final = np.uint64(1 << (AT_ONCE - 1))
ROWS: Final = 1 << 16  # subscriptions whose bits are counted at a time


def used_paths(contents: Contents) -> dict[Path, None]:
    """The attributes that tests of the index use, without those that only operators read.

    `any_attribute` tests the whole event, which is not an attribute.
    """
    return {own.path: None for column in contents.columns for own in _attributes_of(column)}


def asked_paths(contents: Contents) -> list[Path]:
    """Of these, the attributes whose value some test needs; `a IS NULL` needs none."""
    columns = _columns_of_leaves(contents)
    is_used = np.zeros(contents.n_nodes, dtype=np.bool_)
    is_used[contents.nodes.children] = True
    is_used[contents.roots.nodes] = True
    absent = contents.leaves.absent_leaves
    is_used[absent[absent >= 0]] = False
    asked = np.unique(columns[is_used[: contents.n_leaves]]).tolist()
    columns_asked = (contents.columns[at] for at in asked if at >= 0)
    return list({own.path: None for column in columns_asked for own in _attributes_of(column)})


def _attributes_of(column: Column) -> list[Attribute]:
    return [own for own in column.sources if own.path != EVENT]


def unused_attributes(parts: Iterable[Contents]) -> list[str]:
    """The attributes of the schema that no subscription of any part uses, as expressions spell
    them."""
    declared: dict[Path, None] = {}
    used: set[Path] = set()
    for contents in parts:
        declared |= dict.fromkeys(contents.schema)
        used |= used_paths(contents).keys() | set(contents.plan.paths)
        for own in contents.schema.operators:
            used |= {read.path for read in own.reads or ()}
    return [print_path(path) for path in declared if path not in used]


def count_uses(contents: Contents, paths: Iterable[Path]) -> dict[Path, Use]:
    """The number of subscriptions that use each of these attributes, and the first of them.

    A subscription that is always or never true uses none.
    """
    wanted = list(paths)
    leaf_columns = _columns_of_leaves(contents)
    found: dict[Path, Use] = {}
    for start in range(0, len(wanted), AT_ONCE):
        own = wanted[start : start + AT_ONCE]
        counts, firsts = _count_bits(_used_bits(contents, leaf_columns, own))
        for path, n, first in zip(own, counts.tolist(), firsts.tolist(), strict=False):
            found[path] = Use(n, str(contents.ids[first].as_py()) if n else None)
    return found


def add_uses(parts: Iterable[dict[Path, Use]]) -> dict[Path, Use]:
    """The uses of several parts of an index together."""
    found: dict[Path, Use] = {}
    for uses in parts:
        for path, use in uses.items():
            known = found.get(path, Use(0, None))
            n_subscriptions = known.n_subscriptions + use.n_subscriptions
            found[path] = Use(n_subscriptions, known.subscription_id or use.subscription_id)
    return found


def find_user_bits(contents: Contents, paths: list[Path]) -> np.ndarray:
    """uint64[n_subscriptions], a bit for each of at most 63 paths that a subscription uses, and the
    highest bit, `OTHER`, if it uses others.
    """
    return _used_bits(contents, _columns_of_leaves(contents), paths[: AT_ONCE - 1], OTHER)


def _count_bits(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int64[64] twice: how many of the numbers have each bit, and the first that has it."""
    counts, firsts = np.zeros(AT_ONCE, dtype=np.int64), np.zeros(AT_ONCE, dtype=np.int64)
    for start in range(0, len(bits), ROWS):
        octets = bits[start : start + ROWS].astype("<u8").view(np.uint8).reshape(-1, 8)
        flags = np.unpackbits(octets, axis=1, bitorder="little")
        firsts = np.where(counts == 0, start + flags.argmax(axis=0), firsts)
        counts += flags.sum(axis=0, dtype=np.int64)
    return counts, firsts


def _used_bits(
    contents: Contents, leaf_columns: Int32, paths: list[Path], other: np.uint64 = NO_BIT
) -> np.ndarray:
    """uint64[n_subscriptions], a bit for each path that a subscription uses, and `other` if it uses
    another.
    """
    numbers = {path: np.uint64(1 << at) for at, path in enumerate(paths)}
    column_bits = np.zeros(len(contents.columns) + 1, dtype=np.uint64)
    for at, column in enumerate(contents.columns):
        for attribute in column.sources:
            column_bits[at] |= numbers.get(attribute.path, other)
    bits = np.zeros(contents.n_nodes, dtype=np.uint64)
    bits[: contents.n_leaves] = column_bits[leaf_columns]  # -1 is the last entry, which is zero
    nodes = contents.nodes
    while len(nodes.operators):  # as many passes as the DAG has levels
        above = np.bitwise_or.reduceat(bits[nodes.children], nodes.child_starts[:-1])
        if np.array_equal(bits[contents.n_leaves :], above):
            break
        bits[contents.n_leaves :] = above
    roots = contents.roots
    used = np.zeros(len(contents.ids), dtype=np.uint64)
    used[roots.subscriptions] = np.repeat(bits[roots.nodes], np.diff(roots.subscription_starts))
    return used


def _columns_of_leaves(contents: Contents) -> Int32:
    """[n_leaves], the column of each leaf; -1 for a leaf without a column."""
    leaves = contents.leaves
    found = np.full(contents.n_leaves, -1, dtype=np.int32)
    own = np.repeat(np.arange(len(contents.columns)), np.diff(leaves.column_leaves))
    found[: len(own)] = own
    # Complements that are true on events without the attribute come after all columns; their column
    # is that of their base, which may itself be a complement.
    for _ in range(2):
        is_open = found[leaves.complement_leaves] < 0
        places = leaves.complement_leaves[is_open]
        found[places] = found[leaves.complement_bases[is_open]]
    return found
