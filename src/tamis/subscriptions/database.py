"""The interface of a database. It covers all differences between SQLite and PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sqlalchemy import ColumnElement, Connection, Engine, Table

    from tamis.subscriptions.tags import TagEntry


class Database(Protocol):
    """Where the tables are."""

    where: str  # for messages, without passwords
    reader: Engine
    is_closed: bool

    def hold(self) -> Connection:
        """A connection for the only writer; raises `StoreInUseError` if there is another."""

    def insert(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows into a table; their fields are its columns, in order."""

    def supersede(self, connection: Connection, pairs: Sequence[tuple[int, int]]) -> None:
        """Mark rows as superseded: by which change, which row."""

    def untag(self, connection: Connection, entries: Sequence[TagEntry]) -> None:
        """Delete entries of the index of tags."""

    def vacuum(self, connection: Connection) -> None:
        """Return free space to the file system. There must be no transaction."""

    def copy(self, connection: Connection, folder: Path) -> None:
        """Copy all tables as the connection sees them to a store in a new folder."""

    def one_of(self, ids: Sequence[str]) -> ColumnElement[bool]:
        """The condition that a row has one of these ids; one statement for any number of ids."""

    def release(self, connection: Connection | None) -> None:
        """Close a connection of `hold`, if given, and release the store for another writer."""

    def close(self) -> None:
        """Close the reading connections; afterwards the store cannot be read."""
