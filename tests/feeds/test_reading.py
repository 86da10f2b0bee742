"""Sources are read: what each answer of a web server leads to. Nothing is lost, nothing doubled."""

from __future__ import annotations

import gzip
import time
import zlib
from dataclasses import replace
from datetime import timedelta
from threading import Lock

import pytest

from tamis.broker.mailbox import Position
from tamis.broker.rights import LOCAL
from tamis.broker.source_fetches import Fetch, HostHold
from tamis.broker.states import SourceState
from tamis.feeds.fetching import FetchLimits
from tamis.feeds.unpacking import Unpacker
from tamis.language.types.moments import from_microseconds, to_microseconds
from tamis.outgoing import CheckedClient
from tamis.subscriptions import Subscribe
from tests.feeds.places import item, rss
from tests.feeds.site import NO_LENGTH, Asked, Page, run_site

EVERY_STORE = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
DATE = "Wed, 01 Jan 2020 00:00:00 GMT"


def news(*names: str, **given) -> bytes:
    """A feed with items of these names, the newest first."""
    return rss(*(item(name, guid=f"id-{name}", date=DATE) for name in names), **given)


@EVERY_STORE
def test_items_become_events_and_match(reading, site):
    reading.server.live.store.apply([Subscribe("flood", "contains(title, 'Flood')")])
    body = rss(
        item(
            "Flood",
            guid="2",
            link="/2",
            body="&lt;p&gt;Water&lt;/p&gt;",
            category=["weather"],
            author="Ann",
            date="Thu, 02 Jan 2020 00:00:00 GMT",
        ),
        item("Drought", guid="1", date=DATE),
        channel="<language>en-us</language>",
    )
    number = reading.add(site.put("/feed", body), tags=("local",))
    source = reading.fetch(number)
    assert (source.kind, source.title, source.n_items) == ("rss20", "News", 2)
    assert (source.last_status, source.last_error, source.notes) == (200, None, [])
    drought, flood = reading.events()  # the oldest first
    assert drought == {
        "title": "Drought",
        "body": "",
        "feed": f"{site.url}/feed",
        "feed_title": "News",
        "tags": ["local"],
        "categories": [],
        "published": "2020-01-01T00:00:00Z",
        "revision": 1,
        "id": "1",
        "lang": "en",
        "title_en": "Drought",
        "body_en": "",
    }
    assert (flood["body"], flood["link"], flood["author"]) == ("Water", f"{site.url}/2", "Ann")
    assert flood["categories"] == ["weather"]
    assert reading.server.broker.source_fetches.list_outbox() == []


@EVERY_STORE
def test_what_is_known_is_not_published_again(reading, site):
    number = reading.add(site.put("/feed", news("one")))
    reading.fetch(number)
    reading.fetch(number)
    site.put("/feed", news("two", "one"))
    assert reading.fetch(number).n_items == 2
    assert reading.titles() == ["one", "two"]


def test_an_item_is_new_again_if_its_text_changes(reading, site):
    def show(body: str, **given) -> None:
        site.put("/feed", rss(item("one", guid="1", body=body, **given)))
        reading.fetch(number)

    number = reading.add(site.put("/feed"))
    show("a", date=DATE)
    show("a", date="Thu, 02 Jan 2020 00:00:00 GMT")  # an update of its date
    show("&lt;p&gt;a&lt;/p&gt;", category=["c"])  # of its markup and categories
    show("a", link="/elsewhere")
    assert [own["revision"] for own in reading.events()] == [1]
    show("b")
    show("a")
    assert [(own["body"], own["revision"]) for own in reading.events()] == [
        ("a", 1),
        ("b", 2),
        ("a", 3),
    ]


def test_an_item_that_never_rests_is_reported(reading, site, monkeypatch):
    monkeypatch.setattr("tamis.feeds.selecting.MOST_REVISIONS", 3)
    number = reading.add(site.put("/feed"))
    for n in range(6):
        site.put("/feed", rss(item("one", guid="1", body=str(n), date=DATE)))
        source = reading.fetch(number)
    assert [own["body"] for own in reading.events()] == ["0", "1", "2"]
    assert [note["kind"] for note in source.notes] == ["restless-item"]


