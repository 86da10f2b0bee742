"""Backups of a match server, while it runs; and what makes a server of one again.

backup/
    backup.json     what it is; written last
    index/          the subscriptions and the tables of the broker, and the settings of the index
    archive/        events and matches
    intake/         published events, if a Spark stream matches them
    secret          for keyed hashes: without it, no key and no ticket is valid

The archive is copied first. So the store of a backup knows every subscription that its archive
names. The index is not copied: it is built from the store when a restored server starts.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from tamis import durable
from tamis.archive import Archive
from tamis.broker.match_server import ARCHIVE, INDEX, INTAKE
from tamis.broker.secrets import FILE as SECRET
from tamis.broker.stream_positions import reconcile
from tamis.broker.tables import migrate
from tamis.errors import InputError, StoreError
from tamis.language.moments import spell_moment
from tamis.live.opening import find_store
from tamis.places import LIVE, holds_subscriptions
from tamis.subscriptions import SubscriptionStore

if TYPE_CHECKING:
    from collections.abc import Iterator

FACTS: Final = "backup.json"
FORMAT: Final = 1


class Backup(NamedTuple):
    """What a backup has."""

    moment: str
    last_event: int
    last_change: int | None  # None if the store is a PostgreSQL database: it is not in the backup
    archive_epoch: str
    store_epoch: str


def back_up(
    folder: Path,
    store: SubscriptionStore,
    archive: Archive,
    target: Path,
    intake: Archive | None = None,
) -> Backup:
    """Copy a server to a new folder; it may be in use. Raises a `StoreError` if that fails."""
    if target.exists():
        raise InputError(f"{target} exists", hint="name a new folder")
    for name in (ARCHIVE, INTAKE):
        if target.resolve().is_relative_to((folder / name).resolve()):
            raise InputError(f"{target} is inside of the {name}", hint="name another folder")
    try:
        durable.make_directory(target.parent)
        with durable.new_directory(target) as draft:
            draft.chmod(0o700)  # it has the secret
            made = _copy(folder, store, archive, draft, intake)
    except FileExistsError:
        raise InputError(f"{target} exists", hint="name a new folder") from None
    except OSError as error:
        raise StoreError(
            f"the backup {target} was not made: {error.strerror or error}",
            hint="is there enough space, and may this user write there?",
        ) from None
    return made


def _copy(
    folder: Path,
    store: SubscriptionStore,
    archive: Archive,
    draft: Path,
    intake: Archive | None,
) -> Backup:
    if intake is not None:
        intake.backup(draft / INTAKE)
    last_event = archive.backup(draft / ARCHIVE)
    durable.make_directory(draft / INDEX)
    if (folder / INDEX / LIVE).exists():
        _copy_file(folder / INDEX / LIVE, draft / INDEX / LIVE)
    is_inside = holds_subscriptions(folder / INDEX)
    last_change = store.backup(draft / INDEX) if is_inside else None
    _copy_file(folder / SECRET, draft / SECRET)
    made = Backup(spell_moment(store.moment), last_event, last_change, archive.epoch, store.epoch)
    durable.replace_file(draft / FACTS, [orjson.dumps({"format": FORMAT, **made._asdict()})])
    return made


def restore(backup: Path, folder: Path, store: str | None = None) -> Backup:
    """Make the folder of a server from a backup, with new epochs: cursors of clients notice that
    history may have been lost. `store` is the address of a restored PostgreSQL database.
    """
    found = read_backup(backup)
    if found.last_change is None and store is None:
        raise InputError(
            f"the subscriptions of {backup} are not in it, but in a PostgreSQL database",
            hint="restore that first (pg_restore), and name it: --store ADDRESS",
        )
    if folder.exists():
        raise InputError(f"{folder} exists", hint="name a new folder, or move this one away")
    try:
        durable.make_directory(folder.parent)
        with durable.new_directory(folder) as draft:
            for path in _list_files(backup):
                durable.make_directory((draft / path).parent)
                _copy_file(backup / path, draft / path)
            (draft / SECRET).chmod(0o600)
            _renew_epochs(draft, store)
    except OSError as error:
        raise StoreError(f"{folder} was not made: {error.strerror or error}") from None
    return found


def read_backup(backup: Path) -> Backup:
    """What a backup has; raises an `InputError` for a folder that is not a backup."""
    try:
        found: dict[str, Any] = orjson.loads((backup / FACTS).read_bytes())
        version = found.pop("format")
        made = Backup(**found)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{backup} is not a backup of a server", hint=f"{FACTS} is missing or damaged"
        ) from None
    if version != FORMAT:
        raise InputError(f"{backup} has format {version}; this program reads format {FORMAT}")
    return made


def _renew_epochs(folder: Path, store: str | None) -> None:
    with (
        SubscriptionStore.open(find_store(folder / INDEX, store)) as opened,
        Archive.open(folder / ARCHIVE, is_started=False) as archive,
    ):
        opened.renew_epoch()
        opened.run(partial(migrate, where=opened.where))
        opened.run(partial(reconcile, archive=archive))
        archive.renew_epoch()
    if (folder / INTAKE).exists():
        with Archive.open(folder / INTAKE) as intake:
            intake.renew_epoch()


def _list_files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = (Path(parent) / name).relative_to(folder)
            if path.name != FACTS:
                yield path


def _copy_file(path: Path, target: Path) -> None:
    """Copy a file durably, with its mode."""
    shutil.copyfile(path, target)
    shutil.copymode(path, target)
    with target.open("rb") as file:
        os.fsync(file.fileno())
    durable.sync_directory(target.parent)
