"""Copies of parts on this machine, for storage that cannot be memory-mapped.

One directory serves all processes of a user. A copy appears whole, by renaming a local directory;
it goes the same way, so nobody opens half of one. Whoever has mapped a copy keeps its pages after
it is evicted.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tamis.errors import IndexFormatError, InputError

if TYPE_CHECKING:
    from tamis.spark.manifest import Part
    from tamis.spark.storage import Storage

VARIABLE: Final = "TAMIS_CACHE_DIR"
SIZE_VARIABLE: Final = "TAMIS_CACHE_BYTES"
DEFAULT_BYTES: Final = 20 << 30
ABANDONED_SECONDS: Final = 3600.0  # a download that has not moved for so long is dead
MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class PartCache:
    """Parts by name, the least recently used evicted first."""

    directory: Path
    max_bytes: int = DEFAULT_BYTES

    @classmethod
    def default(cls) -> PartCache:
        """As TAMIS_CACHE_DIR and TAMIS_CACHE_BYTES say; else a temporary one of the user's own."""
        named = os.environ.get(VARIABLE)
        own = Path(tempfile.gettempdir(), f"tamis-parts-{os.getuid()}")
        size = os.environ.get(SIZE_VARIABLE, str(DEFAULT_BYTES))
        if not size.isdecimal():
            raise InputError(f'{SIZE_VARIABLE} is "{size}"; a number of bytes is allowed')
        return cls(Path(named) if named else own, int(size))

    def fetch(self, storage: Storage, part: Part) -> Path:
        """The part's directory on this machine; downloaded if need be."""
        target = self.directory / part.id
        if (target / MANIFEST).exists():
            with suppress(OSError):
                os.utime(target)  # used just now
            return target
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.evict(part.n_bytes)
        draft = self.directory / f".{part.id}.{secrets.token_hex(4)}"
        try:
            storage.download(part.folder, draft)
            check_manifest(draft, part)
            self._place(draft, target)
        except OSError as error:
            raise InputError(
                f"{storage.where(part.folder)} cannot be copied to {self.directory}: {error}",
                hint=f"name another directory in {VARIABLE}, with {part.n_bytes:,} free bytes",
            ) from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return target

    def evict(self, n_wanted: int = 0) -> None:
        """Make room for so many bytes more."""
        copies = sorted(self._copies(), key=lambda copy: copy[0])
        n_bytes = sum(size for _, size, _ in copies) + n_wanted
        for used_at, size, path in copies:
            is_abandoned = path.name.startswith(".") and time.time() - used_at > ABANDONED_SECONDS
            if n_bytes <= self.max_bytes and not is_abandoned:
                continue
            if path.name.startswith(".") and not is_abandoned:
                continue  # somebody is at it
            grave = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
            with suppress(OSError):  # somebody else was faster
                path.rename(grave)
                n_bytes -= size
            shutil.rmtree(grave, ignore_errors=True)

    @staticmethod
    def _place(draft: Path, target: Path) -> None:
        try:
            draft.rename(target)
        except OSError:
            if not (target / MANIFEST).exists():  # else another process has just placed it
                raise

    def _copies(self) -> list[tuple[float, int, Path]]:
        """(last use, bytes, path) of all that is here."""
        found = []
        for path in self.directory.iterdir():
            with suppress(OSError):
                size = sum(file.stat().st_size for file in path.iterdir())
                found.append((path.stat().st_mtime, size, path))
        return found


def check_manifest(directory: Path, part: Part) -> None:
    """Refuse a directory that does not hold what the version says."""
    try:
        content = (directory / MANIFEST).read_bytes()
    except OSError:
        raise IndexFormatError(
            f"part {part.id} has no {MANIFEST}: it is incomplete, or its version was pruned",
            hint="use the current version, or build the index anew",
        ) from None
    if zlib.crc32(content) != part.manifest_crc32:
        raise IndexFormatError(
            f"{directory / MANIFEST} is not the one that the version was published with",
            hint="build the index anew, or use an older version",
        )