# ── identities ──────────────────────────────────────────────────────────────────────────────


def test_equal_ids_of_two_feeds_are_two_items(reading, site):
    numbers = [reading.add(site.put(path, news("one"))) for path in ("/a", "/b")]
    reading.fetch(*numbers)
    assert reading.titles() == ["one", "one"]


def test_duplicate_ids_change_the_policy_for_good(reading, site):
    number = reading.add(site.put("/feed", rss(item("a", guid="x", link="/a"))))
    assert reading.fetch(number).policy == "id"
    both = rss(item("b", guid="x", link="/b"), item("a", guid="x", link="/a"))
    site.put("/feed", both)
    source = reading.fetch(number)
    assert source.policy == "link"
    assert "duplicate-ids" in [note["kind"] for note in source.notes]
    assert reading.titles() == ["a", "b"]  # a was known
    site.put("/feed", rss(item("b", guid="x", link="/b")))
    assert reading.fetch(number).policy == "link"
    same_link = rss(item("c", guid="x", link="/b"), item("b", guid="x", link="/b"))
    site.put("/feed", same_link)
    assert reading.fetch(number).policy == "text"
    reading.fetch(number)
    assert reading.titles() == ["a", "b", "c"]


def test_changing_ids_change_the_policy_for_good(reading, site):
    names = [f"n{n}" for n in range(6)]

    def show(round_: int, *more: str) -> None:
        items = [
            item(name, guid=f"{name}-{round_}", link=f"/{name}", date=DATE)
            for name in (*more, *names)
        ]
        site.put("/feed", rss(*items))

    number = reading.add(site.put("/feed"))
    show(1)
    reading.fetch(number)
    show(2)
    source = reading.fetch(number)
    assert source.policy == "link"
    assert "changing-ids" in [note["kind"] for note in source.notes]
    show(3, "new")
    reading.fetch(number)
    assert sorted(reading.titles()) == sorted([*names, "new"])


def test_changing_ids_and_links_change_the_policy_to_text(reading, site):
    names = [f"n{n}" for n in range(6)]

    def show(session: int, *more: str) -> None:
        items = [
            item(name, guid=f"{name}-{session}", link=f"/{name}?session={session}", date=DATE)
            for name in (*more, *names)
        ]
        site.put("/feed", rss(*items))

    number = reading.add(site.put("/feed"))
    show(1)
    assert reading.fetch(number).policy == "id"
    show(2, "new")
    source = reading.fetch(number)
    assert source.policy == "text"
    assert "changing-ids" in [note["kind"] for note in source.notes]
    names = names[3:]  # the others appear again later
    show(3, "newer", "new")
    reading.fetch(number)
    names = [f"n{n}" for n in range(6)]
    show(4, "newer", "new")
    reading.fetch(number)
    assert sorted(reading.titles()) == sorted([*names, "new", "newer"])


def test_texts_that_a_feed_repeats_are_new_items(reading, site):
    """Such as warnings: each has another id and another link, and some earlier ones are shown."""
    number = reading.add(site.put("/feed"))
    for day in range(4):
        shown = [
            item(
                "Storm", guid=f"{day - n // 6}-{n % 6}", link=f"/{day - n // 6}/{n % 6}", date=DATE
            )
            for n in range(12)
        ]
        site.put("/feed", rss(*shown))
        assert reading.fetch(number).policy == "id"
    assert len(reading.titles()) == 6 * 5


def test_one_item_with_another_id_is_known(reading, site):
    def show(guid: str) -> None:
        site.put("/feed", rss(item("a", guid=guid, link="/a", date=DATE)))

    number = reading.add(site.put("/feed"))
    for guid in ("1", "2", "2"):
        show(guid)
        assert reading.fetch(number).policy == "id"
    assert reading.titles() == ["a"]


def test_an_item_that_is_shown_twice_is_used_once(reading, site):
    number = reading.add(site.put("/feed", news("a", "a")))
    assert [note["kind"] for note in reading.fetch(number).notes] == ["repeated-item"]
    assert reading.titles() == ["a"]


