"""Sources: feeds that the server reads. What a fetch found is stored by `source_fetches`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
from sqlalchemy import delete, func, insert, select, update

from tamis.arguments import expect_count
from tamis.broker.audit_log import Action, write_entry
from tamis.broker.checking import UrlHints, expect_text, expect_url, to_moment
from tamis.broker.pages import PAGE_SIZE, Cut, Page, read_page
from tamis.broker.rights import Actor, expect_admin
from tamis.broker.states import SourceState
from tamis.broker.tables import SOURCE_ITEMS, SOURCE_OUTBOX, SOURCES, take_numbers
from tamis.errors import InputError, NameTakenError, UnknownItemError
from tamis.language.types.moments import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from tamis.subscriptions import SubscriptionStore

FIRST_INTERVAL: Final = 3_600  # seconds
MOST_TAGS: Final = 50
_URL_HINTS: Final = UrlHints(
    "https://example.com/feed.xml",
    "feeds are read without a user name or a password; leave them out",
)
_FEED: Final = re.compile(r"feed:(?://)?", re.IGNORECASE)
_CHANGEABLE: Final = (SourceState.ACTIVE, SourceState.PAUSED)


class NewSource(NamedTuple):
    """A feed to read."""

    url: str
    title: str = ""  # empty: the one that its documents have
    tags: Sequence[str] = ()


class Hints(NamedTuple):
    """When a publisher wants a feed to be read."""

    least_interval: float = 0.0  # seconds
    skip_hours: tuple[int, ...] = ()  # UTC
    skip_days: tuple[int, ...] = ()  # Monday is 0


class Source(NamedTuple):
    """A feed that the server reads."""

    number: int
    url: str  # where it is now
    added_url: str  # where it was when it was added; the attribute `feed` of its items
    title: str
    tags: tuple[str, ...]
    created: datetime
    state: SourceState
    reason: str | None
    kind: str  # such as "rss20"; empty if it was never read
    home: str
    policy: str  # what distinguishes its items: id, link or text
    etag: str | None
    modified: str | None
    hints: Hints
    notes: list[dict[str, Any]]
    interval: int  # seconds between fetches, by how often it changes
    next_fetch: datetime
    last_fetch: datetime | None
    last_success: datetime | None
    last_item: datetime | None
    n_items: int  # that were published, updates included
    n_failed: int  # fetches since the last success
    failing_since: datetime | None
    last_status: int | None
    last_error: str | None

    def to_json(self) -> dict[str, Any]:
        """The source for people and programs, without validators and hints."""
        hidden = ("etag", "modified", "hints")
        plain = {name: value for name, value in self._asdict().items() if name not in hidden}
        return {**plain, "tags": list(self.tags), "state": self.state.value}


class Added(NamedTuple):
    """What became of sources to add."""

    added: list[int]  # their numbers
    known: list[str]  # addresses that are sources already
    refused: list[str]  # messages


class Sources:
    """The sources of a server."""

    def __init__(self, store: SubscriptionStore) -> None:
        self._store = store

    def create(self, actor: Actor, new: NewSource) -> Source:
        """Add a source; it is due at once. Raises a `NameTakenError` if its address is one."""
        expect_admin(actor, "add feeds")
        row = _check(new)
        now = self._store.now()

        def write(connection: Connection) -> Source:
            known = find_by_url(connection, row["url"])
            if known is not None:
                raise NameTakenError(f"{row['url']} is source {known.number} already")
            return _insert(connection, actor, row, now)

        return self._store.run(write)

    def create_many(self, actor: Actor, given: Iterable[NewSource]) -> Added:
        """Add sources; those that are known or cannot be used do not affect the others."""
        expect_admin(actor, "add feeds")
        now = self._store.now()
        rows: dict[str, dict[str, Any]] = {}
        refused, known = [], []
        for new in given:
            try:
                row = _check(new)
            except InputError as error:
                refused.append(error.message)
                continue
            if rows.setdefault(row["url"], row) is not row:
                known.append(row["url"])

        def write(connection: Connection) -> list[int]:
            added = []
            for url, row in rows.items():
                if find_by_url(connection, url) is not None:
                    known.append(url)
                else:
                    added.append(_insert(connection, actor, row, now).number)
            return added

        return Added(self._store.run(write), known, refused)

    def get(self, number: int) -> Source | None:
        """The source with this number."""
        query = select(SOURCES).where(SOURCES.c.number == expect_count(number, "number"))
        with self._store.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else to_source(row)

    def find(self, url: str) -> Source | None:
        """The source at an address, now or when it was added."""
        url = _spell_url(url)
        with self._store.read() as connection:
            found = find_by_url(connection, url)
            if found is None:
                query = select(SOURCES).where(SOURCES.c.added_url == url).limit(1)
                row = connection.execute(query).one_or_none()
                found = None if row is None else to_source(row)
        return found

    def list(
        self,
        *,
        state: SourceState | None = None,
        is_failing: bool | None = None,
        after: int | None = None,
        limit: int = PAGE_SIZE,
    ) -> Page[Source]:
        """A page of the sources, the oldest first."""
        query = select(SOURCES)
        if state is not None:
            query = query.where(SOURCES.c.state == state.value)
        if is_failing is not None:
            failing = SOURCES.c.failures > 0
            query = query.where(failing if is_failing else ~failing)
        return read_page(self._store, query, Cut(SOURCES.c.number, after, limit), to_source)

    def list_due(self, *, limit: int = PAGE_SIZE) -> Sequence[Source]:
        """Sources that are due, the longest waiting first."""
        is_due = SOURCES.c.next_fetch <= self._store.now()
        query = select(SOURCES).where(SOURCES.c.state == SourceState.ACTIVE.value, is_due)
        query = query.order_by(SOURCES.c.next_fetch, SOURCES.c.number)
        with self._store.read() as connection:
            rows = connection.execute(query.limit(expect_count(limit, "limit")))
            return [to_source(row) for row in rows]

    def count(self) -> dict[str, int]:
        """How many sources are in each state; "failing" ones are active too."""
        query = select(SOURCES.c.state, func.count()).group_by(SOURCES.c.state)
        failing = select(func.count()).where(
            SOURCES.c.failures > 0, SOURCES.c.state == SourceState.ACTIVE.value
        )
        with self._store.read() as connection:
            counts = {state.value: 0 for state in SourceState}
            counts |= {str(state): int(n) for state, n in connection.execute(query)}
            return counts | {"failing": connection.execute(failing).scalar_one()}

    def change(
        self,
        actor: Actor,
        number: int,
        *,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        state: SourceState | None = None,
    ) -> Source:
        """Change what is given; a source that becomes active is due at once."""
        expect_admin(actor, "change feeds")
        now = self._store.now()
        values: dict[str, Any] = {}
        if title is not None:
            values["title"] = expect_text(title, "title", may_be_empty=True)
        if tags is not None:
            values["tags"] = _spell_tags(tags)
        if state is not None:
            if state not in _CHANGEABLE:
                raise InputError(f"state is {state.value}; active or paused is expected")
            values |= {"state": state.value, "reason": None, "next_fetch": now}

        def write(connection: Connection) -> Source:
            source = get_source(connection, number)
            if values:
                update_source(connection, number, values)
                detail = {"url": source.url, "changed": sorted(values)}
                write_entry(connection, now, Action(actor, "source.change", str(number), detail))
            return get_source(connection, number)

        return self._store.run(write)

    def delete(self, actor: Actor, number: int) -> Source:
        """Stop reading the feed, and forget its items; what was published stays in the archive."""
        expect_admin(actor, "remove feeds")
        now = self._store.now()

        def write(connection: Connection) -> Source:
            source = get_source(connection, number)
            for table in (SOURCE_ITEMS, SOURCE_OUTBOX):
                connection.execute(delete(table).where(table.c.source == number))
            connection.execute(delete(SOURCES).where(SOURCES.c.number == number))
            detail = {"url": source.url}
            write_entry(connection, now, Action(actor, "source.delete", str(number), detail))
            return source

        return self._store.run(write)


def find_by_url(connection: Connection, url: str) -> Source | None:
    """The source that is at an address now."""
    row = connection.execute(select(SOURCES).where(SOURCES.c.url == url)).one_or_none()
    return None if row is None else to_source(row)


def get_source(connection: Connection, number: int) -> Source:
    """A source; raises an `UnknownItemError` if there is none."""
    query = select(SOURCES).where(SOURCES.c.number == expect_count(number, "number"))
    row = connection.execute(query).one_or_none()
    if row is None:
        raise UnknownItemError(f"there is no source {number}")
    return to_source(row)


def update_source(connection: Connection, number: int, values: Mapping[str, Any]) -> None:
    """Change columns of a source."""
    connection.execute(update(SOURCES).where(SOURCES.c.number == number).values(**values))


def _check(new: NewSource) -> dict[str, Any]:
    return {
        "url": expect_url(_spell_url(new.url), hints=_URL_HINTS),
        "title": expect_text(new.title, "title", may_be_empty=True),
        "tags": _spell_tags(new.tags),
    }


def _spell_url(url: str) -> str:
    """An address as it is fetched: feed://… means http://…, and feed:https://… means https://…"""
    found = _FEED.match(url) if isinstance(url, str) else None
    if found is None:
        return url
    rest = url[found.end() :]
    return rest if rest.lower().startswith(("http://", "https://")) else f"http://{rest}"


