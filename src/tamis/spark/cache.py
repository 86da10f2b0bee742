"""Copies of parts on this machine, for storage that cannot be memory-mapped.

One directory serves all processes of a user, and nobody else. A copy appears whole, and goes whole,
so nobody opens half of one; its files are compared with the version's checksums each time it is
handed out, and a copy that is not as it should be is fetched again. Whoever has mapped a copy keeps
its pages after it is evicted.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import zlib
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tamis import durable
from tamis.errors import IndexFormatError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.spark.manifest import Part
    from tamis.spark.storage import Storage

VARIABLE: Final = "TAMIS_CACHE_DIR"
SIZE_VARIABLE: Final = "TAMIS_CACHE_BYTES"
DEFAULT_BYTES: Final = 20 << 30
CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PartCache:
    """Parts by name, the least recently used evicted first."""

    directory: Path
    max_bytes: int = DEFAULT_BYTES

    @classmethod
    def default(cls) -> PartCache:
        """As TAMIS_CACHE_DIR and TAMIS_CACHE_BYTES say; else in the user's home directory."""
        named = os.environ.get(VARIABLE)
        size = os.environ.get(SIZE_VARIABLE, str(DEFAULT_BYTES))
        if not size.isdecimal():
            raise InputError(f'{SIZE_VARIABLE} is "{size}"; a number of bytes is allowed')
        return cls(Path(named) if named else _own_directory(), int(size))

    def fetch(self, storage: Storage, part: Part) -> Path:
        """The part's directory on this machine; downloaded if need be."""
        target = self.directory / part.id
        try:
            durable.make_private_directory(self.directory)
            if target.exists():
                if is_copy(target, part):
                    with suppress(OSError):
                        os.utime(target)  # used just now
                    return target
                with suppress(FileNotFoundError):  # somebody else has evicted it
                    durable.remove_directory(target)
            durable.sweep(self.directory)
            self.evict(part.n_bytes)
            with suppress(FileExistsError), durable.new_directory(target) as draft:
                self._download(storage, part, draft)
        except durable.NotPrivateError as error:
            raise InputError(
                f"{self.directory} cannot hold copies of parts: {error.strerror}",
                hint=f"chmod 700 it if it is yours, or name another directory in {VARIABLE}",
            ) from None
        except OSError as error:
            raise InputError(
                f"{storage.where(part.folder)} cannot be copied to {self.directory}: {error}",
                hint=f"name another directory in {VARIABLE}, with {part.n_bytes:,} free bytes",
            ) from None
        return target

    @staticmethod
    def _download(storage: Storage, part: Part, draft: Path) -> None:
        with suppress(FileNotFoundError):  # what is not there is not as it should be
            storage.download(part.folder, draft, part.checksums)
        check_files(draft, part, part.checksums, storage.where(part.folder))

    def evict(self, n_wanted: int = 0) -> None:
        """Make room for so many bytes more."""
        copies = sorted(self._copies(), key=lambda copy: copy[0])
        n_bytes = sum(size for _, size, _ in copies) + n_wanted
        for _, size, path in copies:
            if n_bytes <= self.max_bytes:
                return
            with suppress(OSError):  # somebody else was faster
                durable.remove_directory(path)
                n_bytes -= size

    def _copies(self) -> list[tuple[float, int, Path]]:
        """(last use, bytes, path) of all copies that are here."""
        found = []
        for path in self.directory.iterdir():
            if path.name.startswith("."):
                continue  # somebody is at it
            with suppress(OSError):
                size = sum(file.stat().st_size for file in path.iterdir())
                found.append((path.stat().st_mtime, size, path))
        return found


def _own_directory() -> Path:
    """In the user's home directory; where there is none to write to, one for this process alone.

    Not a name in the temporary directory that everybody knows: anybody could put parts there.
    """
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    own = Path(home).expanduser() / "tamis" / "parts"
    try:
        durable.make_private_directory(own)
    except durable.NotPrivateError:
        return own  # to be refused with a reason
    except OSError:
        return _temporary_directory(os.getpid())
    return own


@cache
def _temporary_directory(pid: int) -> Path:
    """A directory that goes with the process."""
    parent = Path(tempfile.gettempdir())
    durable.sweep(parent)
    stack = ExitStack()
    directory = stack.enter_context(durable.draft_directory(parent, 0o700))
    atexit.register(lambda: stack.close() if os.getpid() == pid else None)
    return directory / "parts"


def is_copy(directory: Path, part: Part) -> bool:
    """Whether a directory holds the part as it was published."""
    try:
        check_files(directory, part, part.checksums, str(directory))
    except IndexFormatError:
        return False
    return True


def check_files(directory: Path, part: Part, names: Iterable[str], where: str) -> None:
    """Refuse a directory in which one of these files is not as it was published."""
    for name in names:
        part.expect_file(name, _checksum(directory / name), where)


def _checksum(path: Path) -> int | None:
    """The CRC-32 of a file; None where there is no such file."""
    checksum = 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                checksum = zlib.crc32(chunk, checksum)
    except OSError:
        return None
    return checksum
