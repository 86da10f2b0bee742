"""Versions of one index on storage: opened, published, pruned.

    <root>/v00000012/manifest.json     created only if absent; never changed
    <root>/parts/<unique name>/…       artefacts, written before any manifest names them
    <root>/CURRENT                     the newest version's number, replaced atomically

The highest intact manifest is authoritative. CURRENT is for people and other programs: nothing here
reads it, so it may lag or be lost. A part is never changed, so a reader can use the version that it
has opened, whatever is published later.
"""

from __future__ import annotations

import json
import warnings
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from tamis.durable import DRAFT, LOCK
from tamis.errors import IndexFormatError, InputError, TamisWarning
from tamis.places import CURRENT, MANIFEST, VERSION
from tamis.versions.manifest import (
    PART_ID,
    RESTORE,
    DamagedManifestError,
    Version,
    Versions,
    read_number,
    read_version,
    version_name,
)
from tamis.versions.part_files import is_part_file
from tamis.versions.storage import CLAIM, Storage

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

PARTS: Final = "parts"
PUBLISH_ATTEMPTS: Final = 100
SHOWN: Final = 5  # versions in a hint


@dataclass(frozen=True, slots=True)
class Retention:
    """Which versions are kept: the newest ones, and those that were replaced recently.

    Parts that no version names belong to builders that died or that are still running: they are
    kept for a while too.
    """

    versions: int = 3  # the newest ones, at least
    replaced_within: timedelta = timedelta(days=1)  # readers may still open their parts
    leftovers_for: timedelta = timedelta(days=1)  # parts that no version names

    def __post_init__(self) -> None:
        if self.versions < 1:
            raise InputError(f"versions is {self.versions}; at least 1 version must be kept")