def test_seen_items_are_not_forgotten_while_they_are_shown(reading, site):
    number = reading.add(site.put("/feed", news("shown", "dropped")))
    reading.fetch(number)
    site.put("/feed", news("shown"))
    for _ in range(5):
        reading.clock.pass_by(days=100)
        reading.fetch(number)
    site.put("/feed", news("shown", "dropped"))
    reading.fetch(number)
    assert reading.titles() == ["dropped", "shown", "dropped"]


# ── dates ───────────────────────────────────────────────────────────────────────────────────


def test_dates_that_cannot_be_true_are_mended(reading, site):
    items = [
        item("none", guid="1"),
        item("future", guid="2", date="2099-01-01T00:00:00Z"),
        item("soon", guid="3", date="2026-06-01T12:05:00Z"),
    ]
    source = reading.fetch(reading.add(site.put("/feed", rss(*items))))
    found = {own["title"]: own["published"] for own in reading.events()}
    assert found == {
        "none": "2026-06-01T12:00:00Z",
        "future": "2026-06-01T12:00:00Z",
        "soon": "2026-06-01T12:05:00Z",
    }
    assert [(note["kind"], note["count"]) for note in source.notes] == [
        ("future-date", 1),
        ("no-date", 1),
    ]
    reading.clock.pass_by(days=1)
    reading.fetch(source.number)
    assert len(reading.events()) == 3  # a mended date is no new item


# ── HTTP ────────────────────────────────────────────────────────────────────────────────────


def conditional(body: bytes):
    """A page with both validators, which answers 304 only if both are sent."""

    def answer(asked: Asked) -> Page:
        headers = {"etag": 'W/"v1"', "last-modified": "Wed, 01 Jan 2020 00:00:00 GMT"}
        sent = (asked.headers.get("if-none-match"), asked.headers.get("if-modified-since"))
        is_known = sent == (headers["etag"], headers["last-modified"])
        return Page(b"" if is_known else body, 304 if is_known else 200, headers)

    return answer


def test_both_validators_are_sent(reading, site):
    site.pages["/feed"] = conditional(news("one"))
    number = reading.add(f"{site.url}/feed")
    assert reading.fetch(number).last_status == 200
    source = reading.fetch(number)
    assert (source.last_status, source.last_error, source.kind) == (304, None, "rss20")
    site.pages["/feed"] = Page(news("two", "one"))  # without validators
    assert reading.fetch(number).etag is None
    reading.fetch(number)
    assert "if-none-match" not in site.last("/feed").headers
    assert reading.titles() == ["one", "two"]


def test_validators_that_cannot_be_sent_are_left_out(reading, site):
    odd = {"etag": '"\xe9"', "last_modified": "Mi, 01 J\xe4n 2020"}
    number = reading.add(site.put("/feed", news("one"), **odd))
    reading.fetch(number)
    site.put("/feed", news("two", "one"), **odd)
    assert reading.fetch(number).last_error is None
    assert not {"if-none-match", "if-modified-since"} & set(site.last("/feed").headers)
    assert reading.titles() == ["one", "two"]


def test_no_failure_of_a_fetch_leaves_a_source_due(reading, site, monkeypatch):
    async def fail(*_):
        raise ExceptionGroup("of tasks", [OverflowError("port")])

    number = reading.add(site.put("/feed", news("one")))
    with monkeypatch.context() as patch:
        patch.setattr(CheckedClient, "send", fail)
        source = reading.fetch(number)
    assert "of tasks" in source.last_error
    assert source.next_fetch > reading.clock.now
    reading.fetch(number)
    assert reading.titles() == ["one"]


def test_an_answer_that_nothing_is_new_needs_a_condition(reading, site):
    source = reading.fetch(reading.add(site.put("/feed", status=304)))
    assert source.last_error == "the answer is 304"


