"""The store in a folder: one SQLite file, and a lock file that its writer holds."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import orjson
from sqlalchemy import Connection, Engine, Table, create_engine, event, text
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import NullPool, QueuePool

from tamis.durable import make_directory, sync_directory, try_lock, unlock
from tamis.errors import StoreError, StoreFormatError, StoreInUseError
from tamis.places import SUBSCRIPTIONS
from tamis.subscriptions.tables import CHANGES, TAGS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sqlalchemy import ColumnElement
    from sqlalchemy.pool import ConnectionPoolEntry

    from tamis.subscriptions.tags import TagEntry

LOCK: Final = "subscriptions.lock"
_BUSY_MILLISECONDS: Final = 30_000
_PRAGMAS: Final = (
    f"busy_timeout = {_BUSY_MILLISECONDS}",
    "journal_mode = WAL",
    "synchronous = FULL",  # a commit returns when the log is on disk
    "wal_autocheckpoint = 4000",  # pages: about 16 MB of log
    f"journal_size_limit = {64 << 20}",
    "cache_size = -65536",  # 64 MB
)
_SUPERSEDE: Final = f"UPDATE {CHANGES.name} SET superseded_by = ? WHERE number = ?"
_UNTAG: Final = f"DELETE FROM {TAGS.name} WHERE tag = ? AND subscription_id = ?"

_EACH: Final = text("SELECT value FROM json_each(:ids)")


class SqliteDatabase:
    """The file in a folder."""

    def __init__(self, folder: Path, *, read_only: bool) -> None:
        self.where = str(folder)
        # Connections are opened later too, perhaps from another working directory.
        self._folder = folder.absolute()
        self._file = self._folder / SUBSCRIPTIONS
        self._log = self._folder / f"{SUBSCRIPTIONS}-wal"
        self._lock: int | None = None
        self.is_closed = False
        if read_only and not self._file.is_file():
            raise StoreFormatError(
                f"there is no store of subscriptions in {folder}",
                hint="open it without read_only=True to create it",
            )
        self.reader = _engine(self._connect_reader, "BEGIN")
        event.listen(self.reader, "connect", self._note_file)
        event.listen(self.reader, "checkout", self._expect_file)
        self._writer = _engine(self._connect_writer, "BEGIN IMMEDIATE")

    def hold(self) -> Connection:
        if self._lock is None:
            make_directory(self._folder)
            self._lock = try_lock(self._folder / LOCK)
        if self._lock is None:
            raise StoreInUseError(
                f"another writer has the store at {self.where} open{self._holder()}",
                hint="open it with read_only=True to follow it",
            )
        connection = self._writer.connect()
        sync_directory(self._folder)
        return connection

    def insert(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        names = table.columns.keys()
        values = ", ".join("?" for _ in names)
        statement = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values})"
        connection.exec_driver_sql(statement, list(rows))

    def supersede(self, connection: Connection, pairs: Sequence[tuple[int, int]]) -> None:
        connection.exec_driver_sql(_SUPERSEDE, list(pairs))

    def untag(self, connection: Connection, entries: Sequence[TagEntry]) -> None:
        connection.exec_driver_sql(_UNTAG, list(entries))

    def vacuum(self, connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        driver.execute("VACUUM")
        _empty_log(connection)  # the file shrinks when the log is empty

    def copy(self, connection: Connection, folder: Path) -> None:
        make_directory(folder)
        driver: Any = connection.connection.dbapi_connection
        with closing(sqlite3.connect(folder / SUBSCRIPTIONS)) as copied:
            driver.backup(copied)  # in one step: writers go on meanwhile
        with (folder / SUBSCRIPTIONS).open("rb") as file:
            os.fsync(file.fileno())
        sync_directory(folder)

    def one_of(self, ids: Sequence[str]) -> ColumnElement[bool]:
        return CHANGES.c.subscription_id.in_(_EACH.bindparams(ids=orjson.dumps(ids).decode()))

    def release(self, connection: Connection | None) -> None:
        self.reader.dispose()
        try:
            if connection is not None:
                _empty_log(connection)
                connection.close()
        finally:
            if self._lock is not None:
                unlock(self._lock)
                self._lock = None

    def close(self) -> None:
        self.is_closed = True
        self.reader.dispose()

    def _holder(self) -> str:
        with suppress(OSError):
            found = (self._folder / LOCK).read_text(encoding="ascii", errors="replace").strip()
            return f": process {found}" if found else ""
        return ""

    def _note_file(self, _connection: object, record: ConnectionPoolEntry) -> None:
        record.info["file"] = self._identify()

    def _expect_file(self, _c: object, record: ConnectionPoolEntry, _proxy: object) -> None:
        # If a backup was restored, the open file would still be the old one.
        if not self._file.exists() or self._identify() != record.info["file"]:
            raise DisconnectionError

    def _identify(self) -> tuple[int, ...]:
        found = self._file.stat()
        if self._log.exists():
            return (found.st_ino,)
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _connect_writer(self) -> sqlite3.Connection:
        connection = _connect(f"file:{quote(str(self._file))}?mode=rwc")
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").fetchall()
        (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
        if journal != "wal":
            connection.close()
            raise StoreError(
                f"the file system of {self.where} has no shared memory, which SQLite's log needs",
                hint="choose a folder on a local disk, or PostgreSQL",
            )
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        uri = f"file:{quote(str(self._file))}?mode=ro"
        try:
            return _try_reading(uri)
        except sqlite3.OperationalError:
            if self._log.exists():
                raise
            # There is no writer, and this user cannot create the files that readers share.
            # `_expect_file` notices a later writer.
            return _try_reading(f"{uri}&immutable=1")


def _try_reading(uri: str) -> sqlite3.Connection:
    connection = _connect(uri)
    try:
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}").fetchall()
        connection.execute("PRAGMA schema_version").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _empty_log(connection: Connection) -> None:
    driver: Any = connection.connection.dbapi_connection
    with suppress(sqlite3.Error):  # a follower is reading: the next writer empties it
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _connect(uri: str) -> sqlite3.Connection:
    # The engine begins transactions, not the driver.
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def _engine(connect: Any, begin: str) -> Engine:
    pool = QueuePool if begin == "BEGIN" else NullPool
    limits = {"max_overflow": -1} if pool is QueuePool else {}
    engine = create_engine("sqlite://", creator=connect, poolclass=pool, **limits)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine
