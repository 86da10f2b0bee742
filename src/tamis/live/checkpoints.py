"""Saves a live set as a version, and opens it again.

A version is exact as of one change. What came later is read again from the log, so a version saves
time when the set is opened; the store alone is the truth.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import IndexFormatError, TamisError, warn
from tamis.index.id_table import WantedIds
from tamis.language.limits import NO_LIMITS
from tamis.live.live_set import LivePart, LiveSet, empty_part
from tamis.places import MANIFEST
from tamis.versions.log_position import LogPosition
from tamis.versions.manifest import BASE, DELTA, Version
from tamis.versions.part_files import digest_rows, write_part
from tamis.versions.part_set import PartSet
from tamis.versions.store import IndexStore, Retention

if TYPE_CHECKING:
    from pathlib import Path

    from tamis.live.settings import Settings
    from tamis.subscriptions import SubscriptionStore
    from tamis.versions.manifest import Part

RETENTION: Final = Retention(
    versions=2, replaced_within=timedelta(minutes=10), leftovers_for=timedelta(hours=1)
)


def save(
    live_set: LiveSet, folder: Path, subscriptions: SubscriptionStore
) -> tuple[Version, dict[int, Part]]:
    """Publish the set as a version in its folder; returns it, and the parts that were written, by
    the address of their contents.
    """
    store = IndexStore(folder)
    written: list[Part] = []
    try:
        return _save(live_set, store, subscriptions, written)
    except TamisError:
        # It is tried again, and writes other parts: on a full disk, these are in the way.
        for part in written:
            with suppress(TamisError):
                store.storage.delete(part.folder)
        raise


def _save(
    live_set: LiveSet, store: IndexStore, subscriptions: SubscriptionStore, new: list[Part]
) -> tuple[Version, dict[int, Part]]:
    """As `save`; `new` has the parts that were written and belong to no version yet."""
    position = LogPosition(subscriptions.epoch, live_set.change)
    written: dict[int, Part] = {}
    removed = _find_removed(live_set)
    parts: list[Part] = []
    for part in live_set.parts:
        stored = part.stored
        if stored is None or not store.storage.exists(f"{stored.folder}/{MANIFEST}"):
            # A part hides what was removed from earlier ones, but nothing in itself.
            hides = part is live_set.parts[-1] and not part.n_hidden
            stored = _write(store, part, removed.to_pylist() if hides else [])
            new.append(stored)
            written[id(part.contents)] = stored
            removed = removed[:0] if hides else removed
        parts.append(replace(stored, n_hidden=part.n_hidden))
    if len(removed):
        new.append(_write(store, empty_part(live_set.settings), removed.to_pylist()))
        parts.append(new[-1])
    version = Version(
        0,
        tuple(replace(own, kind=DELTA if at else BASE) for at, own in enumerate(parts)),
        live_set.settings.schema.to_json(),
        str(live_set.settings.missing.value),
        provenance=position.to_provenance(subscriptions.where),
    )
    published = store.publish(lambda _: version, is_afresh=True)
    new.clear()  # they belong to a version now
    try:
        store.prune(RETENTION)
    except TamisError as error:
        warn(f"{error.message}; the set is saved, and older versions stay until the next time")
    return published, written


def _write(store: IndexStore, part: LivePart, removed: list[str]) -> Part:
    contents = replace(part.contents, provenance={"change": part.change})
    ids = pa.table({"subscription_id": contents.ids})
    digest = digest_rows(ids, str(contents.missing.value), NO_LIMITS)
    return write_part(store.storage, contents, digest, DELTA, [], removed)


def _find_removed(live_set: LiveSet) -> pa.Array:
    """The ids that are hidden in some part and answer in none."""
    hidden = [
        part.contents.ids.filter(pa.array(part.is_hidden))
        for part in live_set.parts
        if part.is_hidden is not None
    ]
    if not hidden:
        return pa.array([], pa.string())
    removed = pc.unique(pa.chunked_array(hidden))
    for part in live_set.parts:
        ordinals = part.contents.id_table.find(WantedIds(removed))
        is_shown = ordinals >= 0
        if part.is_hidden is not None:
            is_shown &= ~part.is_hidden[ordinals]
        removed = removed.filter(pa.array(~is_shown))
    return removed


def load(
    folder: Path, store: SubscriptionStore, settings: Settings, before: int | None = None
) -> LiveSet | None:
    """The set of the newest usable version, or of the newest one up to a change; None if there is
    none.
    """
    epoch, last, horizon = store.epoch, store.last_change, store.horizon
    last = last if before is None else before
    versions = IndexStore(folder)
    for number in reversed(versions.numbers()):
        try:
            version = versions.version(number)
            position = LogPosition.of(version)
            if position is None or position.epoch != epoch:
                continue
            is_near = horizon <= position.change <= last
            if is_near and version.missing == settings.missing.value:
                return _open(versions, version, position.change, settings)
        except IndexFormatError as error:
            warn(f"{error.message}; an older version or the store is read instead. Nothing is lost")
    return None


def find_saved_change(folder: Path, epoch: str) -> int:
    """The last change that a readable version of a folder includes; 0 if there is none."""
    versions = IndexStore(folder)
    for number in reversed(versions.numbers()):
        with suppress(IndexFormatError):  # reported where it is opened
            position = LogPosition.of(versions.version(number))
            if position is not None and position.epoch == epoch:
                return position.change
    return 0


def _open(versions: IndexStore, version: Version, change: int, settings: Settings) -> LiveSet:
    opened = {own.part.id: own for own in PartSet.of(versions.storage, version).open_parts()}
    parts = []
    for part in version.parts:
        own = opened[part.id]
        is_hidden = own.find_hidden()
        if not len(own.contents.ids):
            continue  # it only hides
        # What the next version says is hidden may differ: it is found again.
        parts.append(LivePart(own.contents, change, is_hidden, part))
    found = LiveSet(change, settings, tuple(parts) or (empty_part(settings),))
    if settings.is_declared:
        return found
    named = {path: str(use.subscription_id) for path, use in version.uses.items()}
    inferred = replace(settings, schema=version.typed_schema(), deciders=named)
    return replace(found, settings=inferred.with_types(settings))
