"""The index of tags: which subscriptions have a tag, without reading all of them.

It has the tags of the latest rows only. A tag is listed by its first characters, since an index of
PostgreSQL has a limit; the row itself is compared with the whole tag.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.subscriptions.rows import TAG_SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.subscriptions.rows import Row

KEY_CHARACTERS: Final = 128  # at most 512 bytes, as an id


class TagEntry(NamedTuple):
    """One row of the index; the fields are the columns of the table, in their order."""

    tag: str
    subscription_id: str


class TagChanges(NamedTuple):
    """How changed rows change the index."""

    gone: list[TagEntry]
    new: list[TagEntry]


def make_key(tag: str) -> str:
    """How the index lists a tag."""
    return tag[:KEY_CHARACTERS]


@lru_cache(maxsize=1024)  # many subscriptions share few sets of tags
def list_keys(tags: str | None) -> frozenset[str]:
    """How the index lists the tags of a row."""
    return frozenset(map(make_key, tags[1:-1].split(TAG_SEPARATOR)) if tags else ())


def find_tag_changes(before: Mapping[str, Row], rows: Iterable[Row]) -> TagChanges:
    """The entries to delete and to insert for new rows; `before` has the latest row of each id."""
    changes = TagChanges([], [])
    for row in rows:
        if row.superseded_by is not None:
            continue  # within the same transaction
        earlier = before.get(row.subscription_id)
        was, now = "" if earlier is None else earlier.tags, row.tags
        if was != now:
            had, has = list_keys(was), list_keys(now)
            changes.gone.extend([TagEntry(key, row.subscription_id) for key in had - has])
            changes.new.extend([TagEntry(key, row.subscription_id) for key in has - had])
    changes.new.sort()  # in the order of the index, neighbours are written together
    return changes
