"""The format number of a group of tables, and the migration of older ones.

Migrations are a numbered tuple, without Alembic: the writer migrates a store before it is used,
both databases change tables in a transaction, and a folder of scripts with a configuration would be
larger than the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import inspect, select, update

from tamis.errors import StoreFormatError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Table


class TableFormat(NamedTuple):
    """The format that this version reads and writes."""

    name: str  # of the tables together, for messages
    holder: Table  # its only row has the column "format"
    create: Callable[[Connection, int], None]  # all tables, of the given format
    # The nth migrates from format n to format n + 1, within the given transaction.
    migrations: tuple[Callable[[Connection], None], ...]

    @property
    def current(self) -> int:
        """The format that this version writes."""
        return 1 + len(self.migrations)

    def find(self, connection: Connection) -> int:
        """The format of the stored tables; 0 if there are none."""
        if not inspect(connection).has_table(self.holder.name):
            return 0
        found = connection.execute(select(self.holder.c.format)).scalar_one_or_none()
        return 0 if found is None else int(found)

    def expect(self, connection: Connection, where: str) -> None:
        """Raise a `StoreFormatError` unless the tables can be read as they are."""
        found = self.find(connection)
        if found == 0:
            raise StoreFormatError(
                f"there is no {self.name} at {where}",
                hint="open it without read_only=True to create it",
            )
        self._refuse_newer(found, where)
        if found < self.current:
            raise StoreFormatError(
                f"the {self.name} at {where} has format {found}; "
                f"this version reads format {self.current}",
                hint="open it once without read_only=True to migrate it",
            )

    def migrate(self, connection: Connection, where: str) -> None:
        """Create the tables, or migrate older ones to the current format."""
        found = self.find(connection)
        self._refuse_newer(found, where)
        if found == 0:
            self.create(connection, self.current)
        elif found < self.current:
            for migration in self.migrations[found - 1 :]:
                migration(connection)
            connection.execute(update(self.holder).values(format=self.current))

    def _refuse_newer(self, found: int, where: str) -> None:
        if found > self.current:
            raise StoreFormatError(
                f"the {self.name} at {where} has format {found}, "
                f"newer than {self.current}, the format of this version",
                hint="install a newer version of Tamis",
            )
