"""Copies a version from one store to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.places import MANIFEST
from tamis.versions.store import IndexStore

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from tamis.versions.manifest import Version


def copy_version(
    folder: Path, version: Version, target: str | os.PathLike[str] | IndexStore
) -> Version:
    """Publish a version of a local folder as the next version of another store.

    Parts that the other store has already are not copied again. If its newest version is the same,
    nothing is published.
    """
    store = target if isinstance(target, IndexStore) else IndexStore(target)
    store.expect_room()
    for part in version.parts:
        if not store.storage.exists(f"{part.folder}/{MANIFEST}"):
            # The manifest comes last: a part with a manifest is complete.
            names = sorted(part.checksums, key=lambda name: (name == MANIFEST, name))
            store.storage.upload(folder / part.folder, part.folder, names)
    return store.publish(lambda newest: None if _is_same(newest, version) else version)


def _is_same(newest: Version | None, version: Version) -> bool:
    return newest is not None and newest.provenance == version.provenance
