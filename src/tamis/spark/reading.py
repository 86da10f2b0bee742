"""Which index, and which of its versions: a path, a store, a version, as a caller may name it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import InputError
from tamis.index.saving import MANIFEST
from tamis.language.moments import read_at
from tamis.spark.parts import PartSet, plain_part
from tamis.spark.storage import Storage
from tamis.spark.store import IndexStore

if TYPE_CHECKING:
    from datetime import datetime

    from tamis.spark.manifest import Version


def open_version(index: Any, version: int | str | None = None, at: Any = None) -> PartSet:
    """The parts of one version of an index, as they answer at a moment: now, unless `at` names
    another (a datetime, or text in ISO's format).

    `index` is the path or URI of a store, of which the current version is taken unless `version`
    names another, or the path of an index saved by `Index.save`; or what this function returned,
    at its own moment unless `at` names another.
    """
    if isinstance(index, PartSet):
        return _reopen(index, version, at)
    moment = read_at(at)
    if isinstance(index, IndexStore):
        return _open_store(index, version, moment)
    if not isinstance(index, str | os.PathLike):
        raise InputError(
            f"an index is named by its path, not by {type(index).__name__}",
            hint="save it first: index.save(path)",
        )
    storage = Storage(index)
    if storage.is_local and (storage.local_path("") / MANIFEST).exists():
        return _open_plain(storage, version, moment)
    return _open_store(IndexStore(storage), version, moment)


def _reopen(parts: PartSet, version: int | str | None, at: Any) -> PartSet:
    known = (None, parts.version.name, parts.version.number)
    if version not in known:
        raise InputError(
            f"this is {parts.version.name}, opened already; {version} cannot be had from it",
            hint="open it by the path of the index",
        )
    return parts if at is None else replace(parts, at=read_at(at))


def _open_store(store: IndexStore, version: int | str | None, at: datetime) -> PartSet:
    found: Version = store.current() if version is None else store.version(version)
    return PartSet(store.storage, found, found.parts, at=at)


def _open_plain(storage: Storage, version: int | str | None, at: datetime) -> PartSet:
    if version is not None:
        raise InputError(f"{storage.uri} is one index, without versions; there is no {version}")
    found, part = plain_part(Path(storage.local_path("")))
    return PartSet(storage, found, (part,), is_plain=True, at=at)
