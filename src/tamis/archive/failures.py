"""Converts errors of the file system to a `StoreError` with a hint."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tamis.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

_FULL: Final = "free some space and try again; nothing of this was stored"
_READ_ONLY: Final = "make it writable for this user, or open it with read_only=True"
_HINTS: Final = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EIO: "is the disk failing? nothing of this was acknowledged",
}


@contextmanager
def translated(what: str, *, but: type[OSError] | None = None) -> Iterator[None]:
    """Raise errors of the file system, `but` some, as a `StoreError`; `what` failed."""
    try:
        yield
    except OSError as error:
        if but is not None and isinstance(error, but):
            raise
        raise StoreError(
            f"{what}: {error.strerror or error}", hint=_HINTS.get(error.errno or 0)
        ) from error