class IndexStore:
    """The versions of one index, in the folder `root`: a path, or a URI that Arrow supports.

    `uri` is that folder, `storage` reads and writes it. Functions that take an index take a store
    too, and use its current version.
    """

    def __init__(self, root: str | os.PathLike[str] | Storage) -> None:
        self.storage = root if isinstance(root, Storage) else Storage(root)

    def __repr__(self) -> str:
        return f"IndexStore({self.uri!r})"

    def __str__(self) -> str:
        return f"{self.uri}\n{self.versions()!r}"

    def to_pandas(self) -> Any:
        """The table of `versions`."""
        return self.versions().to_pandas()

    @property
    def uri(self) -> str:
        """The root, as it was given."""
        return self.storage.uri

    # ── reading ────────────────────────────────────────────────────────────────────────────

    def current(self) -> Version:
        """The newest intact version; warns of newer ones that are damaged."""
        damaged = None
        for number in reversed(self._folders()):
            try:
                found = self._read(number)
            except DamagedManifestError as error:
                damaged = damaged or error
                continue
            if found is None:
                continue
            if damaged is not None:
                _warn(f"{damaged.message}; {found.name} is used instead. Rebuild the index.")
            return found
        self.expect_versions()
        raise damaged or IndexFormatError(
            f"{self.uri} holds no version of an index", hint="build one: tamis spark build"
        )

    def current_or_none(self) -> Version | None:
        """The newest version, which must be intact; None if there is no version."""
        newest = self._newest_number()
        return None if newest is None else self.version(newest)

    def newest_whole(self) -> Version | None:
        """The newest version that this program can read; None if there is none."""
        for number in reversed(self._folders()):
            with suppress(IndexFormatError):
                found = self._read(number)
                if found is not None:
                    return found
        return None

    def is_used(self) -> bool:
        """Whether the folder has or had versions; False for the folder of a saved index."""
        is_saved = self.storage.exists(MANIFEST)
        return not is_saved and (bool(self._folders()) or self.storage.exists(CURRENT))

    def expect_versions(self) -> None:
        """Raise an `InputError` for the folder of a single saved index."""
        if self.storage.exists(MANIFEST):
            raise InputError(
                f"{self.uri} is one saved index, without versions",
                hint="to open it, leave out the version; versions need another folder: "
                "tamis spark build, tamis publish",
            )

    def expect_room(self) -> None:
        """Raise an `InputError` for a folder of another program, which must not be changed."""
        self.expect_versions()
        if self._newest_number() is None and self.storage.exists(CURRENT):
            body = None
            with suppress(ValueError, RecursionError):
                body = json.loads(self.storage.read(CURRENT) or b"")
            if not isinstance(body, dict) or body.keys() != {"version", "name"}:
                raise InputError(
                    f"{self.storage.where(CURRENT)} is not an index's file: it is not overwritten",
                    hint="build the index in an empty folder",
                )

    def version(self, which: int | str) -> Version:
        """One version, by its number (also as text) or its name."""
        number = read_number(which)
        found = None if number is None else self._read(number)
        if found is None:
            name = which if number is None else version_name(number)
            raise IndexFormatError(
                f'{self.uri} has no version "{name}"', hint=self._describe_versions(number)
            )
        return found

    def _describe_versions(self, missing: int | None) -> str:
        """A hint that says which versions there are instead of a missing one."""
        numbers = self.numbers()
        if not numbers:
            is_there = not self.storage.is_local or self.storage.local_path("").exists()
            return "it holds no versions" if is_there else "that folder does not exist"
        shown = ", ".join(map(version_name, numbers[-SHOWN:]))
        existing = f"existing versions: {'…, ' * (len(numbers) > SHOWN)}{shown}"
        was_deleted = missing is not None and 0 < missing < numbers[-1]
        return f"{existing}; that one was deleted" if was_deleted else existing

    def versions(self) -> Versions:
        """All versions, oldest first; warns of damaged ones and leaves them out."""
        found = self._read_all()
        damaged = [version_name(number) for number, own in found.items() if own is None]
        if damaged:
            _warn(f"{self.uri}: {', '.join(damaged)} cannot be read. Rebuild the index.")
        return Versions(own for own in found.values() if own is not None)

    def numbers(self) -> list[int]:
        """The numbers of all versions, ascending."""
        # A folder without a manifest is a version that is unfinished or being pruned.
        return [number for number in self._folders() if self.storage.exists(_manifest_of(number))]

    def _newest_number(self) -> int | None:
        rising = self._folders()
        return next((n for n in reversed(rising) if self.storage.exists(_manifest_of(n))), None)

    def _folders(self) -> list[int]:
        found = (VERSION.fullmatch(each.name) for each in self.storage.list() if each.is_folder)
        return sorted(int(match[1]) for match in found if match)

    def _read(self, number: int) -> Version | None:
        path = _manifest_of(number)
        content = self.storage.read(path)
        if content is None:
            return None
        found = read_version(content, self.storage.where(path))
        if found.number != number:
            raise DamagedManifestError(
                f"{self.storage.where(path)} is the manifest of {found.name}", hint=RESTORE
            )
        return found

    # ── publishing ─────────────────────────────────────────────────────────────────────────

    def publish(
        self, derive: Callable[[Version | None], Version | None], *, is_afresh: bool = False
    ) -> Version:
        """Publish the version that `derive` returns for the newest one, under the next number.

        If another process publishes first, `derive` is called again with that version, so no change
        is lost. If it returns None, nothing is published and the newest version is returned.
        `is_afresh`: the new version does not depend on the newest one, which may be damaged.
        """
        for _ in range(PUBLISH_ATTEMPTS):
            number = (self._newest_number() or 0) + 1
            newest = self.newest_whole() if is_afresh else self.current_or_none()
            made = derive(newest)
            # A damaged version is the newest until another follows it.
            if made is None and newest is not None and newest.number == number - 1:
                return newest
            made = made or newest
            assert made is not None, "the first version cannot be None"
            version = made.numbered(number)
            self._expect_parts(version)
            if self._create(version):
                self._settle(version)
                return version
        raise InputError(f"{self.uri}: too many other processes publish at the same time")

    def _create(self, version: Version) -> bool:
        """Create the version's manifest; False if another process has taken its number."""
        path, content = _manifest_of(version.number), version.to_bytes()
        try:
            return self.storage.create(path, content)
        except InputError as error:
            if self.storage.read(path) != content:
                raise
            # The manifest exists, and others may have read it already: the version is published.
            _warn(f"{version.name} is published, but may not survive a power cut: {error.message}")
            return True

    def _settle(self, version: Version) -> None:
        """Write the newest version's name to CURRENT.

        Looks again after each write: another process may have published in between.
        """
        written = None
        try:
            while (newest := self._newest_number()) is not None and newest != written:
                body = {"version": newest, "name": version_name(newest)}
                self.storage.write(CURRENT, json.dumps(body).encode())
                written = newest
        except InputError as error:
            _warn(f"{version.name} is published, but {CURRENT} does not name it: {error.message}")

    def roll_back(self, which: int | str) -> Version:
        """Publish an older version again, as the newest one; the newest version stays as it is.

        `which` is the version's number or name.
        """
        older = self.version(which)
        return self.publish(lambda newest: None if newest == older else older, is_afresh=True)

    def _expect_parts(self, version: Version) -> None:
        for part in version.parts:
            if not self.storage.exists(f"{part.folder}/{MANIFEST}"):
                raise IndexFormatError(
                    f"{self.storage.where(part.folder)} is missing; nothing was published",
                    hint="rebuild the index; parts are pruned when no version names them",
                )

    # ── pruning ────────────────────────────────────────────────────────────────────────────

    def prune(self, retention: Retention | None = None) -> list[str]:
        """Delete the versions that the policy does not keep, then the parts that no version names.

        Returns the names of what was deleted. A version's manifest is deleted first, so no reader
        sees an incomplete version. Versions with damaged manifests are deleted like others; while
        one is kept, all parts are kept, because it may name any of them. Only files that Tamis
        writes are deleted.
        """
        policy = retention or Retention()
        self.storage.sweep(PARTS)
        versions = self._read_all()
        gone = _choose_gone(versions, policy)
        for number in gone:
            self.storage.delete_own(version_name(number), MANIFEST, _is_version_file)
        # Read again: another process may have published meanwhile.
        kept = self._read_all()
        for number in kept:
            self.storage.sweep(version_name(number))
        named = {part.folder for version in kept.values() if version for part in version.parts}
        orphaned = {part.folder for n in gone if (own := versions[n]) for part in own.parts}
        dead = [
            folder
            for folder, changed_at in self._part_ages().items()
            if folder not in named
            and None not in kept.values()
            and (folder in orphaned or datetime.now(UTC) - changed_at > policy.leftovers_for)
        ]
        for folder in dead:
            self.storage.delete_own(folder, MANIFEST, _is_file_of_part)
        return [version_name(number) for number in gone] + dead

    def _read_all(self) -> dict[int, Version | None]:
        """All versions by number, ascending; None for a version whose manifest cannot be read."""
        found: dict[int, Version | None] = {}
        for number in self._folders():
            try:
                version = self._read(number)
                if version is None:
                    continue  # unfinished, or another process prunes it
            except IndexFormatError:
                version = None
            found[number] = version
        return found

    def _part_ages(self) -> dict[str, datetime]:
        """When something was last written into each part's folder."""
        ages: dict[str, datetime] = {}
        for stored in self.storage.list(PARTS, deep=True):
            folder = "/".join(stored.name.split("/")[:2])
            if PART_ID.fullmatch(folder.rpartition("/")[2]):
                ages[folder] = max(ages.get(folder, stored.changed_at), stored.changed_at)
        return ages


