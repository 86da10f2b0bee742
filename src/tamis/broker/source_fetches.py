"""What fetches of sources found: items that were seen, and events that are to be published.

A fetch is stored in one transaction: validators, schedule, items, and the events of new items in
the *outbox*. They are published afterwards. So whatever a source has shown once is published, even
if the process is killed and the source shows it no longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
from sqlalchemy import bindparam, delete, func, insert, or_, select

from tamis.broker.checking import clean_error
from tamis.broker.sources import Hints, find_by_url, get_source, update_source
from tamis.broker.states import SourceState
from tamis.broker.tables import HELD_HOSTS, SOURCE_ITEMS, SOURCE_OUTBOX, take_numbers
from tamis.errors import UnknownItemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from tamis.broker.mailbox import Position
    from tamis.broker.sources import Source
    from tamis.subscriptions import SubscriptionStore

_CHUNK: Final = 400  # values of one statement
DAY: Final = 86_400_000_000  # microseconds


class SeenItem(NamedTuple):
    """An item that a source has shown; digests as in `tamis.feeds.identity`."""

    identity: bytes
    text: bytes
    likeness: bytes
    revision: int  # how many texts of it were published
    seen: int


class OutboxEvent(NamedTuple):
    """An event of a new item."""

    number: int
    source: int
    key: bytes  # of idempotency
    event: bytes  # JSON
    epoch: str
    fence: int


@dataclass(frozen=True)
class ReadDocument:
    """What a new document of a source says."""

    kind: str
    title: str
    home: str
    policy: str
    hints: Hints
    notes: list[dict[str, Any]]
    etag: str | None
    modified: str | None
    items: Sequence[SeenItem] = ()  # new or changed, or not marked as seen for a day
    events: Sequence[tuple[bytes, bytes]] = ()  # key and event of each new or changed item


class HostHold(NamedTuple):
    """A host that is not to be asked before a moment."""

    host: str
    until: int


@dataclass(frozen=True)
class Fetch:
    """What a fetch found, and when the next one is due."""

    status: int | None
    next_fetch: int
    interval: int
    error: str | None = None
    is_held: bool = False  # it was not asked, because its host wants a pause
    document: ReadDocument | None = None  # None: nothing new
    url: str | None = None  # where it is from now on
    state: SourceState | None = None  # that it has from now on
    reason: str | None = None
    hold: HostHold | None = None  # that its host asked for
    forget_before: int = 0  # items that were last seen before that moment


class SourceFetches:
    """Stores fetches. Each source is fetched by one task at a time."""

    def __init__(self, store: SubscriptionStore) -> None:
        self._store = store

    def find_items(
        self,
        source: int,
        identities: Iterable[bytes],
        likenesses: Iterable[bytes],
        texts: Iterable[bytes] = (),
    ) -> list[SeenItem]:
        """Items of a source with one of these identities, likenesses or texts.

        Texts are compared with all items of the source; the others have an index.
        """
        asked = [
            (SOURCE_ITEMS.c.identity, list(identities)),
            (SOURCE_ITEMS.c.likeness, list(likenesses)),
            (SOURCE_ITEMS.c.text, list(texts)),
        ]
        asked = [(column, values) for column, values in asked if values]
        found: dict[bytes, SeenItem] = {}
        with self._store.read() as connection:
            for start in range(0, max((len(own) for _, own in asked), default=0), _CHUNK):
                parts = ((column, own[start : start + _CHUNK]) for column, own in asked)
                is_asked = or_(*(column.in_(part) for column, part in parts if part))
                query = select(SOURCE_ITEMS).where(SOURCE_ITEMS.c.source == source, is_asked)
                for row in connection.execute(query):
                    kept = (bytes(row.identity), bytes(row.text), bytes(row.likeness))
                    found[kept[0]] = SeenItem(*kept, row.revision, row.seen)
        return list(found.values())

    def record(self, number: int, fetch: Fetch, head: Position) -> Source | None:
        """Store a fetch; returns the source then, or None if it was removed in the meantime.

        `head` is the last event of the archive.
        """
        now = self._store.now()

        def write(connection: Connection) -> Source | None:
            try:
                source = get_source(connection, number)
            except UnknownItemError:
                return None
            values = _to_columns(source, fetch, now)
            is_moved = fetch.url is not None and fetch.url != source.url
            place = _move(connection, fetch.url) if is_moved and fetch.url else {}
            # The items of another source are published by that one.
            if fetch.document is not None and "state" not in place:
                values |= _take_document(connection, source, fetch.document, head, now)
                if fetch.forget_before:
                    _forget(connection, number, fetch.forget_before)
            update_source(connection, number, values | place)
            if fetch.hold is not None:
                _hold(connection, fetch.hold, now)
            return get_source(connection, number)

        return self._store.run(write)

    def list_holds(self) -> list[HostHold]:
        """The hosts that are not to be asked yet."""
        query = select(HELD_HOSTS).where(HELD_HOSTS.c.held_until > self._store.now())
        with self._store.read() as connection:
            return [HostHold(row.host, row.held_until) for row in connection.execute(query)]

    def list_outbox(self, *, source: int | None = None, limit: int = 1_000) -> list[OutboxEvent]:
        """Events that are perhaps not yet published, in order."""
        query = select(SOURCE_OUTBOX).order_by(SOURCE_OUTBOX.c.number).limit(limit)
        if source is not None:
            query = query.where(SOURCE_OUTBOX.c.source == source)
        with self._store.read() as connection:
            return [
                OutboxEvent(
                    row.number, row.source, bytes(row.key), bytes(row.event), row.epoch, row.fence
                )
                for row in connection.execute(query)
            ]

    def settle(self, numbers: Sequence[int]) -> None:
        """Remove events that are published."""

        def write(connection: Connection) -> None:
            for start in range(0, len(numbers), _CHUNK):
                own = SOURCE_OUTBOX.c.number.in_(numbers[start : start + _CHUNK])
                connection.execute(delete(SOURCE_OUTBOX).where(own))

        if numbers:
            self._store.run(write)


def _to_columns(source: Source, fetch: Fetch, now: int) -> dict[str, Any]:
    if fetch.is_held:
        return {"next_fetch": fetch.next_fetch, "last_error": clean_error(fetch.error)}
    is_failure = fetch.error is not None
    values: dict[str, Any] = {
        "last_fetch": now,
        "last_status": fetch.status,
        "last_error": clean_error(fetch.error),
        "next_fetch": fetch.next_fetch,
        "interval": fetch.interval,
        "failures": source.n_failed + 1 if is_failure else 0,
    }
    if not is_failure:
        values |= {"last_success": now, "failing_since": None}
        if source.state is SourceState.GONE:
            values |= {"state": SourceState.ACTIVE.value, "reason": None}
    elif source.failing_since is None:
        values["failing_since"] = now
    # An administrator may have paused it during the fetch.
    if fetch.state is not None and source.state is SourceState.ACTIVE:
        values |= {"state": fetch.state.value, "reason": clean_error(fetch.reason)}
    return values


def _take_document(
    connection: Connection, source: Source, document: ReadDocument, head: Position, now: int
) -> dict[str, Any]:
    """Store items and events; returns the columns of the source."""
    _store_items(connection, source.number, document.items)
    first = take_numbers(connection, len(document.events)) if document.events else 0
    rows = [
        OutboxEvent(number, source.number, key, event, head.epoch, head.event)._asdict()
        for number, (key, event) in enumerate(document.events, first)
    ]
    if rows:
        connection.execute(insert(SOURCE_OUTBOX), rows)
    values = {
        "kind": document.kind,
        "title": source.title or document.title,
        "home": document.home,
        "policy": document.policy,
        "hints": orjson.dumps(document.hints._asdict()).decode(),
        "notes": orjson.dumps(document.notes).decode(),
        "etag": document.etag,
        "modified": document.modified,
        "n_items": source.n_items + len(rows),
    }
    if rows:
        values["last_item"] = now
    return values


def _move(connection: Connection, url: str) -> dict[str, Any]:
    """The columns of a source that has another address from now on."""
    other = find_by_url(connection, url)
    if other is None:
        return {"url": url}
    reason = f"it moved to {url}, which is source {other.number}"
    return {"state": SourceState.MOVED.value, "reason": reason}


def _hold(connection: Connection, hold: HostHold, now: int) -> None:
    """Remember a hold, unless the host has a longer one; forget those that are over."""
    own = HELD_HOSTS.c.host == hold.host
    query = select(func.max(HELD_HOSTS.c.held_until)).where(own)
    until = max(hold.until, connection.execute(query).scalar() or 0)
    connection.execute(delete(HELD_HOSTS).where(or_(own, HELD_HOSTS.c.held_until <= now)))
    connection.execute(insert(HELD_HOSTS).values(host=hold.host, held_until=until))


def _store_items(connection: Connection, source: int, items: Sequence[SeenItem]) -> None:
    if not items:
        return
    own = SOURCE_ITEMS.c.identity == bindparam("own")
    earlier = delete(SOURCE_ITEMS).where(SOURCE_ITEMS.c.source == source, own)
    connection.execute(earlier, [{"own": item.identity} for item in items])
    rows = [{"source": source, **item._asdict()} for item in items]
    connection.execute(insert(SOURCE_ITEMS), rows)


def _forget(connection: Connection, source: int, before: int) -> None:
    is_old = SOURCE_ITEMS.c.source == source, SOURCE_ITEMS.c.seen < before
    connection.execute(delete(SOURCE_ITEMS).where(*is_old))