def test_validators_of_a_document_that_cannot_be_read_are_not_kept(reading, site):
    number = reading.add(site.put("/feed", b"nonsense", etag='"1"'))
    assert "neither RSS nor Atom" in reading.fetch(number).last_error
    body = news("one", "two")
    site.put("/feed", body[: body.index(b"<guid>id-two")], etag='"2"')
    source = reading.fetch(number)
    assert (source.etag, reading.titles()) == (None, ["one"])
    site.put("/feed", body, etag='"3"')
    assert reading.fetch(number).etag == '"3"'
    assert reading.titles() == ["one", "two"]


def cut_first(body: bytes, cut: bytes, **headers: str):
    """A page whose first answer is cut, without a length, and whose validator never changes."""
    answers = iter([cut])

    def answer(asked: Asked) -> Page:
        own = {"etag": '"1"', **headers}
        if asked.headers.get("if-none-match") == '"1"':
            return Page(status=304, headers=own)
        return Page(next(answers, body), headers=own, declared=NO_LENGTH)

    return answer


def test_items_after_a_cut_are_not_lost(reading, site):
    body = news("two", "one")
    ends = [body.index(b"</item>") + len(b"</item>"), body.rindex(b"</channel>"), len(body) - 1]
    for n, end in enumerate(ends):
        site.pages[f"/{n}"] = cut_first(body, body[:end])
        number = reading.add(f"{site.url}/{n}")
        first = reading.fetch(number)
        assert (first.last_status, first.etag) == (200, None)
        assert "cut-off" in [note["kind"] for note in first.notes]
        second = reading.fetch(number)
        assert (second.n_items, second.etag, second.notes) == (2, '"1"', [])
        assert reading.fetch(number).last_status == 304
    assert sorted(reading.titles()) == ["one"] * 3 + ["two"] * 3


def test_broken_documents_are_asked_for_as_a_whole(reading, site):
    body = rss(item("one &nbsp;", guid="1", date=DATE))
    source = reading.fetch(reading.add(site.put("/feed", body, etag='"1"')))
    assert ([note["kind"] for note in source.notes], source.etag) == (["broken-xml"], None)


@pytest.mark.parametrize("n_bytes", [1, 10_000])
def test_a_body_that_is_shorter_than_declared_is_a_failure(reading, site, n_bytes):
    body = news("one")
    site.pages["/feed"] = Page(body, headers={"etag": '"1"'}, declared=len(body) + n_bytes)
    number = reading.add(f"{site.url}/feed")
    source = reading.fetch(number)
    assert "without sending complete message body" in source.last_error
    assert (source.etag, reading.titles()) == (None, [])
    site.put("/feed", body)
    reading.fetch(number)
    assert reading.titles() == ["one"]


def test_a_body_that_is_longer_than_declared_is_cut_off(reading, site):
    """Such as a packed one with the length of another: HTTP ends it there."""
    body = news("two", "one")
    declared = body.index(b"</item>") + len(b"</item>")
    site.pages["/feed"] = Page(body, headers={"etag": '"1"'}, declared=declared)
    number = reading.add(f"{site.url}/feed")
    assert reading.fetch(number).etag is None
    site.put("/feed", body, etag='"1"')
    assert reading.fetch(number).etag == '"1"'
    assert reading.titles() == ["two", "one"]


def deflate(body: bytes) -> bytes:
    """Without the header that RFC 9110 asks for: some servers leave it out."""
    return zlib.compress(body, wbits=-zlib.MAX_WBITS)


def gzip_in_members(body: bytes) -> bytes:
    """Files of gzip, one after the other: a valid file."""
    parts = (body[:100], b"", body[100:101], body[101:])
    return b"".join(map(gzip.compress, parts))


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("gzip", gzip_in_members),
        ("x-gzip", lambda body: gzip.compress(body) + bytes(512)),  # padding
        ("gzip", lambda body: gzip.compress(body) + b"\n"),
        ("deflate", zlib.compress),
        ("deflate", deflate),
        ("deflate", gzip.compress),
        ("", bytes),
    ],
)
def test_packed_documents(reading, site, encoding, pack):
    headers = {"content_encoding": encoding} if encoding else {}
    reading.fetch(reading.add(site.put("/feed", pack(news("one")), **headers)))
    assert "gzip" in site.last("/feed").headers["accept-encoding"]
    assert reading.titles() == ["one"]


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip_in_members), ("deflate", deflate), ("gzip", zlib.compress)]
)
def test_packed_pieces_of_any_size(encoding, pack, n_bytes):
    body = news(*(f"t{n}" for n in range(50)))
    packed = pack(body)
    unpacker = Unpacker(encoding)
    pieces = (packed[at : at + n_bytes] for at in range(0, len(packed), n_bytes))
    assert b"".join(own for piece in pieces for own in unpacker.unpack(piece)) == body
    assert unpacker.is_whole


