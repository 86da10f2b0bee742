"""Durable files: written atomically, locked, and cleaned up after crashed writers.

A *draft* is a file or a directory that is not yet at its final path. Its name matches a pattern,
and its writer holds a lock on it, which the kernel releases when the writer ends for any reason. So
a draft without a lock is a leftover, and `sweep` removes it. Locks are those of `flock`: advisory,
and visible to all processes of this machine; on NFS, to all machines.

Every function raises OSError when an operation of the file system fails.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOCK: Final = ".tamis.lock"
DRAFT: Final = re.compile(r"\.tamis-[0-9a-f]{16}\.draft")
_PIECE: Final = 1 << 20  # bytes read at a time

_OPEN_LOCK: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_BUSY: Final = (errno.EAGAIN, errno.EACCES)
_held: set[int] = set()  # descriptors whose locks this process holds


class NotPrivateError(PermissionError):
    """A directory that must be private to this user is not."""


# ── files ───────────────────────────────────────────────────────────────────────────────────


def replace_file(path: Path, chunks: Iterable[Any]) -> None:
    """Write or replace a file, atomically and durably."""
    with replacing(path) as file:
        for chunk in chunks:
            file.write(chunk)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which replaces the one at `path` afterwards, atomically and durably."""
    with _draft_file(path.parent) as (draft, file):
        yield file
        _sync(file)
        os.replace(draft, path)
        sync_directory(path.parent)


def create_file(path: Path, chunks: Iterable[Any], *, mode: int = 0o666) -> bool:
    """Write a file unless it exists; returns whether it was written. Of concurrent writers one
    succeeds. The process's umask applies to the mode.
    """
    with _draft_file(path.parent, mode) as (draft, file):
        for chunk in chunks:
            file.write(chunk)
        _sync(file)
        try:
            os.link(draft, path)  # the name appears together with the contents
        except FileExistsError:
            return False
        sync_directory(path.parent)
        return True


@contextmanager
def _draft_file(directory: Path, mode: int = 0o666) -> Iterator[tuple[Path, BinaryIO]]:
    """A locked file to write to; removed afterwards unless it was moved."""
    draft, descriptor = _make_draft_file(directory, mode)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            yield draft, file
    finally:
        draft.unlink(missing_ok=True)
        _release(descriptor)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _make_draft_file(directory: Path, mode: int) -> tuple[Path, int]:
    while True:
        draft = directory / _draft_name()
        descriptor = os.open(draft, _OPEN_LOCK | os.O_CREAT | os.O_EXCL, mode)
        # Another process may have removed it before it was locked.
        if _lock(descriptor) is not False and os.fstat(descriptor).st_nlink:
            _held.add(descriptor)
            return draft, descriptor
        os.close(descriptor)


# ── directories ─────────────────────────────────────────────────────────────────────────────


def sync_directory(directory: Path) -> None:
    """Flush the names in a directory to disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checksum(path: Path) -> int:
    """The CRC-32 of a file, which is read piece by piece."""
    found = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found = zlib.crc32(piece, found)
    return found


def make_directory(path: Path) -> None:
    """Make a directory and its parents durably; existing ones stay as they are."""
    if path.is_dir():
        return
    make_directory(path.parent)
    try:
        path.mkdir()
    except FileExistsError:
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
    sync_directory(path.parent)


def make_private_directory(path: Path) -> None:
    """Make a directory that only this user can read and write, and verify it.

    Raises NotPrivateError if another user owns it or has access, or if it is a symbolic link.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotPrivateError(errno.EPERM, "it is a file or a symbolic link", str(path))
    if found.st_uid != os.geteuid():
        raise NotPrivateError(errno.EPERM, "it belongs to another user", str(path))
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise NotPrivateError(errno.EPERM, "other users have access to it", str(path))


@contextmanager
def draft_directory(parent: Path, mode: int = 0o777) -> Iterator[Path]:
    """A new, empty, locked directory, removed afterwards."""
    draft, descriptor = _make_draft_directory(parent, mode)
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        _release(descriptor)


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """A directory to write files into, moved to `target` durably when all files are written.

    Raises FileExistsError if the target exists by then. The target is locked, as by `locked`, until
    this returns.
    """
    with draft_directory(target.parent) as draft:
        yield draft
        sync_directory(draft)
        _rename_new(draft, target)
        try:
            sync_directory(target.parent)
        except BaseException:
            target.rename(draft)
            raise
        # Errors are ignored from here on: at worst an empty file remains.
        with suppress(OSError):
            (target / LOCK).unlink()


