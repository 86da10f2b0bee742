"""Files that outlast the process and the power: written whole, locked, cleaned up after the dead.

A *draft* is a file or a directory on its way to its place. Its name is recognisable, and its writer
holds a lock on it, which the kernel releases when the writer dies, however it dies. So a draft
without a lock is a leftover, and `sweep` removes it. Locks are those of `flock`: advisory, and seen
by all processes of this machine, on NFS by all machines.

Every function raises OSError where the disk or the file system refuses.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOCK: Final = ".tamis.lock"
DRAFT: Final = re.compile(r"\.tamis-[0-9a-f]{16}\.draft")

_OPEN_LOCK: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_BUSY: Final = (errno.EAGAIN, errno.EACCES)
_held: set[int] = set()  # descriptors whose locks this process holds


class NotPrivateError(PermissionError):
    """A directory that should be this user's alone is not."""


# ── files ───────────────────────────────────────────────────────────────────────────────────


def replace_file(path: Path, chunks: Iterable[Any]) -> None:
    """Write a file, or replace the one that is there, in one step and durably."""
    with _draft_file(path.parent, chunks) as draft:
        os.replace(draft, path)
        sync_directory(path.parent)


def create_file(path: Path, chunks: Iterable[Any]) -> bool:
    """Write a file unless one is there; False if one is. Of many writers one succeeds."""
    with _draft_file(path.parent, chunks) as draft:
        try:
            os.link(draft, path)  # the name appears together with the contents
        except FileExistsError:
            return False
        sync_directory(path.parent)
        return True


@contextmanager
def _draft_file(directory: Path, chunks: Iterable[Any]) -> Iterator[Path]:
    """A file with these contents, on disk and locked; removed afterwards unless it was moved."""
    draft, descriptor = _make_draft_file(directory)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            for chunk in chunks:
                file.write(chunk)
        os.fsync(descriptor)
        yield draft
    finally:
        draft.unlink(missing_ok=True)
        _release(descriptor)


def _make_draft_file(directory: Path) -> tuple[Path, int]:
    while True:
        draft = directory / _draft_name()
        descriptor = os.open(draft, _OPEN_LOCK | os.O_CREAT | os.O_EXCL, 0o666)
        # Somebody may have swept it away before it was locked.
        if _lock(descriptor) is not False and os.fstat(descriptor).st_nlink:
            _held.add(descriptor)
            return draft, descriptor
        os.close(descriptor)


# ── directories ─────────────────────────────────────────────────────────────────────────────


def sync_directory(directory: Path) -> None:
    """Make sure that the names in a directory are on disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Make a directory and those above it, durably; what is there already stays as it is."""
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
    """Make a directory that only this user can read and write, and expect it to be so.

    NotPrivateError if somebody else owns it or may use it, or if it is a symbolic link.
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
        raise NotPrivateError(errno.EPERM, "other users may use it", str(path))


@contextmanager
def draft_directory(parent: Path, mode: int = 0o777) -> Iterator[Path]:
    """An empty directory with a name of its own, locked, and removed afterwards."""
    draft, descriptor = _make_draft_directory(parent, mode)
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        _release(descriptor)


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """A directory to write files into, moved to `target` when all is written, durably.

    FileExistsError if something is at the target by then. The target is locked, as by `locked`,
    until this returns.
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
        # Nothing fails any more: what is left undone is a file without contents.
        with suppress(OSError):
            (target / LOCK).unlink()


def remove_directory(path: Path) -> None:
    """Remove a directory; to others it is there whole, or not at all."""
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
        # Somebody may sweep it away before it is locked.
        with suppress(FileNotFoundError):
            descriptor = _acquire(draft / LOCK, waits=False)
            if descriptor is not None:
                return draft, descriptor


def _draft_name() -> str:
    return f".tamis-{secrets.token_hex(8)}.draft"


# ── locks ───────────────────────────────────────────────────────────────────────────────────


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Be the only one to write into a directory; waits until others have finished.

    The lock goes with the process that holds it, also when it is killed.
    """
    descriptor = _acquire(directory / LOCK, waits=True)
    assert descriptor is not None
    try:
        yield
    finally:
        with suppress(OSError):
            (directory / LOCK).unlink()
        _release(descriptor)


def _acquire(path: Path, *, waits: bool) -> int | None:
    """Hold the lock of that name; None if somebody else does, and `waits` is off."""
    while True:
        descriptor = os.open(path, _OPEN_LOCK | os.O_CREAT, 0o666)
        try:
            is_held = _lock(descriptor, waits=waits)
            if is_held is None and waits:
                path.unlink(missing_ok=True)
                raise OSError(errno.ENOLCK, "the file system has no locks", str(path))
            # Who held it before has removed it: the next to come would make another.
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
    """Whether the file is now locked by us; None on a file system without locks."""
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
    if descriptor in _held:  # not in a child of the process that held it
        _held.discard(descriptor)
        os.close(descriptor)


def _forget_locks() -> None:
    # A child shares its parent's locks: if it lived longer, it would hold them.
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_forget_locks)


# ── leftovers ───────────────────────────────────────────────────────────────────────────────


def sweep(directory: Path) -> None:
    """Remove the drafts of writers that died, as far as it can be done."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if DRAFT.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_dead(Path(entry.path))


def _remove_if_dead(draft: Path) -> None:
    found = draft.lstat()
    if found.st_uid != os.geteuid():
        return  # its lock, if it has one, may be anything
    is_directory = stat.S_ISDIR(found.st_mode)
    if is_directory:
        descriptor = os.open(draft / LOCK, _OPEN_LOCK | os.O_CREAT, 0o666)
    else:
        descriptor = os.open(draft, _OPEN_LOCK)
    try:
        # Where there are no locks, nobody knows who is dead.
        if not _lock(descriptor):
            return
        if is_directory:
            shutil.rmtree(draft, ignore_errors=True)
        elif _is_at(descriptor, draft):
            draft.unlink()
    finally:
        os.close(descriptor)
