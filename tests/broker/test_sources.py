"""Feeds that the server reads: what is stored of them."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from tamis.broker.mailbox import Position
from tamis.broker.rights import LOCAL
from tamis.broker.source_fetches import Fetch, ReadDocument, SeenItem
from tamis.broker.sources import Hints, NewSource
from tamis.broker.states import SourceState
from tamis.broker.store import Broker
from tamis.broker.tables import (
    BROKER,
    HELD_HOSTS,
    HISTORIES,
    MIGRATIONS,
    SOURCE_ITEMS,
    SOURCE_OUTBOX,
    SOURCES,
    _add_sources,
)
from tamis.errors import InputError, NameTakenError, NotAllowedError, UnknownItemError
from tests.broker.places import ANN, SECRET, read_all

URL = "https://example.com/feed"
HEAD = Position("epoch", 7)


def test_a_source_is_added_changed_and_removed(broker):
    source = broker.sources.create(LOCAL, NewSource(URL, "News", ["b", "a", "b"]))
    assert (source.url, source.added_url, source.tags) == (URL, URL, ("b", "a"))
    assert broker.sources.find(URL) == source == broker.sources.get(source.number)
    assert [own.number for own in broker.sources.list_due()] == [source.number]
    changed = broker.sources.change(
        LOCAL, source.number, title="Other", tags=["c"], state=SourceState.PAUSED
    )
    assert (changed.title, changed.tags, changed.state) == ("Other", ("c",), SourceState.PAUSED)
    assert broker.sources.list_due() == []
    assert broker.sources.count() == {
        "active": 0,
        "paused": 1,
        "gone": 0,
        "moved": 0,
        "failing": 0,
    }
    broker.sources.delete(LOCAL, source.number)
    assert broker.sources.find(URL) is None
    actions = [entry.action for entry in broker.audit_log.list().items]
    assert actions == ["source.delete", "source.change", "source.create"]


def test_only_admins_handle_sources(broker):
    number = broker.sources.create(LOCAL, NewSource(URL)).number
    for act in (
        lambda: broker.sources.create(ANN, NewSource("https://example.com/2")),
        lambda: broker.sources.create_many(ANN, []),
        lambda: broker.sources.change(ANN, number, title="x"),
        lambda: broker.sources.delete(ANN, number),
    ):
        with pytest.raises(NotAllowedError):
            act()


@pytest.mark.parametrize(
    "new",
    [
        NewSource("ftp://example.com/"),
        NewSource("https://user:password@example.com/"),
        NewSource("nonsense"),
        NewSource(URL, "a\nb"),
        NewSource(URL, "", [""]),
        NewSource(URL, "", [str(n) for n in range(51)]),
    ],
)
def test_wrong_sources_are_refused(broker, new):
    with pytest.raises(InputError):
        broker.sources.create(LOCAL, new)


def test_hints_are_about_feeds(broker):
    for url, hint in (
        ("nonsense", 'write "https://example.com/feed.xml"'),
        ("https://user:password@example.com/", "feeds are read without a user name"),
    ):
        with pytest.raises(InputError) as refused:
            broker.sources.create(LOCAL, NewSource(url))
        assert refused.value.hint.startswith(hint)


def test_an_address_is_one_source(broker):
    broker.sources.create(LOCAL, NewSource(URL))
    with pytest.raises(NameTakenError, match="is source 1 already"):
        broker.sources.create(LOCAL, NewSource(URL))
    given = [NewSource(URL), NewSource("https://b.example/"), NewSource("https://b.example/")]
    added = broker.sources.create_many(
        LOCAL, [*given, NewSource("x"), NewSource("https://c.example/")]
    )
    assert (len(added.added), sorted(added.known)) == (2, ["https://b.example/", URL])
    assert len(added.refused) == 1
    urls = [own.url for own in read_all(broker.sources.list)]
    assert urls == [URL, "https://b.example/", "https://c.example/"]


def test_unknown_sources(broker):
    assert broker.sources.get(99) is None
    for act in (
        lambda: broker.sources.change(LOCAL, 99, title="x"),
        lambda: broker.sources.delete(LOCAL, 99),
    ):
        with pytest.raises(UnknownItemError, match="there is no source 99"):
            act()
    assert broker.source_fetches.record(99, Fetch(200, 1, 1), HEAD) is None
    with pytest.raises(InputError, match="active or paused"):
        broker.sources.change(LOCAL, 99, state=SourceState.GONE)


def make_document(*identities: bytes, **given) -> ReadDocument:
    items = [SeenItem(own, b"t" + own, b"l" + own, 1, 10) for own in identities]
    events = [(b"k" * 32, b"{}") for _ in identities]
    default = ReadDocument(
        "rss20", "T", "", "id", Hints(60.0, (1,), (2,)), [], '"e"', "m", items, events
    )
    return ReadDocument(**{**vars(default), **given})


def test_a_document_is_stored_with_its_events(broker):
    number = broker.sources.create(LOCAL, NewSource(URL)).number
    fetch = Fetch(200, 5, 60, document=make_document(b"1", b"2"))
    source = broker.source_fetches.record(number, fetch, HEAD)
    assert (source.title, source.etag, source.modified, source.n_items) == ("T", '"e"', "m", 2)
    assert source.hints == Hints(60.0, (1,), (2,))
    found = broker.source_fetches.find_items(number, [b"1", b"x"], [b"l2"])
    assert sorted(own.identity for own in found) == [b"1", b"2"]
    (found,) = broker.source_fetches.find_items(number, [], [], [b"t2", b"1"])
    assert found.identity == b"2"
    assert broker.source_fetches.find_items(number, [], []) == []
    waiting = broker.source_fetches.list_outbox(source=number)
    assert [(own.epoch, own.fence, own.event) for own in waiting] == [("epoch", 7, b"{}")] * 2
    broker.source_fetches.settle([waiting[0].number])
    assert broker.source_fetches.list_outbox() == waiting[1:]
    changed = make_document(items=[SeenItem(b"1", b"new", b"l", 2, 20)])
    broker.source_fetches.record(
        number, Fetch(200, 5, 60, document=changed, forget_before=15), HEAD
    )
    found = broker.source_fetches.find_items(number, [b"1", b"2"], [])
    assert [(own.text, own.revision) for own in found] == [(b"new", 2)]
    broker.sources.delete(LOCAL, number)
    assert broker.source_fetches.list_outbox() == []


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("feed://a.example/x", "http://a.example/x"),
        ("feed:a.example/x", "http://a.example/x"),
        ("FEED:https://a.example/x", "https://a.example/x"),
        ("feed://http://a.example/x", "http://a.example/x"),
        ("https://a.example/feed:x", "https://a.example/feed:x"),
    ],
)
def test_addresses_of_the_scheme_feed(broker, given, meant):
    source = broker.sources.create(LOCAL, NewSource(given))
    assert source.url == meant
    assert broker.sources.find(given) == source
    assert broker.sources.create_many(LOCAL, [NewSource(given)]).known == [meant]


def test_failures_are_counted(broker):
    number = broker.sources.create(LOCAL, NewSource(URL)).number
    for n_failed in (1, 2):
        source = broker.source_fetches.record(number, Fetch(500, 5, 60, error="e\0e"), HEAD)
        assert (source.n_failed, source.last_error) == (n_failed, "e e")
    assert source.failing_since is not None
    assert [own.number for own in broker.sources.list(is_failing=True).items] == [number]
    source = broker.source_fetches.record(number, Fetch(304, 5, 60), HEAD)
    assert (source.n_failed, source.failing_since, source.last_error) == (0, None, None)


def test_a_store_without_sources_is_migrated(store):
    Broker(store, SECRET)

    def make_old(connection) -> None:
        for table in (SOURCES, SOURCE_ITEMS, SOURCE_OUTBOX, HISTORIES, HELD_HOSTS):
            table.drop(connection)
        connection.execute(update(BROKER).values(format=1 + MIGRATIONS.index(_add_sources)))

    store.run(make_old)
    broker = Broker(store, SECRET)
    assert broker.sources.create(LOCAL, NewSource(URL)).url == URL