def test_a_packed_document_that_ends_after_a_member_is_cut_off(reading, site):
    body = news("two", "one")
    end = body.index(b"</item>") + len(b"</item>")
    packed = [gzip.compress(body[:end]), gzip.compress(body[end:])]
    headers = {"content-encoding": "gzip"}
    site.pages["/feed"] = cut_first(b"".join(packed), packed[0], **headers)
    number = reading.add(f"{site.url}/feed")
    assert (reading.fetch(number).etag, reading.titles()) == (None, ["two"])
    reading.fetch(number)
    assert reading.titles() == ["two", "one"]


BOMB = gzip.compress(news("one") + b" " * (64 << 20))


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (Page(status=404), "the answer is 404"),
        (Page(status=500), "the answer is 500"),
        (Page(BOMB, headers={"content-encoding": "gzip"}), "more than 1,048,576 bytes"),
        (Page(news("x" * (2 << 20))), "more than 1,048,576 bytes"),
        (Page(endless=b"x" * 65_536), "more than 1,048,576 bytes"),
        (Page(b"no gzip", headers={"content-encoding": "gzip"}), "damaged"),
        (Page(gzip.compress(b"") * 60_000, headers={"content-encoding": "gzip"}), "1,048,576"),
        (Page(gzip.compress(b"a") + BOMB, headers={"content-encoding": "gzip"}), "1,048,576"),
        (Page(gzip.compress(b"a") * 2 + b"\x1f\x8b", headers={"content-encoding": "gzip"}), "cut"),
        (Page(gzip.compress(news("a"))[:-9], headers={"content-encoding": "gzip"}), "cut off"),
        (Page(b"x", headers={"content-encoding": "br"}), "was not asked for"),
        (Page(status=302), "names no address"),
        (Page(status=301, headers={"location": "ftp://example.com/"}), "leads to 'ftp:"),
        (Page(status=302, headers={"location": "http://127.0.0.1:99999/"}), "leads to 'http:"),
        (Page(status=302, headers={"location": "http://a..b/"}), "label empty"),
        (Page(status=302, headers={"location": "/feed"}), "circle"),
        (Page(b""), "the document is empty"),
    ],
)
def test_answers_that_are_failures(reading, site, page, message):
    site.pages["/feed"] = page
    number = reading.add(f"{site.url}/feed")
    source = reading.fetch(number)
    assert message in source.last_error
    assert (source.n_failed, source.state) == (1, SourceState.ACTIVE)
    assert source.next_fetch > reading.clock.now
    assert reading.fetch(number).n_failed == 2
    site.put("/feed", news("one"))
    source = reading.fetch(number)
    assert (source.n_failed, source.failing_since, source.last_error) == (0, None, None)
    assert reading.titles() == ["one"]


def test_a_silent_server_is_given_up(reading, site):
    site.pages["/feed"] = Page(silent=True)
    reading.options = replace(
        reading.options, limits=FetchLimits(patience=0.05, allow_private=True)
    )
    source = reading.fetch(reading.add(f"{site.url}/feed"))
    assert source.last_error == "no complete answer within 0.05 s"


def test_private_addresses_are_refused_unless_allowed(reading, site):
    number = reading.add(site.put("/feed", news("one")))
    reading.options = replace(reading.options, limits=FetchLimits())
    source = reading.fetch(number)
    assert source.last_error == "refused: 127.0.0.1 has an address that is not public"
    assert site.asked == []


