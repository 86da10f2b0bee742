"""Which parts make up the index at a moment? Versions of an index on storage."""

from __future__ import annotations

from tamis.versions.manifest import Part, Version, Versions
from tamis.versions.opening import open_version
from tamis.versions.part_set import PartSet
from tamis.versions.store import IndexStore, Retention, roll_back, versions
from tamis.versions.version_index import open_index

__all__ = [
    "IndexStore",
    "Part",
    "PartSet",
    "Retention",
    "Version",
    "Versions",
    "open_index",
    "open_version",
    "roll_back",
    "versions",
]
