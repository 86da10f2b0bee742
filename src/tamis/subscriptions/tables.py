"""The tables, and the migration of older stores to the current format.

Migrations are a numbered tuple, without Alembic: the writer migrates a store before it is used,
both databases change tables in a transaction, and a folder of scripts with a configuration would be
larger than the tables.
"""

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
    inspect,
    select,
    update,
)

from tamis.errors import StoreFormatError
from tamis.subscriptions.rows import Row
from tamis.subscriptions.tags import TagEntry, list_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

METADATA: Final = MetaData()
_PAGE_SIZE: Final = 10_000
# In SQLite, only a column of exactly the type INTEGER is the row number.
_NUMBER: Final = BigInteger().with_variant(Integer, "sqlite")
# Both databases compare bytes and fold ASCII letters only, so that both return the same lists.
_NAME: Final = Text().with_variant(Text(collation="C"), "postgresql")

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
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("subscription_id", _NAME, nullable=False),
    Column("moment", BigInteger, nullable=False),
    Column("previous", BigInteger),
    Column("superseded_by", BigInteger),
    Column("created", BigInteger),
    Column("owner", _NAME),
    Column("expression", _NAME),
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
    Column("tag", _NAME, primary_key=True),
    Column("subscription_id", _NAME, primary_key=True),
    sqlite_with_rowid=False,  # the table is its index
)
assert tuple(TAGS.columns.keys()) == TagEntry._fields

IS_LATEST: Final = CHANGES.c.superseded_by.is_(None)
HAS_STATE: Final = CHANGES.c.created.is_not(None)
HAS_OWNER: Final = and_(IS_LATEST, CHANGES.c.owner != "")
HAS_END: Final = and_(IS_LATEST, CHANGES.c.valid_until.is_not(None))

for _name, _columns, _rows, _is_unique in (
    ("tamis_latest", (CHANGES.c.subscription_id,), IS_LATEST, True),
    ("tamis_owners", (CHANGES.c.owner, CHANGES.c.subscription_id), HAS_OWNER, False),
    ("tamis_leases", (CHANGES.c.valid_until,), HAS_END, False),
):
    Index(_name, *_columns, unique=_is_unique, sqlite_where=_rows, postgresql_where=_rows)


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


# The nth migrates a store from format n to format n + 1, within the given transaction.
MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_add_tags,)


def current_format() -> int:
    """The format that this version writes."""
    return 1 + len(MIGRATIONS)


def find_format(connection: Connection) -> int:
    """The format of the store; 0 if there is none."""
    if not inspect(connection).has_table(STORE.name):
        return 0
    found = connection.execute(select(STORE.c.format)).scalar_one_or_none()
    return 0 if found is None else found


def expect_format(connection: Connection, where: str) -> None:
    """Raise a `StoreFormatError` unless the store can be read as it is."""
    found, current = find_format(connection), current_format()
    if found == 0:
        raise StoreFormatError(
            f"there is no store of subscriptions at {where}",
            hint="open it without read_only=True to create it",
        )
    _refuse_newer(found, where)
    if found < current:
        raise StoreFormatError(
            f"the store at {where} has format {found}; this version reads format {current}",
            hint="open it once without read_only=True to migrate it",
        )


def migrate(connection: Connection, where: str) -> None:
    """Create the store, or migrate an older one to the current format."""
    found, current = find_format(connection), current_format()
    _refuse_newer(found, where)
    if found == 0:
        METADATA.create_all(connection, checkfirst=False)
        first = {"id": 1, "format": current, "epoch": new_epoch()}
        connection.execute(insert(STORE), first | {"last_change": 0, "horizon": 0, "moment": 0})
    elif found < current:
        for migration in MIGRATIONS[found - 1 :]:
            migration(connection)
        connection.execute(update(STORE).values(format=current))


def new_epoch() -> str:
    """A unique name for a history."""
    return secrets.token_hex(16)


def _refuse_newer(found: int, where: str) -> None:
    if found > current_format():
        raise StoreFormatError(
            f"the store at {where} has format {found}, "
            f"newer than {current_format()}, the format of this version",
            hint="install a newer version of Tamis",
        )
