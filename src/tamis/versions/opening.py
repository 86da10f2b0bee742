"""Opens the version that a path, a store, a number or a name refers to."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tamis.errors import InputError
from tamis.index import artefact
from tamis.index.saving import MANIFEST
from tamis.language.moments import read_at
from tamis.places import is_live
from tamis.versions.manifest import BASE, Version, read_number
from tamis.versions.part_files import describe_part
from tamis.versions.part_set import PartSet
from tamis.versions.storage import Storage
from tamis.versions.store import IndexStore

if TYPE_CHECKING:
    from datetime import datetime


def open_version(index: Any, version: int | str | None = None, at: Any = None) -> PartSet:
    """The parts of one version of an index, as they answer at a moment: now, unless `at` names
    another (a datetime, or text in ISO format).

    `index` is the path or URI of a store, or an `IndexStore`: then the newest version is opened,
    or the one that `version` names. It may also be the path of an index saved by `Index.save`, or
    a result of this function, which keeps its moment unless `at` names another.
    """
    if isinstance(index, PartSet):
        return _reopen(index, version, at)
    moment = read_at(at)
    if isinstance(index, IndexStore):
        return _open_store(index, version, moment)
    if not isinstance(index, str | os.PathLike):
        raise InputError(
            f"index is a {type(index).__name__}; the path of a saved index is expected",
            hint="save it first: index.save(path)",
        )
    storage = Storage(index)
    if storage.is_local and (storage.local_path("") / MANIFEST).exists():
        return _open_plain(storage, version, moment)
    return _open_store(IndexStore(storage), version, moment)


def _reopen(parts: PartSet, version: int | str | None, at: Any) -> PartSet:
    if version is not None and read_number(version) != parts.version.number:
        raise InputError(
            f"{parts.version.name} is already open; {version} cannot be opened from it",
            hint="open it by the path of the index",
        )
    return parts if at is None else replace(parts, at=read_at(at))


def _open_store(store: IndexStore, version: int | str | None, at: datetime) -> PartSet:
    if version is None:
        _refuse_live(store.storage)
    found = store.current() if version is None else store.version(version)
    return PartSet.of(store.storage, found, at=at)


def _refuse_live(storage: Storage) -> None:
    """Raise an `InputError` for a live index: its newest version may be older than its set."""
    if storage.is_local and is_live(storage.local_path("")):
        raise InputError(
            f"{storage.uri} is a live index; its saved versions may be older than its last change",
            hint="publish it, and use what was published: live.publish(store), or in the shell "
            "tamis publish",
        )


def _open_plain(storage: Storage, version: int | str | None, at: datetime) -> PartSet:
    """An artefact saved by `Index.save`, as a version of one part."""
    if version is not None:
        raise InputError(f"{storage.uri} is one saved index, without versions; it has no {version}")
    directory = storage.local_path("")
    contents = artefact.open_contents(directory, verify=False)
    own = {"id": directory.name, "kind": BASE, "digest": "", "checksums": {}, "n_rejects": 0}
    n_bytes = sum(file.stat().st_size for file in directory.iterdir())
    part = describe_part(contents, **own, n_bytes=n_bytes)
    schema = json.loads((directory / MANIFEST).read_bytes())["schema"]
    found = Version(0, (part,), schema, str(contents.missing))
    return PartSet(storage, found, (part,), is_plain=True, at=at)
