"""Attributes that are new in a live set and look misspelt: they resemble one that many use.

Only new names are compared, and users are counted only of names that are alike: adding a
subscription whose attributes are known costs nothing more.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.index.uses import AT_ONCE, find_user_bits
from tamis.language.lookalikes import Use, find_lookalikes
from tamis.language.names import print_path

if TYPE_CHECKING:
    from collections.abc import Collection

    from tamis.language.lookalikes import Likenesses, Lookalike
    from tamis.language.schema import Path, Schema
    from tamis.live.live_set import LiveSet

_BITS: Final = AT_ONCE - 1  # attributes that are counted at once


def find_misspelt(
    live_set: LiveSet, before: Schema, likenesses: Likenesses, texts: Collection[str] | None
) -> list[Lookalike]:
    """The misspelt ones of the attributes that the schema `before` did not have, and that some of
    these expressions have; None for all expressions.
    """
    settings = live_set.settings
    if settings.is_declared or settings.schema is before:  # declared names are all meant
        return []
    new = [path for path in settings.schema if before.get(path) is None]
    return _judge(live_set, new, likenesses, texts)


def find_misspelt_drafted(
    live_set: LiveSet, paths: Collection[Path], likenesses: Likenesses
) -> list[Lookalike]:
    """The misspelt ones of the attributes of one expression that is not in the set."""
    settings = live_set.settings
    if settings.is_declared:
        return []
    new = [path for path in paths if settings.schema.get(path) is None]
    return _judge(live_set, new, likenesses, None, drafted=1)


def _judge(
    live_set: LiveSet,
    new: Collection[Path],
    likenesses: Likenesses,
    texts: Collection[str] | None,
    drafted: int = 0,
) -> list[Lookalike]:
    if not new:
        return []
    likenesses.add(live_set.settings.schema)
    alike = {path: found for path in new if (found := likenesses.find(path))}
    if texts is not None:  # others may have added subscriptions at the same time
        alike = {path: own for path, own in alike.items() if any(path[-1] in one for one in texts)}
    if not alike:
        return []
    uses = count_users(live_set, list(dict.fromkeys(chain(alike, *alike.values()))))
    if drafted:
        uses |= dict.fromkeys(alike, Use(drafted, None))
    named = {print_path(path) for path in alike}
    return [one for one in find_lookalikes(uses) if one.attribute in named]


def count_users(live_set: LiveSet, paths: list[Path]) -> dict[Path, Use]:
    """How many subscriptions of the set use each attribute, and one of them."""
    found = dict.fromkeys(paths, Use(0, None))
    for part in live_set.parts:
        for start in range(0, len(paths), _BITS):
            some = paths[start : start + _BITS]
            bits = find_user_bits(part.contents, some)
            if part.is_hidden is not None:
                bits[part.is_hidden] = 0
            for at, path in enumerate(some):
                users = np.flatnonzero(bits & np.uint64(1 << at))
                earlier = found[path]
                if len(users):
                    first = earlier.subscription_id or str(part.contents.ids[users[0]].as_py())
                    found[path] = Use(earlier.n_subscriptions + len(users), first)
    return found