def _spell_tags(tags: Sequence[str]) -> str:
    checked = list(dict.fromkeys(expect_text(tag, "tag") for tag in tags))
    if len(checked) > MOST_TAGS:
        raise InputError(f"there are {len(checked)} tags; at most {MOST_TAGS} are allowed")
    return orjson.dumps(checked).decode()


def _insert(connection: Connection, actor: Actor, row: dict[str, Any], now: int) -> Source:
    number = take_numbers(connection)
    values = {
        "number": number,
        "added_url": row["url"],
        "created": now,
        "state": SourceState.ACTIVE.value,
        "kind": "",
        "home": "",
        "policy": "id",
        "hints": "{}",
        "notes": "[]",
        "interval": FIRST_INTERVAL,
        "next_fetch": now,
        "n_items": 0,
        "failures": 0,
    }
    connection.execute(insert(SOURCES), {**values, **row})
    detail = {"url": row["url"]}
    write_entry(connection, now, Action(actor, "source.create", str(number), detail))
    return get_source(connection, number)


def to_source(row: Any) -> Source:
    """The source of a row."""
    hints = orjson.loads(row.hints)
    return Source(
        number=row.number,
        url=row.url,
        added_url=row.added_url,
        title=row.title,
        tags=tuple(orjson.loads(row.tags)),
        created=from_microseconds(row.created),
        state=SourceState(row.state),
        reason=row.reason,
        kind=row.kind,
        home=row.home,
        policy=row.policy,
        etag=row.etag,
        modified=row.modified,
        hints=Hints(**{name: _freeze(value) for name, value in hints.items()}),
        notes=orjson.loads(row.notes),
        interval=row.interval,
        next_fetch=from_microseconds(row.next_fetch),
        last_fetch=to_moment(row.last_fetch),
        last_success=to_moment(row.last_success),
        last_item=to_moment(row.last_item),
        n_items=row.n_items,
        n_failed=row.failures,
        failing_since=to_moment(row.failing_since),
        last_status=row.last_status,
        last_error=row.last_error,
    )


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
