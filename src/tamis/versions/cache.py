"""Copies of parts on this machine, for storage that cannot be memory-mapped.

One directory serves all processes of one user. A copy appears and disappears in one step, so nobody
opens an incomplete one. Its files are compared with the version's checksums each time it is used;
a damaged copy is downloaded again. A process that has mapped a copy keeps its pages after eviction.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tamis import durable
from tamis.errors import IndexFormatError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.versions.manifest import Part
    from tamis.versions.storage import Storage

VARIABLE: Final = "TAMIS_CACHE_DIR"
SIZE_VARIABLE: Final = "TAMIS_CACHE_BYTES"
DEFAULT_BYTES: Final = 20 << 30
CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PartCache:
    """Copies of parts by name; the least recently used are evicted first."""

    directory: Path
    max_bytes: int = DEFAULT_BYTES

    @classmethod
    def default(cls) -> PartCache:
        """The cache that TAMIS_CACHE_DIR and TAMIS_CACHE_BYTES set; else in the home directory."""
        named = os.environ.get(VARIABLE)
        size = os.environ.get(SIZE_VARIABLE, str(DEFAULT_BYTES))
        if not size.isdecimal():
            raise InputError(f'{SIZE_VARIABLE} is "{size}"; a number of bytes is expected')
        return cls(Path(named) if named else _own_directory(), int(size))

    def fetch(self, storage: Storage, part: Part) -> Path:
        """The part's directory on this machine; downloads it if it is not there."""
        target = self.directory / part.id
        try:
            durable.make_private_directory(self.directory)
            if target.exists():
                if is_copy(target, part):
                    with suppress(OSError):
                        os.utime(target)  # it is now the most recently used
                    return target
                with suppress(FileNotFoundError):  # another process has evicted it
                    durable.remove_directory(target)
            durable.sweep(self.directory)
            self.evict(part.n_bytes)
            with suppress(FileExistsError), durable.new_directory(target) as draft:
                self._download(storage, part, draft)
        except durable.NotPrivateError as error:
            raise InputError(
                f"{self.directory} cannot hold copies of parts: {error.strerror}",
                hint=f"chmod 700 it if it is yours, or set {VARIABLE} to another directory",
            ) from None
        except OSError as error:
            raise InputError(
                f"{storage.where(part.folder)} cannot be copied to {self.directory}: {error}",
                hint=f"set {VARIABLE} to a directory with {part.n_bytes:,} free bytes",
            ) from None
        return target

    @staticmethod
    def _download(storage: Storage, part: Part, draft: Path) -> None:
        with suppress(FileNotFoundError):  # check_files reports the missing file
            storage.download(part.folder, draft, part.checksums)
        check_files(draft, part, part.checksums, storage.where(part.folder))

    def evict(self, n_wanted: int = 0) -> None:
        """Evict copies until there is room for this number of bytes."""
        copies = sorted(self._copies(), key=lambda copy: copy[0])
        n_bytes = sum(size for _, size, _ in copies) + n_wanted
        for _, size, path in copies:
            if n_bytes <= self.max_bytes:
                return
            with suppress(OSError):  # another process has evicted it
                durable.remove_directory(path)
                n_bytes -= size

    def _copies(self) -> list[tuple[float, int, Path]]:
        """(last use, bytes, path) of each copy."""
        found = []
        for path in self.directory.iterdir():
            if path.name.startswith("."):
                continue  # a draft that is being written
            with suppress(OSError):
                size = sum(file.stat().st_size for file in path.iterdir())
                found.append((path.stat().st_mtime, size, path))
        return found


def _own_directory() -> Path:
    """A directory in the user's home; if that cannot be written, one for this process alone.

    Never a well-known name in the temporary directory: anybody could put parts there.
    """
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    own = Path(home).expanduser() / "tamis" / "parts"
    try:
        durable.make_private_directory(own)
    except durable.NotPrivateError:
        return own  # `fetch` raises the error
    except OSError:
        return _temporary_directory(os.getpid())
    return own


@cache
def _temporary_directory(pid: int) -> Path:
    """A directory that is removed when the process ends."""
    parent = Path(tempfile.gettempdir())
    durable.sweep(parent)
    stack = ExitStack()
    directory = stack.enter_context(durable.draft_directory(parent, 0o700))
    atexit.register(lambda: stack.close() if os.getpid() == pid else None)
    return directory / "parts"


def is_copy(directory: Path, part: Part) -> bool:
    """Whether a directory holds the part, unchanged since it was published."""
    try:
        check_files(directory, part, part.checksums, str(directory))
    except IndexFormatError:
        return False
    return True


def check_files(directory: Path, part: Part, names: Iterable[str], where: str) -> None:
    """Raise an `IndexFormatError` if one of these files is missing or was changed."""
    for name in names:
        part.expect_file(name, _checksum(directory / name), where)


def _checksum(path: Path) -> int | None:
    """The CRC-32 of a file; None if there is no such file."""
    try:
        return durable.checksum(path)
    except OSError:
        return None