def remove_directory(path: Path) -> None:
    """Remove a directory; other processes see all of it or nothing."""
    grave = path.with_name(_draft_name())
    path.rename(grave)
    shutil.rmtree(grave, ignore_errors=True)


def _rename_new(draft: Path, target: Path) -> None:
    try:
        draft.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        raise


def _make_draft_directory(parent: Path, mode: int) -> tuple[Path, int]:
    while True:
        draft = parent / _draft_name()
        draft.mkdir(mode)
        # Another process may remove it before it is locked.
        with suppress(FileNotFoundError):
            descriptor = _acquire(draft / LOCK, waits=False)
            if descriptor is not None:
                return draft, descriptor


def _draft_name() -> str:
    return f".tamis-{secrets.token_hex(8)}.draft"


# ── locks ───────────────────────────────────────────────────────────────────────────────────


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the write lock of a directory; waits until other holders release it.

    The lock is released when the process ends, also when it is killed.
    """
    descriptor = _acquire(directory / LOCK, waits=True)
    assert descriptor is not None
    try:
        yield
    finally:
        with suppress(OSError):
            (directory / LOCK).unlink()
        _release(descriptor)


def try_lock(path: Path) -> int | None:
    """Hold the lock of a file until `unlock`, or until this process ends; None if another does.

    The number identifies the lock to `unlock`. The process id of the holder is in the file.
    """
    descriptor = os.open(path, _OPEN_LOCK | os.O_CREAT, 0o666)
    is_held = _lock(descriptor)
    if not is_held:
        os.close(descriptor)
        if is_held is None:
            raise OSError(errno.ENOLCK, "the file system does not support locks", str(path))
        return None
    _held.add(descriptor)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    return descriptor


def unlock(descriptor: int) -> None:
    """Release a lock of `try_lock`; its file stays."""
    _release(descriptor)


def _acquire(path: Path, *, waits: bool) -> int | None:
    """Hold the lock of that name; None if another process holds it and `waits` is false."""
    while True:
        descriptor = os.open(path, _OPEN_LOCK | os.O_CREAT, 0o666)
        try:
            is_held = _lock(descriptor, waits=waits)
            if is_held is None and waits:
                path.unlink(missing_ok=True)
                raise OSError(errno.ENOLCK, "the file system does not support locks", str(path))
            # The previous holder removed the file: another process would create and lock a new one.
            is_same = is_held is not False and _is_at(descriptor, path)
        except BaseException:
            os.close(descriptor)
            raise
        if is_same:
            _held.add(descriptor)
            return descriptor
        os.close(descriptor)
        if is_held is False:
            return None


def _lock(descriptor: int, *, waits: bool = False) -> bool | None:
    """Whether this process now holds the lock of the file; None if the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except OSError as error:
        return False if error.errno in _BUSY else None
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _release(descriptor: int) -> None:
    if descriptor in _held:  # not in a forked child of the process that held it
        _held.discard(descriptor)
        os.close(descriptor)


def _forget_locks() -> None:
    # A forked child shares its parent's locks and would hold them if it lived longer.
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_forget_locks)


# ── leftovers ───────────────────────────────────────────────────────────────────────────────


def sweep(directory: Path) -> None:
    """Remove the drafts of dead writers, as far as possible."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if DRAFT.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_dead(Path(entry.path))


def _remove_if_dead(draft: Path) -> None:
    found = draft.lstat()
    if found.st_uid != os.geteuid():
        return  # its lock, if any, may be any file
    is_directory = stat.S_ISDIR(found.st_mode)
    lock = draft / LOCK if is_directory else draft
    descriptor = os.open(lock, _OPEN_LOCK | (os.O_CREAT if is_directory else 0), 0o666)
    try:
        # Without locks one cannot tell which writers are dead. Another sweeper may have removed
        # this lock before it was acquired, and a writer may hold a new one of that name.
        if not _lock(descriptor) or not _is_at(descriptor, lock):
            return
        if is_directory:
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink()
    finally:
        os.close(descriptor)
