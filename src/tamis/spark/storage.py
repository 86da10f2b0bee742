"""Where versions of an index live: a folder on any file system that Arrow knows.

Local and mounted paths, HDFS, S3 and the like are used alike and asked for little: to write a whole
object, to list, to delete. Nothing relies on renaming directories.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import fs

from tamis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

# A claim older than this is a dead writer's. A live one writes a few kilobytes within it.
CLAIM_SECONDS: Final = 60.0
CLAIM_ATTEMPTS: Final = 50
CLAIM: Final = ".claim-"


@dataclass(frozen=True, slots=True)
class Stored:
    """An object or a folder that was listed."""

    name: str  # below the storage's root
    is_folder: bool
    bytes: int
    changed_at: datetime


class Storage:
    """A folder by its path or URI; it travels to other processes by that alone."""

    def __init__(self, uri: str | os.PathLike[str]) -> None:
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
                hint="a path, or a URI that Arrow knows: file, hdfs, s3, gs, abfs",
            ) from None
        self._path = path.rstrip("/")
        self.is_local = isinstance(self._fs, fs.LocalFileSystem)

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker may have another working directory.
        return Storage, (self.uri if "://" in self.uri else self._path,)

    def __repr__(self) -> str:
        return f"Storage({self.uri!r})"

    def where(self, name: str) -> str:
        """The object's address, for people."""
        return f"{self.uri.partition('?')[0].rstrip('/')}/{name}"

    def local_path(self, name: str) -> Path:
        """The object's place on this machine; only where `is_local`."""
        return Path(self._path, name)

    # ── objects ────────────────────────────────────────────────────────────────────────────

    def read(self, name: str) -> bytes | None:
        """The object's contents; None where there is no such object."""
        try:
            with self._fs.open_input_stream(f"{self._path}/{name}") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise self._no_folder() from None
        except OSError as error:
            raise InputError(f"cannot read {self.where(name)}: {error}") from None

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""
        return bool(self._info(name).type == fs.FileType.File)

    def write(self, name: str, content: bytes) -> None:
        """Make the object have these contents; a reader sees the old ones or the new ones."""
        try:
            if self.is_local:
                _replace_file(self.local_path(name), content)
            else:
                with self._fs.open_output_stream(f"{self._path}/{name}") as stream:
                    stream.write(content)
        except OSError as error:
            raise InputError(f"cannot write {self.where(name)}: {error}") from None

    def create(self, name: str, content: bytes) -> bool:
        """Make the object unless it exists; False if it does. Of many writers one succeeds."""
        try:
            if self.is_local:
                return _link_file(self.local_path(name), content)
            return self._create_by_claim(name, content)
        except OSError as error:
            raise InputError(f"cannot write {self.where(name)}: {error}") from None

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
            pass  # somebody else did
        except OSError as error:
            raise InputError(f"cannot delete {self.where(name)}: {error}") from None

    # ── folders ────────────────────────────────────────────────────────────────────────────

    def list(self, folder: str = "", *, deep: bool = False) -> list[Stored]:
        """What is in a folder; nothing if there is no such folder."""
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

    def upload(self, source: Path, folder: str, last: str) -> None:
        """Copy the files of a local directory; `last` after all others, so it vouches for them."""
        target = f"{self._path}/{folder}"
        try:
            self._fs.create_dir(target)
            for file in _in_order(source, last):
                fs.copy_files(
                    str(file),
                    f"{target}/{file.name}",
                    source_filesystem=fs.LocalFileSystem(),
                    destination_filesystem=self._fs,
                )
        except OSError as error:
            raise InputError(f"cannot write {self.where(folder)}: {error}") from None

    def download(self, folder: str, target: Path) -> None:
        """Copy the files of a folder into a local directory, which is made."""
        target.mkdir(parents=True)
        files = [stored for stored in self.list(folder) if not stored.is_folder]
        if not files:
            raise InputError(f"{self.where(folder)} is not there")
        for stored in files:
            fs.copy_files(
                f"{self._path}/{stored.name}",
                str(target / stored.name.rpartition("/")[2]),
                source_filesystem=self._fs,
                destination_filesystem=fs.LocalFileSystem(),
            )

    def _no_folder(self) -> InputError:
        return InputError(f"{self.uri} is a file; a folder is expected")

    # ── create-if-absent where the file system has none ────────────────────────────────────

    def _create_by_claim(self, name: str, content: bytes) -> bool:
        """Create by claims, for stores that can only write, list and delete.

        A writer puts a claim of its own beside the object, then lists. Alone, it writes the object
        and only then takes its claim away; not alone, it withdraws and tries again. Of two writers,
        the one whose claim came second sees the first one's claim, or else the object.
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
            f"{self.where(name)} is being written by too many others", hint="try again later"
        )

    def _is_alone(self, name: str, claim: str) -> bool:
        folder, _, base = name.rpartition("/")
        claims = [
            stored
            for stored in self.list(folder)
            if stored.name.rpartition("/")[2].startswith(base + CLAIM)
        ]
        # Ages by the store's own clock: the machines' clocks may differ.
        now = max((stored.changed_at for stored in claims if stored.name == claim), default=None)
        return all(
            stored.name == claim
            or (now is not None and (now - stored.changed_at).total_seconds() > CLAIM_SECONDS)
            for stored in claims
        )

    def _info(self, name: str) -> Any:
        try:
            return self._fs.get_file_info(f"{self._path}/{name}")
        except OSError as error:
            raise InputError(f"cannot look at {self.where(name)}: {error}") from None


# ── local files ─────────────────────────────────────────────────────────────────────────────


def _replace_file(path: Path, content: bytes) -> None:
    draft = _write_draft(path, content)
    try:
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _link_file(path: Path, content: bytes) -> bool:
    """A link to a finished draft: the name appears with its contents, or was taken before."""
    draft = _write_draft(path, content)
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    else:
        return True
    finally:
        draft.unlink()


def _write_draft(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return draft


def _in_order(source: Path, last: str) -> Iterator[Path]:
    files = sorted(source.iterdir())
    yield from (file for file in files if file.name != last)
    yield source / last