def test_redirects_are_checked_too(reading, site, monkeypatch):
    from tamis.outgoing import CheckedClient

    inner = site.put("/feed", news("secret"))
    site.pages["/moved"] = Page(status=302, headers={"location": "http://[::1]:9/feed"})
    seen = []
    own = CheckedClient.find_addresses

    async def find(self, url):
        seen.append(url.host)
        return await own(self, url)

    monkeypatch.setattr(CheckedClient, "find_addresses", find)
    reading.fetch(reading.add(f"{site.url}/moved"))
    assert seen == ["127.0.0.1", "::1"]
    assert inner


def test_permanent_redirects_are_remembered(reading, site):
    site.put("/old", status=301, location="/newer")
    site.put("/newer", status=308, location="/newest")
    site.put("/newest", news("one"), etag='"1"')
    source = reading.fetch(reading.add(f"{site.url}/old"))
    assert (source.url, source.added_url) == (f"{site.url}/newest", f"{site.url}/old")
    reading.fetch(source.number)
    assert site.count("/old") == 1
    assert reading.events()[0]["feed"] == f"{site.url}/old"


def test_temporary_redirects_are_not(reading, site):
    site.put("/old", status=301, location="/newer")
    site.put("/newer", status=302, location="/today")
    site.pages["/today"] = conditional(news("one"))
    source = reading.fetch(reading.add(f"{site.url}/old"))
    assert source.url == f"{site.url}/newer"
    assert reading.fetch(source.number).last_status == 304  # validators are sent along
    assert reading.titles() == ["one"]


def test_a_redirect_to_a_failure_is_not_remembered(reading, site):
    site.put("/old", status=301, location="/login")
    site.put("/login", b"<html><body>Log in</body></html>")
    source = reading.fetch(reading.add(f"{site.url}/old"))
    assert (source.url, source.last_error) == (f"{site.url}/old", "the document is a web page")


def test_a_move_to_another_source_ends_this_one(reading, site):
    other = reading.add(site.put("/new", news("one")))
    number = reading.add(site.put("/old", status=301, location="/new"))
    source = reading.fetch(number)
    assert (source.state, source.url) == (SourceState.MOVED, f"{site.url}/old")
    assert source.reason == f"it moved to {site.url}/new, which is source {other}"
    assert reading.titles() == []
    reading.fetch(other)
    assert reading.titles() == ["one"]


def test_a_page_that_names_the_feed_of_another_source_publishes_nothing(reading, site):
    other = reading.add(site.put("/feed", news("one")))
    reading.fetch(other)
    link = '<link rel="alternate" type="application/rss+xml" href="/feed">'
    page = f"<html><head>{link}</head><body></body></html>".encode()
    source = reading.fetch(reading.add(site.put("/page", page)))
    assert (source.state, source.n_items) == (SourceState.MOVED, 0)
    assert source.reason == f"it moved to {site.url}/feed, which is source {other}"
    assert reading.titles() == ["one"]


def test_endless_redirects(reading, site):
    for n in range(20):
        site.put(f"/{n}", status=301, location=f"/{n + 1}")
    source = reading.fetch(reading.add(f"{site.url}/0"))
    assert source.last_error == "there are more than 8 redirects"


def test_gone_is_for_good_unless_it_comes_back(reading, site):
    number = reading.add(site.put("/feed", status=410))
    source = reading.fetch(number)
    assert (source.state, source.last_status) == (SourceState.GONE, 410)
    reading.clock.pass_by(days=1000)
    assert reading.sources.list_due() == []
    site.put("/feed", news("one"))
    assert reading.fetch(number).state is SourceState.ACTIVE


def test_only_the_source_itself_can_be_gone(reading, site):
    """Neither what is in its place today, nor the feed that its page names today."""
    site.put("/gone", status=410)
    today = reading.add(site.put("/today", status=302, location="/gone"))
    source = reading.fetch(today)
    assert (source.state, source.last_error) == (SourceState.ACTIVE, "the answer is 410")
    link = '<link rel="alternate" type="application/rss+xml" href="/gone">'
    page = reading.add(site.put("/page", f"<html><head>{link}</head></html>".encode()))
    assert reading.fetch(page).state is SourceState.ACTIVE
    site.put("/today", status=301, location="/gone")
    assert reading.fetch(today).state is SourceState.GONE


