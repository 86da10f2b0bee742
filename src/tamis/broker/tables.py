"""The tables of the broker, in the database of the subscriptions, with their own format number.

Moments are microseconds since 1970. All numbers come from one sequence and are never used twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    insert,
    text,
    update,
)

from tamis.subscriptions.formats import TableFormat
from tamis.subscriptions.tables import NAME, NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

METADATA: Final = MetaData()


def _number() -> Column[int]:
    return Column("number", NUMBER, primary_key=True, autoincrement=False)


def _attempt() -> tuple[Column[Any], ...]:
    """The columns of a `retries.Attempt`."""
    return (
        Column("attempts", Integer, nullable=False),
        Column("next_attempt", BigInteger),
        Column("last_status", Integer),
        Column("last_error", Text),
        Column("failing_since", BigInteger),
    )


BROKER: Final = Table(
    "tamis_broker",  # one row
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("format", Integer, nullable=False),
    Column("last_number", BigInteger, nullable=False),
)

KEYS: Final = Table(
    "tamis_keys",
    METADATA,
    _number(),
    Column("key_id", NAME, nullable=False, unique=True),
    Column("owner", NAME, nullable=False, index=True),
    Column("roles", Text, nullable=False),  # separated by blanks
    Column("limits", Text, nullable=False),  # JSON
    Column("hash", LargeBinary, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger),
    Column("revoked", BigInteger),
)

CHANNELS: Final = Table(
    "tamis_channels",
    METADATA,
    _number(),
    Column("name", NAME, nullable=False, unique=True),
    Column("owner", NAME, nullable=False, index=True),
    Column("created", BigInteger, nullable=False),
)

MEMBERS: Final = Table(
    "tamis_channel_members",
    METADATA,
    Column("channel", BigInteger, primary_key=True, autoincrement=False),
    Column("subscription", BigInteger, primary_key=True, autoincrement=False, index=True),
    Column("subscription_id", NAME, nullable=False),
    Column("added", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Subscriptions that have ended and are no longer in the log, but still have mail.
HISTORIES: Final = Table(
    "tamis_histories",
    METADATA,
    _number(),
    Column("subscription", BigInteger, unique=True),  # None while it is being made
    Column("subscription_id", NAME, nullable=False),
    Column("ticket_hash", LargeBinary, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("expression", NAME, nullable=False),
)

ENDED: Final = Table(
    "tamis_ended_subscriptions",
    METADATA,
    _number(),
    Column("subscription_id", NAME, nullable=False, index=True),
    Column("owner", NAME, nullable=False),
    Column("ticket_hash", LargeBinary),
    Column("ended", BigInteger, nullable=False),
    Column("moment", BigInteger, nullable=False),
)

CURSORS: Final = Table(
    "tamis_cursors",
    METADATA,
    Column("mailbox", NAME, primary_key=True),
    Column("consumer", NAME, primary_key=True),
    Column("epoch", Text, nullable=False),
    Column("acknowledged", BigInteger, nullable=False),
    Column("moment", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

WEBHOOKS: Final = Table(
    "tamis_webhooks",
    METADATA,
    _number(),
    Column("mailbox", NAME, nullable=False, index=True),
    Column("owner", NAME, nullable=False, index=True),
    Column("url", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("epoch", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("n_deliveries", BigInteger, nullable=False),
    *_attempt(),
    Index("tamis_webhooks_due", "state", "next_attempt"),
)

# The only secrets that are stored as they are: requests are signed with them.
SIGNING_SECRETS: Final = Table(
    "tamis_signing_secrets",
    METADATA,
    _number(),
    Column("webhook", BigInteger, nullable=False, index=True),
    Column("secret", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("valid_until", BigInteger),
)

DEAD_LETTERS: Final = Table(
    "tamis_dead_letters",
    METADATA,
    _number(),
    Column("webhook", BigInteger, nullable=False, index=True),
    Column("epoch", Text, nullable=False),
    Column("event", BigInteger, nullable=False),
    Column("subscriptions", Text, nullable=False),  # a JSON array of numbers
    Column("died", BigInteger, nullable=False),
    Column("total_attempts", Integer, nullable=False),
    Column("state", Text, nullable=False),
    *_attempt(),
    Index("tamis_dead_letters_due", "state", "next_attempt"),
)

DELIVERIES: Final = Table(
    "tamis_deliveries",  # a ring of slots for each webhook
    METADATA,
    Column("webhook", BigInteger, primary_key=True, autoincrement=False),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
    Column("moment", BigInteger, nullable=False),
    Column("event", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("status", Integer),
    Column("milliseconds", Integer, nullable=False),
    Column("error", Text),
    sqlite_with_rowid=False,
)

FEEDS: Final = Table(
    "tamis_feeds",
    METADATA,
    _number(),
    Column("mailbox", NAME, nullable=False, index=True),
    Column("owner", NAME, nullable=False, index=True),
    Column("title", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("created", BigInteger, nullable=False),
    Column("revoked", BigInteger),
)

DIGESTS: Final = Table(
    "tamis_digests",
    METADATA,
    _number(),
    Column("mailbox", NAME, nullable=False, index=True),
    Column("owner", NAME, nullable=False, index=True),
    Column("address", Text, nullable=False),
    Column("period", Text, nullable=False),
    Column("hour", Integer, nullable=False),
    Column("minute", Integer, nullable=False),
    Column("zone", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("epoch", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("next_due", BigInteger, nullable=False, index=True),
    Column("last_sent", BigInteger),
    Column("failures", Integer, nullable=False),
    Column("last_error", Text),
    Column("failing_since", BigInteger),
    Column("asked", BigInteger),  # when its address was asked to confirm it
    Column("confirmed", BigInteger),  # NULL: nothing but that question may be sent
)

# Requests to send something to an address that has not confirmed it, of the last day.
CONFIRMATIONS: Final = Table(
    "tamis_confirmations",
    METADATA,
    _number(),
    Column("address", NAME, nullable=False, index=True),
    Column("owner", NAME, nullable=False, index=True),
    Column("moment", BigInteger, nullable=False, index=True),
)

# Feeds that the server reads.
SOURCES: Final = Table(
    "tamis_sources",
    METADATA,
    _number(),
    Column("url", NAME, nullable=False, unique=True),
    Column("added_url", NAME, nullable=False),
    Column("title", Text, nullable=False),
    Column("tags", Text, nullable=False),  # a JSON array of texts
    Column("created", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("kind", Text, nullable=False),  # of its last document; empty if it was never read
    Column("home", Text, nullable=False),
    Column("policy", Text, nullable=False),
    Column("etag", Text),
    Column("modified", Text),
    Column("hints", Text, nullable=False),  # JSON: when its publisher wants it to be read
    Column("notes", Text, nullable=False),  # a JSON array: what was mended in its last document
    Column("interval", BigInteger, nullable=False),
    Column("next_fetch", BigInteger, nullable=False),
    Column("last_fetch", BigInteger),
    Column("last_success", BigInteger),
    Column("last_item", BigInteger),
    Column("n_items", BigInteger, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("failing_since", BigInteger),
    Column("last_status", Integer),
    Column("last_error", Text),
    Index("tamis_sources_due", "state", "next_fetch"),
)

SOURCE_ITEMS: Final = Table(
    "tamis_source_items",  # those that a source has shown
    METADATA,
    Column("source", BigInteger, primary_key=True, autoincrement=False),
    Column("identity", LargeBinary, primary_key=True),
    Column("text", LargeBinary, nullable=False),
    Column("likeness", LargeBinary, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("seen", BigInteger, nullable=False),  # when it was last shown, to a day
    Index("tamis_source_items_alike", "source", "likeness"),
    sqlite_with_rowid=False,
)

SOURCE_OUTBOX: Final = Table(
    "tamis_source_outbox",  # items that are stored, and perhaps not yet published
    METADATA,
    _number(),
    Column("source", BigInteger, nullable=False, index=True),
    Column("key", LargeBinary, nullable=False),
    Column("event", LargeBinary, nullable=False),
    # The last event of the archive when it was stored: if it is published, then after that.
    Column("epoch", Text, nullable=False),
    Column("fence", BigInteger, nullable=False),
)

HELD_HOSTS: Final = Table(
    "tamis_held_hosts",  # that asked not to be asked before a moment
    METADATA,
    Column("host", NAME, primary_key=True),
    Column("held_until", BigInteger, nullable=False),
)

AUDIT_LOG: Final = Table(
    "tamis_audit_log",
    METADATA,
    _number(),
    Column("moment", BigInteger, nullable=False, index=True),
    Column("key_id", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("detail", Text, nullable=False),  # JSON
)

# Streams whose matches are taken, and how far.
STREAMS: Final = Table(
    "tamis_streams",
    METADATA,
    Column("stream", NAME, primary_key=True),
    Column("folder", NAME, nullable=False, unique=True),
    Column("position", Text, nullable=False),  # JSON
    Column("event", BigInteger, nullable=False),  # the last event when it was written
)


def _add_failing_since(connection: Connection) -> None:
    """Since when a digest could not be sent."""
    connection.execute(text("ALTER TABLE tamis_digests ADD COLUMN failing_since BIGINT"))


def _add_histories(connection: Connection) -> None:
    """The matches that subscriptions get of the time before them."""
    HISTORIES.create(connection)


def _add_streams(connection: Connection) -> None:
    """The streams whose matches are taken."""
    STREAMS.create(connection)


def _add_confirmations(connection: Connection) -> None:
    """Addresses of digests confirm them; those from before were not asked."""
    for name in ("asked", "confirmed"):
        connection.execute(text(f"ALTER TABLE tamis_digests ADD COLUMN {name} BIGINT"))
    connection.execute(text("UPDATE tamis_digests SET confirmed = created"))
    CONFIRMATIONS.create(connection)


def _add_sources(connection: Connection) -> None:
    """The feeds that the server reads."""
    METADATA.create_all(connection, tables=[SOURCES, SOURCE_ITEMS, SOURCE_OUTBOX], checkfirst=False)


def _add_held_hosts(connection: Connection) -> None:
    """The hosts of feeds that asked for a pause."""
    HELD_HOSTS.create(connection)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    _add_failing_since,
    _add_streams,
    _add_confirmations,
    _add_sources,
    _add_histories,
    _add_held_hosts,
)


def expect_format(connection: Connection, where: str) -> None:
    """Raise a `StoreFormatError` unless the tables can be read as they are."""
    _format().expect(connection, where)


def migrate(connection: Connection, where: str) -> None:
    """Create the tables, or migrate older ones to the current format."""
    _format().migrate(connection, where)


def take_numbers(connection: Connection, n_numbers: int = 1) -> int:
    """The first of so many unused numbers."""
    last = BROKER.c.last_number
    taken = connection.execute(
        update(BROKER).values(last_number=last + n_numbers).returning(last)
    ).scalar_one()
    return int(taken) - n_numbers + 1


def _format() -> TableFormat:
    return TableFormat("store of keys and mailboxes", BROKER, _create, MIGRATIONS)


def _create(connection: Connection, current: int) -> None:
    METADATA.create_all(connection, checkfirst=False)
    connection.execute(insert(BROKER), {"id": 1, "format": current, "last_number": 0})
