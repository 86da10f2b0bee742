"""The storage of versions: a folder on any file system that Arrow supports.

Local and mounted paths, HDFS, S3 and other object stores are used in the same way. A file system
must write whole objects, list and delete; directories are never renamed.
"""

from __future__ import annotations

import os
import random
import secrets
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import fs

from tamis import durable
from tamis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# An older claim belongs to a dead writer: a live one writes a few kilobytes within this time.
CLAIM_SECONDS: Final = 60.0
CLAIM_ATTEMPTS: Final = 50
CLAIM: Final = ".claim-"
CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    """An object or a folder that was listed."""

    name: str  # below the storage's root
    is_folder: bool
    bytes: int
    changed_at: datetime


class Storage:
    """A folder by its path or URI; pickling keeps only that."""

    def __init__(self, uri: str | os.PathLike[str]) -> None:
        if not isinstance(uri, str | os.PathLike):
            raise InputError(
                f"the place of an index is a {type(uri).__name__}; a path or a URI is expected",
                hint="have arguments been swapped? the subscriptions or events come first",
            )
        self.uri = os.fspath(uri)
        if not self.uri:
            raise InputError("the path of the storage is empty", hint='"." is this folder')
        try:
            if "://" in self.uri:
                # Hadoop calls S3 s3a; Arrow calls it s3.
                uri = f"s3{self.uri[3:]}" if self.uri.startswith("s3a://") else self.uri
                self._fs, path = fs.FileSystem.from_uri(uri)
            else:
                self._fs, path = fs.LocalFileSystem(), str(Path(self.uri).absolute())
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(
                f"{self.uri} cannot be used as storage: {reason}",
                hint="use a path, or a URI that Arrow supports: file, hdfs, s3, gs, abfs",
            ) from None
        self._path = path.rstrip("/")
        self.is_local = isinstance(self._fs, fs.LocalFileSystem)

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker may have another working directory.
        return Storage, (self.uri if "://" in self.uri else self._path,)

    def __repr__(self) -> str:
        return f"Storage({self.uri!r})"

    def where(self, name: str) -> str:
        """The object's address, for messages."""
        return f"{self.uri.partition('?')[0].rstrip('/')}/{name}"

    @property
    def address(self) -> str:
        """The absolute path or the URI, without its options: for messages, and as a name."""
        return self.uri.partition("?")[0] if "://" in self.uri else self._path

    def local_path(self, name: str) -> Path:
        """The object's place on this machine; only where `is_local`."""
        return Path(self._path, name)

    # ── objects ────────────────────────────────────────────────────────────────────────────

    def read(self, name: str) -> bytes | None:
        """The object's contents; None if there is no such object."""
        chunks: list[bytes] = []
        return b"".join(chunks) if self._read_into(name, chunks.append) else None

    def read_head(self, name: str, n_bytes: int) -> bytes:
        """The first bytes of the object; an empty name is the storage's path, if that is a file."""
        path = f"{self._path}/{name}" if name else self._path
        with self._fs.open_input_stream(path) as stream:
            return bytes(stream.read(n_bytes))

    def checksum(self, name: str) -> int | None:
        """The CRC-32 of the object's contents; None if there is no such object."""
        checksum = 0

        def add(chunk: bytes) -> None:
            nonlocal checksum
            checksum = zlib.crc32(chunk, checksum)

        return checksum if self._read_into(name, add) else None

    def _read_into(self, name: str, take: Callable[[bytes], None]) -> bool:
        """Pass the object's contents to `take`, piece by piece; False if there is no object."""
        try:
            with self._fs.open_input_stream(f"{self._path}/{name}") as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    take(chunk)
                return True
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            raise self._no_folder() from None
        except OSError as error:
            if self._info(name).type == fs.FileType.Directory:
                return False
            raise InputError(f"cannot read {self.where(name)}: {error}") from None

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""
        return bool(self._info(name).type == fs.FileType.File)

    def write(self, name: str, content: bytes) -> None:
        """Write the object atomically: a reader sees the old contents or the new ones."""
        try:
            if self.is_local:
                durable.replace_file(self._prepare(name), [content])
            else:
                with self._fs.open_output_stream(f"{self._path}/{name}") as stream:
                    stream.write(content)
        except OSError as error:
            raise InputError(f"cannot write {self.where(name)}: {error}") from None

    def create(self, name: str, content: bytes) -> bool:
        """Create the object; False if it exists. Of several writers, exactly one succeeds."""
        try:
            if self.is_local:
                return durable.create_file(self._prepare(name), [content])
            return self._create_by_claim(name, content)
        except OSError as error:
            raise InputError(f"cannot write {self.where(name)}: {error}") from None

    def _prepare(self, name: str) -> Path:
        """The path of a local file, whose folder is made and freed of leftovers."""
        path = self.local_path(name)
        durable.make_directory(path.parent)
        durable.sweep(path.parent)
        return path

    def delete(self, name: str) -> None:
        """Remove the object or the folder, if it is there."""
        path = f"{self._path}/{name}"
        try:
            kind = self._info(name).type
            if kind == fs.FileType.File:
                self._fs.delete_file(path)
            elif kind == fs.FileType.Directory:
                self._fs.delete_dir(path)
        except FileNotFoundError:
            pass  # another process has deleted it
        except OSError as error:
            raise InputError(f"cannot delete {self.where(name)}: {error}") from None

    # ── folders ────────────────────────────────────────────────────────────────────────────

    def sweep(self, folder: str = "") -> None:
        """Remove drafts that killed writers left in a local folder."""
        if self.is_local:
            durable.sweep(self.local_path(folder))

    def delete_own(self, folder: str, first: str, is_own: Callable[[str], bool]) -> None:
        """Remove the file `first` of a folder, then the others for which `is_own` is true, then the
        folder if it is empty."""
        self.delete(f"{folder}/{first}")
        for stored in self.list(folder):
            if not stored.is_folder and is_own(stored.name.rpartition("/")[2]):
                self.delete(stored.name)
        if self.is_local:
            with suppress(OSError):  # it holds a foreign file
                self.local_path(folder).rmdir()
        elif not self.list(folder):
            self.delete(folder)

    def list(self, folder: str = "", *, deep: bool = False) -> list[Stored]:
        """The objects and folders in a folder; empty if there is no such folder."""
        path = f"{self._path}/{folder}" if folder else self._path
        selector = fs.FileSelector(path, allow_not_found=True, recursive=deep)
        try:
            infos = self._fs.get_file_info(selector)
        except NotADirectoryError:
            raise self._no_folder() from None
        except OSError as error:
            raise InputError(f"cannot list {self.where(folder)}: {error}") from None
        prefix = self._path.lstrip("/") + "/"
        return [
            Stored(
                info.path.lstrip("/").removeprefix(prefix),
                info.type == fs.FileType.Directory,
                info.size or 0,
                info.mtime or datetime.fromtimestamp(0, UTC),
            )
            for info in infos
        ]

    def upload(self, source: Path, folder: str, names: Iterable[str]) -> None:
        """Copy files of a local directory, one after the other."""
        target = f"{self._path}/{folder}"
        try:
            self._fs.create_dir(target)
            for name in names:
                fs.copy_files(
                    str(source / name),
                    f"{target}/{name}",
                    source_filesystem=fs.LocalFileSystem(),
                    destination_filesystem=self._fs,
                )
        except OSError as error:
            raise InputError(f"cannot write {self.where(folder)}: {error}") from None

    def download(self, folder: str, target: Path, names: Iterable[str]) -> None:
        """Copy files of a folder into a local directory."""
        for name in names:
            fs.copy_files(
                f"{self._path}/{folder}/{name}",
                str(target / name),
                source_filesystem=self._fs,
                destination_filesystem=fs.LocalFileSystem(),
            )

    def _no_folder(self) -> InputError:
        return InputError(f"{self.uri} is a file; a folder is expected")

    # ── create-if-absent for stores without it ─────────────────────────────────────────────

    def _create_by_claim(self, name: str, content: bytes) -> bool:
        """Create by claims, for stores that can only write, list and delete.

        A writer writes a claim next to the object, then lists the claims. If there is no other, it
        writes the object and only then deletes its claim; otherwise it deletes its claim and tries
        again. Of two writers, the second to write its claim sees the other's claim or the object.
        """
        for attempt in range(CLAIM_ATTEMPTS):
            claim = f"{name}{CLAIM}{secrets.token_hex(8)}"
            started = time.monotonic()
            self.write(claim, b"")
            try:
                is_alone = self._is_alone(name, claim)
                if self.exists(name):
                    return False
                if is_alone and time.monotonic() - started < CLAIM_SECONDS / 2:
                    self.write(name, content)
                    return True
            finally:
                self.delete(claim)
            time.sleep(random.uniform(0, 0.05 * min(attempt + 1, 20)))
        raise InputError(
            f"{self.where(name)} is being written by too many other processes",
            hint="try again later",
        )

    def _is_alone(self, name: str, claim: str) -> bool:
        folder, _, base = name.rpartition("/")
        claims = [
            stored
            for stored in self.list(folder)
            if stored.name.rpartition("/")[2].startswith(base + CLAIM)
        ]
        # Ages by the store's clock: the machines' clocks may differ.
        now = max((stored.changed_at for stored in claims if stored.name == claim), default=None)
        others = [stored for stored in claims if stored.name != claim]
        for stored in others.copy():
            if now is not None and (now - stored.changed_at).total_seconds() > CLAIM_SECONDS:
                self.delete(stored.name)
                others.remove(stored)
        return not others

    def _info(self, name: str) -> Any:
        try:
            return self._fs.get_file_info(f"{self._path}/{name}")
        except OSError as error:
            raise InputError(f"cannot access {self.where(name)}: {error}") from None