def test_the_feed_of_a_page_is_found(reading, site):
    link = '<link rel="alternate" type="application/rss+xml" href="{}">'
    site.put("/", f"<html><head>{link.format('/feed')}</head></html>".encode())
    site.put("/feed", news("one"))
    source = reading.fetch(reading.add(f"{site.url}/"))
    assert (source.url, source.added_url) == (f"{site.url}/feed", f"{site.url}/")
    assert reading.titles() == ["one"]
    links = link.format("/a") + link.format("/b")
    site.put("/many", f"<html><head>{links}</head></html>".encode())
    source = reading.fetch(reading.add(f"{site.url}/many"))
    assert source.last_error == (
        f"the page names 2 feeds; add one of them: {site.url}/a, {site.url}/b"
    )
    site.put("/self", f"<html><head>{link.format('/loop')}</head></html>".encode())
    site.put("/loop", f"<html><head>{link.format('/self')}</head></html>".encode())
    source = reading.fetch(reading.add(f"{site.url}/self"))
    assert source.last_error == "the linked feed is a web page"


# ── politeness ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("asked", "held"), [(600, 600), (7_200, 3_600), (10**9, 3_600)])
def test_retry_after_holds_the_whole_host(reading, site, asked, held):
    """The others for an hour at most: one feed must not stop all of a shared host for days."""
    busy = reading.add(site.put("/busy", status=503, retry_after=str(asked)))
    other = reading.add(site.put("/other", news("one")))
    source = reading.fetch(busy, other)
    assert "asked for a pause" in source.last_error
    assert source.n_failed == 0
    seconds = (source.next_fetch - reading.clock.now) / timedelta(seconds=1)
    assert 0.9 * held < seconds < 1.15 * held
    own = timedelta(seconds=min(asked, 7 * 86_400))
    assert reading.sources.get(busy).next_fetch >= reading.clock.now + own
    assert site.count("/other") == 0


@EVERY_STORE
def test_the_pause_of_a_host_survives_a_restart(reading, site):
    """Each `fetch` has a worker of its own."""
    busy = reading.add(site.put("/busy", status=429, retry_after="1800"))
    other = reading.add(site.put("/other", news("one")))
    reading.fetch(busy)
    reading.clock.pass_by(minutes=29)
    assert "asked for a pause of" in reading.fetch(other).last_error
    assert site.count("/other") == 0
    assert [own.host for own in reading.server.broker.source_fetches.list_holds()] == ["127.0.0.1"]
    reading.clock.pass_by(minutes=2)
    assert reading.fetch(other).last_error is None
    assert reading.titles() == ["one"]
    site.put("/busy", status=429, retry_after="60")
    reading.fetch(busy)
    (hold,) = reading.server.broker.source_fetches.list_holds()
    assert from_microseconds(hold.until) == reading.clock.now + timedelta(seconds=60)


def test_a_clock_that_was_wrong_holds_no_host_for_longer(reading, site):
    number = reading.add(site.put("/feed", news("one")))
    hold = HostHold("127.0.0.1", to_microseconds(reading.clock.now + timedelta(days=1000)))
    fetches = reading.server.broker.source_fetches
    fetches.record(number, Fetch(429, 0, 60, error="held", hold=hold), Position("", 0))
    source = reading.fetch(number)
    assert "asked for a pause" in source.last_error
    assert source.next_fetch < reading.clock.now + timedelta(hours=2)


def test_robots_are_obeyed_if_wanted(reading, site):
    site.put("/robots.txt", b"User-agent: Tamis\nDisallow: /private\n")
    allowed, forbidden = (reading.add(site.put(path, news(path))) for path in ("/a", "/private/b"))
    reading.options = replace(reading.options, obey_robots=True)
    assert reading.fetch(allowed).last_error is None
    assert reading.fetch(forbidden).last_error == "robots.txt does not allow to fetch it"
    assert site.count("/private/b") == 0
    site.put("/robots.txt", status=500)
    assert reading.fetch(allowed).last_error == "robots.txt does not allow to fetch it"
    site.put("/robots.txt", status=404)
    assert reading.fetch(forbidden).last_error is None


