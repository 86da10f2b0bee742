"""The tables, and the migration of older stores to the current format."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    and_,
    insert,
    select,
)

from tamis.subscriptions.formats import TableFormat
from tamis.subscriptions.rows import Row
from tamis.subscriptions.tags import TagEntry, list_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

METADATA: Final = MetaData()
_PAGE_SIZE: Final = 10_000
# In SQLite, only a column of exactly the type INTEGER is the row number.
NUMBER: Final = BigInteger().with_variant(Integer, "sqlite")
# Both databases compare bytes and fold ASCII letters only, so that both return the same lists.
NAME: Final = Text().with_variant(Text(collation="C"), "postgresql")

STORE: Final = Table(
    "tamis_store",  # one row
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("format", Integer, nullable=False),
    Column("epoch", Text, nullable=False),
    Column("last_change", BigInteger, nullable=False),
    Column("horizon", BigInteger, nullable=False),
    Column("moment", BigInteger, nullable=False),
)

CHANGES: Final = Table(
    "tamis_changes",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("subscription_id", NAME, nullable=False),
    Column("moment", BigInteger, nullable=False),
    Column("previous", BigInteger),
    Column("superseded_by", BigInteger),
    Column("created", BigInteger),
    Column("owner", NAME),
    Column("expression", NAME),
    Column("tags", Text),
    Column("attributes", Text),
    Column("valid_from", BigInteger),
    Column("valid_until", BigInteger),
    Column("ticket_hash", LargeBinary),
)
assert tuple(CHANGES.columns.keys()) == Row._fields

TAGS: Final = Table(
    "tamis_tags",
    METADATA,
    Column("tag", NAME, primary_key=True),
    Column("subscription_id", NAME, primary_key=True),
    sqlite_with_rowid=False,  # the table is its index
)
assert tuple(TAGS.columns.keys()) == TagEntry._fields

IS_LATEST: Final = CHANGES.c.superseded_by.is_(None)
HAS_STATE: Final = CHANGES.c.created.is_not(None)
HAS_OWNER: Final = and_(IS_LATEST, CHANGES.c.owner != "")
HAS_END: Final = and_(IS_LATEST, CHANGES.c.valid_until.is_not(None))
IS_REVISED: Final = CHANGES.c.created != CHANGES.c.number

for _name, _columns, _rows, _is_unique in (
    ("tamis_latest", (CHANGES.c.subscription_id,), IS_LATEST, True),
    ("tamis_owners", (CHANGES.c.owner, CHANGES.c.subscription_id), HAS_OWNER, False),
    ("tamis_leases", (CHANGES.c.valid_until,), HAS_END, False),
):
    Index(_name, *_columns, unique=_is_unique, sqlite_where=_rows, postgresql_where=_rows)

# Finds the newest state of a subscription by its number. A subscription that was never changed is
# not in it, so that a bulk load does not write it.
_REVISIONS: Final = Index(
    "tamis_revisions",
    CHANGES.c.created,
    CHANGES.c.number,
    sqlite_where=IS_REVISED,
    postgresql_where=IS_REVISED,
)


def _add_tags(connection: Connection) -> None:
    """Format 2 has the index of tags."""
    TAGS.create(connection)
    columns = (CHANGES.c.number, CHANGES.c.subscription_id, CHANGES.c.tags)
    query = select(*columns).where(IS_LATEST, CHANGES.c.tags != "").order_by(CHANGES.c.number)
    last = 0
    while page := connection.execute(query.where(CHANGES.c.number > last).limit(_PAGE_SIZE)).all():
        entries = [TagEntry(key, row[1])._asdict() for row in page for key in list_keys(row[2])]
        connection.execute(insert(TAGS), entries)
        last = page[-1][0]


def _add_revisions(connection: Connection) -> None:
    """Format 3 has the index of revisions."""
    _REVISIONS.create(connection)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_add_tags, _add_revisions)


def expect_format(connection: Connection, where: str) -> None:
    """Raise a `StoreFormatError` unless the store can be read as it is."""
    _format().expect(connection, where)


def migrate(connection: Connection, where: str) -> None:
    """Create the store, or migrate an older one to the current format."""
    _format().migrate(connection, where)


def new_epoch() -> str:
    """A unique name for a history."""
    return secrets.token_hex(16)


def _format() -> TableFormat:
    return TableFormat("store of subscriptions", STORE, _create, MIGRATIONS)


def _create(connection: Connection, current: int) -> None:
    METADATA.create_all(connection, checkfirst=False)
    first = {"id": 1, "format": current, "epoch": new_epoch()}
    connection.execute(insert(STORE), first | {"last_change": 0, "horizon": 0, "moment": 0})
