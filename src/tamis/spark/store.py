"""Versions of one index on storage: opened, published, pruned.

    <root>/CURRENT                     the newest version's number, replaced whole
    <root>/v00000012/manifest.json     made once, if absent; never changed
    <root>/parts/<unique name>/…       artefacts, written before any manifest names them

The truth is the highest manifest there is; CURRENT spares readers the listing. A part is never
changed, so whoever has opened a version keeps it whatever is published meanwhile.
"""

from __future__ import annotations

import itertools
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from tamis.errors import IndexFormatError, InputError
from tamis.spark.manifest import Version, read_version, version_name
from tamis.spark.storage import Storage

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

CURRENT: Final = "CURRENT"
PARTS: Final = "parts"
ARTEFACT_MANIFEST: Final = "manifest.json"
PUBLISH_ATTEMPTS: Final = 100
_VERSION: Final = re.compile(r"v(\d{8,})")


@dataclass(frozen=True, slots=True)
class Retention:
    """Which versions are kept: the newest ones, and those that were replaced only lately.

    Parts of no version are leftovers of builders that died, or the work of builders that are still
    at it: they stay for a while too.
    """

    versions: int = 3
    replaced_within: timedelta = timedelta(days=1)
    leftovers_for: timedelta = timedelta(days=1)

    def __post_init__(self) -> None:
        if self.versions < 1:
            raise InputError(f"{self.versions} versions cannot be kept; at least 1")


class IndexStore:
    """The versions of one index."""

    def __init__(self, root: str | os.PathLike[str] | Storage) -> None:
        self.storage = root if isinstance(root, Storage) else Storage(root)

    @property
    def uri(self) -> str:
        """The root, as it was given."""
        return self.storage.uri

    # ── reading ────────────────────────────────────────────────────────────────────────────

    def current(self) -> Version:
        """The newest published version."""
        number = self._read_current() or max(self.numbers(), default=None)
        if number is None:
            self.expect_versions()
            raise IndexFormatError(
                f"{self.uri} holds no version of an index", hint="build one: tamis spark build"
            )
        return self.version(number)

    def current_or_none(self) -> Version | None:
        """The newest version there is, published or about to be; None before the first."""
        newest = max(self.numbers(), default=None)
        return None if newest is None else self.version(newest)

    def newest_whole(self) -> Version | None:
        """The newest version whose manifest is not damaged; None if there is none."""
        for number in reversed(self.numbers()):
            with suppress(IndexFormatError):
                return self.version(number)
        return None

    def expect_versions(self) -> None:
        """Refuse a folder in which versions would not be found."""
        if self.storage.exists(ARTEFACT_MANIFEST):
            raise InputError(
                f"{self.uri} is one saved index, without versions",
                hint="build versions in a folder of their own: tamis spark build",
            )

    def version(self, which: int | str) -> Version:
        """One version, by number or name."""
        name = version_name(which) if isinstance(which, int) else which
        path = f"{name}/{ARTEFACT_MANIFEST}"
        content = self.storage.read(path) if _VERSION.fullmatch(name) else None
        if content is None:
            known = ", ".join(version_name(number) for number in self.numbers()[-5:])
            raise IndexFormatError(
                f'{self.uri} has no version "{name}"',
                hint=f"there are: {known}; older ones were pruned" if known else "it is empty",
            )
        return read_version(content, self.storage.where(path))

    def numbers(self) -> list[int]:
        """The numbers of all versions, rising."""
        found = (_VERSION.fullmatch(each.name) for each in self.storage.list() if each.is_folder)
        numbers = sorted(int(match[1]) for match in found if match)
        # A folder without a manifest is a version that was never finished, or is being pruned.
        return [n for n in numbers if self.storage.exists(f"{version_name(n)}/{ARTEFACT_MANIFEST}")]

    def _read_current(self) -> int | None:
        """What CURRENT says; None where it says nothing that can be read."""
        content = self.storage.read(CURRENT)
        with suppress(ValueError, TypeError, KeyError):
            number = json.loads(content or b"")["version"]
            if isinstance(number, int) and self.storage.exists(
                f"{version_name(number)}/{ARTEFACT_MANIFEST}"
            ):
                return number
        return None

    # ── publishing ─────────────────────────────────────────────────────────────────────────

    def publish(
        self, derive: Callable[[Version | None], Version], *, is_afresh: bool = False
    ) -> Version:
        """Make the version that `derive` makes of the newest one the next, and CURRENT.

        If somebody else publishes meanwhile, `derive` is called again with theirs, so nobody's
        change is lost. What is made afresh mends a store whose newest version is damaged.
        """
        for _ in range(PUBLISH_ATTEMPTS):
            number = max(self.numbers(), default=0) + 1
            newest = self.newest_whole() if is_afresh else self.current_or_none()
            version = derive(newest).numbered(number)
            self._expect_parts(version)
            if self.storage.create(f"{version.name}/{ARTEFACT_MANIFEST}", version.to_bytes()):
                self._settle()
                return version
        raise InputError(f"{self.uri}: too many others publish at the same time")

    def _settle(self) -> None:
        """Let CURRENT name the newest version: also when two publishers overtake each other, as
        each looks again after it has written."""
        written = None
        while (newest := max(self.numbers(), default=None)) is not None and newest != written:
            body = {"version": newest, "name": version_name(newest)}
            self.storage.write(CURRENT, json.dumps(body).encode())
            written = newest

    def roll_back(self, which: int | str) -> Version:
        """Publish an older version's parts again, as the newest version."""
        older = self.version(which)
        return self.publish(lambda _: older)

    def _expect_parts(self, version: Version) -> None:
        for part in version.parts:
            if not self.storage.exists(f"{part.folder}/{ARTEFACT_MANIFEST}"):
                raise IndexFormatError(
                    f"{self.storage.where(part.folder)} is missing: nothing is published",
                    hint="build the index anew; parts are pruned when no version names them",
                )

    # ── pruning ────────────────────────────────────────────────────────────────────────────

    def prune(self, retention: Retention | None = None) -> list[str]:
        """Delete what the policy does not keep: versions, then parts that no version names.

        Returns what was deleted. A version goes by its manifest, so no reader sees half of one.
        """
        policy = retention or Retention()
        versions = [self.version(number) for number in self.numbers()]
        gone = [
            version
            for version, successor in itertools.pairwise(versions)
            if version not in versions[-policy.versions :]
            and _age(successor.created_at) > policy.replaced_within
        ]
        for version in gone:
            self.storage.delete(f"{version.name}/{ARTEFACT_MANIFEST}")
            self.storage.delete(version.name)
        # Asked again: somebody may have published meanwhile.
        named = {part.folder for n in self.numbers() for part in self.version(n).parts}
        orphaned = {part.folder for version in gone for part in version.parts}
        dead = [
            folder
            for folder, changed_at in self._part_ages().items()
            if folder not in named
            and (folder in orphaned or datetime.now(UTC) - changed_at > policy.leftovers_for)
        ]
        for folder in dead:
            self.storage.delete(f"{folder}/{ARTEFACT_MANIFEST}")
            self.storage.delete(folder)
        return [version.name for version in gone] + dead

    def _part_ages(self) -> dict[str, datetime]:
        """When something was last written into each part's folder."""
        ages: dict[str, datetime] = {}
        for stored in self.storage.list(PARTS, deep=True):
            folder = "/".join(stored.name.split("/")[:2])
            ages[folder] = max(ages.get(folder, stored.changed_at), stored.changed_at)
        return ages


def _age(moment: str) -> timedelta:
    return datetime.now(UTC) - datetime.fromisoformat(moment)