def test_robots_rules_are_those_of_rfc_9309(reading, site):
    lines = (
        "User-agent: *\nDisallow: /\n\nUser-agent: tamis\nDisallow: /*.php$\nDisallow: /news\n"
        "Allow: /news/rss\nDisallow: /news/rss/old"
    )
    site.put("/robots.txt", b"\xef\xbb\xbf" + lines.encode())
    reading.options = replace(reading.options, obey_robots=True)
    for path, is_allowed in {
        "/feed.php": False,
        "/feed.php5": True,
        "/news": False,
        "/news/rss": True,  # the longest match
        "/news/rss/old": False,
    }.items():
        source = reading.fetch(reading.add(site.put(path, news(path))))
        assert (source.last_error is None) is is_allowed, path


def test_a_site_is_asked_once_for_its_robots(reading, site):
    """Also if many of its sources are due; that is a request as any other."""
    n_open, most_open, lock = 0, 0, Lock()

    def answer(body: bytes):
        def slowly(_: Asked) -> Page:
            nonlocal n_open, most_open
            with lock:
                n_open += 1
                most_open = max(most_open, n_open)
            time.sleep(0.002)
            with lock:
                n_open -= 1
            return Page(body)

        return slowly

    site.pages["/robots.txt"] = answer(b"User-agent: *\nDisallow: /none")
    numbers = []
    for n in range(20):
        site.pages[f"/{n}"] = answer(news(f"t{n}"))
        numbers.append(reading.add(f"{site.url}/{n}"))
    reading.options = replace(reading.options, obey_robots=True)
    reading.fetch_together(numbers)
    assert len(reading.titles()) == 20
    assert (site.count("/robots.txt"), most_open) == (1, 1)


def test_redirects_take_turns_and_obey_robots(reading, site):
    with run_site() as other:
        other.put("/robots.txt", b"User-agent: *\nDisallow: /private")
        other.put("/private", news("secret"))
        other.put("/public", news("told"))
        names = ("private", "public")
        numbers = [
            reading.add(site.put(f"/{name}", status=302, location=f"{other.url}/{name}"))
            for name in names
        ]
        reading.options = replace(reading.options, obey_robots=True)
        source = reading.fetch(*reversed(numbers))
        assert source.last_error == "robots.txt does not allow to fetch it"
        assert [own.path for own in other.asked] == ["/robots.txt", "/public"]
        assert reading.titles() == ["told"]


def test_the_host_that_asks_for_a_pause_gets_it(reading, site):
    site.url = site.url.replace("127.0.0.1", "localhost")  # another name: another host
    with run_site() as busy:
        busy.put("/feed", status=429, retry_after="3600")
        moved = reading.add(site.put("/moved", status=302, location=f"{busy.url}/feed"))
        own = reading.add(site.put("/own", news("one")))
        there = reading.add(f"{busy.url}/other")
        assert reading.fetch(moved, own).last_error is None
        reading.fetch(moved, there)
        assert "/other" not in [asked.path for asked in busy.asked]
    assert reading.titles() == ["one"]


def test_a_source_that_is_removed_during_a_fetch(reading, site):
    def remove(_: Asked) -> Page:
        reading.sources.delete(LOCAL, number)
        return Page(news("one"))

    site.pages["/feed"] = remove
    number = reading.add(f"{site.url}/feed")
    with pytest.raises(Exception, match=f"there is no source {number}"):
        reading.fetch(number)
    assert reading.events() == []


def test_a_source_that_is_paused_during_a_fetch_stays_paused(reading, site):
    def pause(_: Asked) -> Page:
        reading.sources.change(LOCAL, number, state=SourceState.PAUSED)
        return Page(status=410)

    site.pages["/feed"] = pause
    number = reading.add(f"{site.url}/feed")
    assert reading.fetch(number).state is SourceState.PAUSED