def versions(store: str | os.PathLike[str] | IndexStore) -> Versions:
    """All versions of an index, oldest first; the last one is current.

    Raises an `IndexFormatError` if there is no version.
    """
    target = store if isinstance(store, IndexStore) else IndexStore(store)
    found = target.versions()
    if not found:
        target.current()  # raises the error
    return found


def roll_back(store: str | os.PathLike[str] | IndexStore, which: int | str) -> Version:
    """Publish an older version again and return the new version; `which` is the older version's
    number or name."""
    return (store if isinstance(store, IndexStore) else IndexStore(store)).roll_back(which)


def _choose_gone(versions: dict[int, Version | None], policy: Retention) -> list[int]:
    """The numbers of the versions that the policy does not keep."""
    whole = [number for number, version in versions.items() if version is not None]
    kept = whole[-policy.versions :]
    gone = []
    for number in versions:
        # The next readable version; damaged versions in between were not published after it.
        successor = next((versions[other] for other in whole if other > number), None)
        if number in kept or successor is None:
            continue
        if _age(successor.created_at) > policy.replaced_within:
            gone.append(number)
    return gone


def _is_version_file(name: str) -> bool:
    return name.startswith(MANIFEST + CLAIM) or DRAFT.fullmatch(name) is not None


def _is_file_of_part(name: str) -> bool:
    return is_part_file(name) or name == LOCK


def _manifest_of(number: int) -> str:
    return f"{version_name(number)}/{MANIFEST}"


def _warn(message: str) -> None:
    warnings.warn(message, TamisWarning, stacklevel=3)


def _age(moment: str) -> timedelta:
    return datetime.now(UTC) - datetime.fromisoformat(moment)
