"""The store in a PostgreSQL database, in the first schema of its search path."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    ARRAY,
    Connection,
    Engine,
    Table,
    Text,
    any_,
    create_engine,
    event,
    literal,
    make_url,
    text,
)
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from tamis.errors import InputError, MissingDependencyError, StoreError, StoreInUseError
from tamis.subscriptions.tables import CHANGES, TAGS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sqlalchemy import ColumnElement

    from tamis.subscriptions.tags import TagEntry

_LOCK_CLASS: Final = 0x7A_61_6D_69  # any number that is the same in all versions
_TAKE_LOCK: Final = text(
    f"SELECT pg_try_advisory_lock({_LOCK_CLASS}, hashtext(coalesce(current_schema()::text, '')))"
)
CONNECT_SECONDS: Final = 10  # for a connection, unless the address or PGCONNECT_TIMEOUT says
_PATIENCE_SECONDS: Final = 2.0  # the server may not have noticed yet that a writer was killed
# A server may acknowledge before data is on disk; this session must not.
_DURABLE: Final = text(
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)
_SUPERSEDE: Final = (
    f"UPDATE {CHANGES.name} SET superseded_by = pair.later "
    "FROM unnest(%s::bigint[], %s::bigint[]) AS pair(later, earlier) "
    f"WHERE {CHANGES.name}.number = pair.earlier"
)
_UNTAG: Final = (
    f"DELETE FROM {TAGS.name} USING unnest(%s::text[], %s::text[]) AS gone(tag, id) "
    f"WHERE {TAGS.name}.tag = gone.tag AND {TAGS.name}.subscription_id = gone.id"
)


class PostgresDatabase:
    """The tables in a database."""

    def __init__(self, address: str) -> None:
        try:
            url = make_url(address).set(drivername="postgresql+psycopg")
        except ArgumentError:
            raise InputError(
                "the address of the database cannot be read",
                hint='write "postgresql://user:password@host/database"',
            ) from None
        self.where = url.set(drivername="postgresql").render_as_string(hide_password=True)
        self.is_closed = False
        # Connections lost by a restart of the server are replaced.
        self.reader = _engine(url, max_overflow=-1, pool_pre_ping=True)
        # Protects against writing by mistake.
        event.listen(self.reader, "connect", _make_read_only)
        self._writer = _engine(url, poolclass=NullPool)

    def hold(self) -> Connection:
        connection = self._writer.connect()
        try:
            if not _take_lock(connection):
                raise StoreInUseError(
                    f"another writer has the store at {self.where} open",
                    hint="open it with read_only=True to follow it",
                )
            encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
            if encoding != "UTF8":
                raise StoreError(
                    f"the database at {self.where} has the encoding {encoding}; UTF8 is required",
                    hint="create one by CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
                )
            connection.execute(_DURABLE)
            connection.commit()  # the settings and the lock belong to the session
        except BaseException:
            connection.close()
            raise
        return connection

    def insert(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        driver: Any = connection.connection.dbapi_connection
        statement = f"COPY {table.name} ({', '.join(table.columns.keys())}) FROM STDIN"
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def supersede(self, connection: Connection, pairs: Sequence[tuple[int, int]]) -> None:
        later, earlier = zip(*pairs, strict=True)
        connection.exec_driver_sql(_SUPERSEDE, (list(later), list(earlier)))

    def untag(self, connection: Connection, entries: Sequence[TagEntry]) -> None:
        tags, ids = zip(*entries, strict=True)
        connection.exec_driver_sql(_UNTAG, (list(tags), list(ids)))

    def vacuum(self, connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        driver.autocommit = True
        try:
            driver.execute(f"VACUUM {CHANGES.name}, {TAGS.name}")
        finally:
            driver.autocommit = False

    def copy(self, connection: Connection, folder: Path) -> None:
        raise StoreError(
            f"the store at {self.where} is a PostgreSQL database, which is not copied to {folder}",
            hint="copy it with pg_dump",
        )

    def one_of(self, ids: Sequence[str]) -> ColumnElement[bool]:
        return CHANGES.c.subscription_id == any_(literal(list(ids), ARRAY(Text)))

    def release(self, connection: Connection | None) -> None:
        self.reader.dispose()
        if connection is not None:
            connection.close()  # this ends the session and releases its lock

    def close(self) -> None:
        self.is_closed = True
        self.reader.dispose()


def _take_lock(connection: Connection) -> bool:
    given_up = time.monotonic() + _PATIENCE_SECONDS
    while not connection.execute(_TAKE_LOCK).scalar_one():
        if time.monotonic() > given_up:
            return False
        time.sleep(0.05)
    return True


def _make_read_only(connection: Any, _record: object) -> None:
    connection.read_only = True


def _engine(url: Any, **options: Any) -> Engine:
    has_own = "connect_timeout" in url.query or "PGCONNECT_TIMEOUT" in os.environ
    # Without one, a server that does not answer would be waited for as long as the system does.
    limits = {} if has_own else {"connect_timeout": CONNECT_SECONDS}
    try:
        return create_engine(url, connect_args=limits, **options)
    except ImportError:
        raise MissingDependencyError(
            "a store in PostgreSQL needs the package psycopg",
            hint="pip install 'tamis[live,postgres]'",
        ) from None
