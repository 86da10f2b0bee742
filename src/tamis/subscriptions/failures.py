"""Converts errors of databases and file systems to a `StoreError` with a hint."""

from __future__ import annotations

import errno
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    ProgrammingError,
    SQLAlchemyError,
)

from tamis.errors import StoreError, StoreFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL_HINT: Final = "free some space; none of these changes was stored"
_IO_HINT: Final = "is the disk full or failing? these changes were not acknowledged"
_READ_ONLY_HINT: Final = "make it writable for this user, or open it with read_only=True"
_DAMAGED_HINT: Final = "restore it from a backup, then give it a new epoch with `renew_epoch`"
_AWAY_HINT: Final = (
    "is the server running? pending changes may or may not be stored: check them with `latest`"
)

# By primary result code of SQLite: what is wrong, the hint, whether the file is damaged.
_SQLITE: Final[dict[int, tuple[str, str | None, bool]]] = {
    sqlite3.SQLITE_FULL: ("the disk is full", FULL_HINT, False),
    sqlite3.SQLITE_READONLY: ("it cannot be written", _READ_ONLY_HINT, False),
    sqlite3.SQLITE_PERM: ("access is denied", _READ_ONLY_HINT, False),
    sqlite3.SQLITE_CANTOPEN: ("its file cannot be opened", _READ_ONLY_HINT, False),
    sqlite3.SQLITE_CORRUPT: ("it is damaged", _DAMAGED_HINT, True),
    sqlite3.SQLITE_NOTADB: ("it is damaged, or not a database", _DAMAGED_HINT, True),
    sqlite3.SQLITE_IOERR: ("the file system reports an error", _IO_HINT, False),
    sqlite3.SQLITE_BUSY: ("another process keeps it locked", None, False),
}
# By SQLSTATE of PostgreSQL.
_POSTGRES: Final[dict[str, tuple[str, str | None, bool]]] = {
    "53100": ("the disk is full", FULL_HINT, False),
    "25006": ("it cannot be written", "write to the primary server", False),
    "42501": ("access is denied", "grant this user the rights on its tables", False),
    "XX001": ("it is damaged", _DAMAGED_HINT, True),
    "XX002": ("it is damaged", _DAMAGED_HINT, True),
}
_UNKNOWN: Final[tuple[str, str | None, bool]] = ("the database reports an error", None, False)
_OS: Final = {
    errno.ENOSPC: FULL_HINT,
    errno.EDQUOT: FULL_HINT,
    errno.EROFS: _READ_ONLY_HINT,
    errno.EACCES: _READ_ONLY_HINT,
    errno.EPERM: _READ_ONLY_HINT,
}


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise errors of a database or the file system as a `StoreError`."""
    try:
        yield
    except OSError as error:
        reason = f"the store at {where} cannot be used: {error.strerror or error}"
        raise StoreError(reason, hint=_OS.get(error.errno or 0)) from error
    except Exception as error:
        if not isinstance(error, SQLAlchemyError) and not _is_driver(error):
            raise
        raise explain(error, where) from error


def is_about_statement(error: Exception) -> bool:
    """Whether only a statement is wrong, so that the transaction can go on without it."""
    if isinstance(error, IntegrityError | DataError | ProgrammingError):
        return not error.connection_invalidated
    return not isinstance(error, SQLAlchemyError) and not _is_driver(error)


def explain(error: Exception, where: str) -> StoreError:
    """The `StoreError` for an error of a database."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    what, hint, is_damaged = _find(cause)
    detail = str(cause).strip().split("\n")[0]
    kind = StoreFormatError if is_damaged else StoreError
    return kind(f"the store at {where} cannot be used: {what} ({detail})", hint=hint)


def _find(cause: BaseException) -> tuple[str, str | None, bool]:
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        return _SQLITE.get(code, _UNKNOWN)
    state = getattr(cause, "sqlstate", None)
    # Classes 08 and 57P: failed connections, and a server that is shutting down.
    is_away = state is None or state.startswith(("08", "57P"))
    if is_away and type(cause).__name__ in ("OperationalError", "AdminShutdown"):
        return "there is no connection", _AWAY_HINT, False
    return _POSTGRES.get(state or "", _UNKNOWN)


def _is_driver(error: Exception) -> bool:
    """Whether a database's own package raised it; psycopg may not be installed."""
    return isinstance(error, sqlite3.Error) or type(error).__module__.startswith("psycopg")
