"""What is odd about subscriptions that were built into an index: reported, not refused."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import suggest, warn
from tamis.index.uses import count_uses, used_paths
from tamis.language.lookalikes import find_alike, find_lookalikes, tell_lookalikes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.index.contents import Contents
    from tamis.language.lookalikes import Lookalike
    from tamis.match.index import Index

SHOWN: Final = 3


def report_build(index: Index, *, is_declared: bool, tags: Mapping[str, Any]) -> None:
    """Warn of attributes that look misspelt, and of tags that nobody gets.

    In a declared schema all names are meant: what it does not have is a reject already.
    """
    found = [] if is_declared else lookalikes(index.contents)
    if found:
        warn(tell_lookalikes(found))
    if tags:
        refused = {reject.subscription_id for reject in index.rejects}
        unknown = [one for one in tags if one not in index and one not in refused]
        if unknown:
            warn(_tell_unknown(unknown, index))


def lookalikes(contents: Contents) -> list[Lookalike]:
    """The attributes of an index that look misspelt; uses are counted only of names alike."""
    alike = dict.fromkeys(chain.from_iterable(find_alike(used_paths(contents))))
    return find_lookalikes(count_uses(contents, alike)) if alike else []


def tell_unused(names: Sequence[str]) -> str:
    """One sentence about attributes of a schema that no subscription uses."""
    shown = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    if len(names) == 1:
        return f"no subscription in the index uses {shown}, which the schema declares"
    n = f"{len(names):,}"
    return f"no subscription in the index uses {n} attributes that the schema declares: {shown}"


def _tell_unknown(unknown: list[Any], index: Index) -> str:
    likely = suggest(str(unknown[0]), index.contents.ids[:10_000].to_pylist())
    n = len(unknown)
    what = "an id in tags is" if n == 1 else f"{n:,} ids in tags are"
    hint = f'; did you mean "{likely}"?' if likely else "; correct or remove it"
    return f'{what} of no subscription: {"such as " * (n > 1)}"{unknown[0]}"{hint}'
