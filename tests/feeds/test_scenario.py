"""The whole way, in one test: feeds of every sort, events, standing searches, mailboxes, a result
feed, a kill in the middle, and the history. Nothing is lost, and nothing is there twice.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock

import httpx2
import orjson
import pytest

import tamis
from tamis.broker.match_server import MatchServer
from tamis.client import Client
from tamis.feeds.parsing import read_document
from tests.feeds.places import REAL, item, rss
from tests.feeds.site import NO_LENGTH, Asked, Page, Site, run_site
from tests.server.processes import ServerProcess
from tests.waiting import HANG_SECONDS

SETTINGS = {
    "TAMIS_FEEDS_ALLOW_PRIVATE_ADDRESSES": "true",
    "TAMIS_FEEDS_HOST_PAUSE": "0 s",
    # Only one answer never ends; what a slow machine does not fetch in time is fetched again.
    "TAMIS_FEEDS_FETCH_TIMEOUT": "5 s",
    "TAMIS_FEEDS_PARSE_TIMEOUT": "300 s",
    "TAMIS_FEEDS_ENABLED": "false",  # sources are fetched when the test says so
}
SEARCHES = {"models": "model* -image", "near": '"language model"~3', "flood": "flood | storm"}
DATE = "Wed, 01 Jan 2020 00:00:00 GMT"
N_LATE = 3  # items that a real feed shows only at its second fetch
ITEM = re.compile(rb"<item>.*?</item>", re.DOTALL)
BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "flood">'
    + b"".join(b'<!ENTITY %c "%s">' % (n + 1, b"&%c;" % n * 20) for n in range(97, 105))
    + b"]>"
    + rss(item("bomb &i;", guid="1")).partition(b"?>")[2]
)


class Expected:
    """How a source ends; `message` and `notes` are parts of what is reported."""

    def __init__(self, n_items: int, message: str = "", state: str = "active", *notes: str) -> None:
        self.n_items, self.message, self.state, self.notes = n_items, message, state, set(notes)


def conditional(body: bytes) -> Callable[[Asked], Page]:
    """A packed page, which is sent to those only who do not have it."""
    packed, tag = gzip.compress(body), f'"{hash(body)}"'

    def answer(asked: Asked) -> Page:
        headers = {"etag": tag, "content-encoding": "gzip"}
        if asked.headers.get("if-none-match") == tag:
            return Page(status=304, headers=headers)
        return Page(packed, headers=headers)

    return answer


def cut_once(body: bytes, n_bytes: int, pack: Callable[[bytes], bytes]) -> Callable[[Asked], Page]:
    """A packed page whose first answer ends early; its validator does not say so."""
    bodies = iter([body[:n_bytes]])

    def answer(asked: Asked) -> Page:
        headers = {"etag": '"1"', "content-encoding": "gzip"}
        if asked.headers.get("if-none-match") == '"1"':
            return Page(status=304, headers=headers)
        return Page(pack(next(bodies, body)), headers=headers, declared=NO_LENGTH)

    return answer


def gzip_in_members(body: bytes) -> bytes:
    """Two files of gzip, one after the other."""
    return gzip.compress(body[:99]) + gzip.compress(body[99:])


def put_cut_feeds(site: Site) -> dict[str, Expected]:
    """Feeds whose first answer ends after the first of two items; returns how each ends then."""
    body = rss(item("Flood", guid="1", date=DATE), item("Storm", guid="2", date=DATE))
    n_bytes = body.index(b"</item>") + len(b"</item>")
    packed: dict[str, Callable[[bytes], bytes]] = {
        "/cut": gzip.compress,
        "/members": gzip_in_members,
    }
    for path, pack in packed.items():
        site.pages[path] = cut_once(body, n_bytes, pack)
    site.pages["/short"] = Page(body, headers={"etag": '"1"'}, declared=len(body) + 9)
    expected = {path: Expected(1, "", "active", "broken-xml", "cut-off") for path in packed}
    return expected | {"/short": Expected(0, "without sending complete message body")}


def put_made_feeds(site: Site) -> dict[str, Expected]:
    """Feeds with every fault; returns how each ends."""
    good = rss(item("Flood in Oslo", guid="1", date=DATE), item("Fine", guid="2", date=DATE))
    broken = rss(item("Storm &nbsp; <b>today", guid="1"), item("Rain & wind", guid="2", date=DATE))
    latin = rss(item("Überflutung: flood", guid="1", date=DATE)).decode().encode("latin-1")
    future = rss(item("flood", guid="1", date="Fri, 01 Jan 2099 00:00:00 GMT"))
    huge = rss(item("flood", guid="1", body="x" * (50 << 20), date=DATE))
    pages = {
        "/broken": (broken, Expected(2, "", "active", "broken-xml", "no-date")),
        "/encoding": (latin, Expected(1, "", "active", "wrong-encoding")),
        "/undated": (rss(item("storm", guid="1")), Expected(1, "", "active", "no-date")),
        "/future": (future, Expected(1, "", "active", "future-date")),
        "/huge": (huge, Expected(0, "more than 16,777,216 bytes")),
        "/bomb": (BOMB, Expected(1, "", "active", "broken-xml")),
        "/page": (b"<html><body>flood</body></html>", Expected(0, "the document is a web page")),
        "/doubled": (
            rss(item("flood", guid="x", date=DATE), item("storm", guid="x", date=DATE)),
            Expected(2, "", "active", "duplicate-ids"),
        ),
        "/good": (good, Expected(2)),
    }
    for path, (body, _) in pages.items():
        site.put(path, body)
    site.put("/moved", status=301, location="/home")
    site.put("/home", good)
    site.put("/today", status=302, location="/somewhere")
    site.put("/somewhere", good)
    site.put("/round", status=302, location="/trip")
    site.put("/trip", status=302, location="/round")
    site.put("/gone", status=410)
    site.pages["/endless"] = Page(endless=b"<rss>" * 10_000)
    site.pages["/slow"] = Page(silent=True)
    versions = iter(range(1_000_000))

    def renamed(_: Asked) -> Page:
        version = next(versions)
        names = [f"flood {n}" for n in range(6)]
        items = (item(own, guid=f"{own}-{version}", link=f"/{own}", date=DATE) for own in names)
        return Page(rss(*items))

    site.pages["/renamed"] = renamed
    cut = put_cut_feeds(site)
    return (
        {path: own for path, (_, own) in pages.items()}
        | cut
        | {
            "/moved": Expected(2),
            "/today": Expected(2),
            "/round": Expected(0, "circle"),
            "/gone": Expected(0, "410", "gone"),
            "/endless": Expected(0, "more than 16,777,216 bytes"),
            "/slow": Expected(0, "no complete answer within 5 s"),
            "/renamed": Expected(6),
        }
    )


def put_real_feeds(site: Site, *, is_whole: bool) -> dict[str, Expected]:
    """The real feeds, or all but their newest items."""
    found = {}
    for file in sorted(REAL.glob("*.xml")):
        body = file.read_bytes()
        shown = body if is_whole else ITEM.sub(b"", body, count=N_LATE)
        site.pages[f"/{file.name}"] = conditional(shown)
        # Some show an item twice.
        found[f"/{file.name}"] = Expected(len(set(ITEM.findall(shown))))
    return found


class Reader:
    """A server that reads, and its interface."""

    def __init__(self, folder: Path, site: Site) -> None:
        self._site = site
        self.folder = folder
        self.numbers: dict[str, int] = {}
        self.start()

    def start(self) -> None:
        self.process = ServerProcess(self.folder, **SETTINGS)
        self.client = Client(self.process.url)
        self.http = httpx2.Client(base_url=self.process.url, timeout=HANG_SECONDS)

    def stop(self) -> None:
        self.client.close()
        self.http.close()
        self.process.stop()

    def add(self, path: str) -> None:
        asked = {"url": self._site.url + path, "tags": ["all"]}
        answer = self.http.post("/v1/sources", json=asked, params={"fetch": False})
        assert answer.status_code == 201, answer.text
        self.numbers[path] = answer.json()["number"]

    def fetch(self, path: str) -> dict:
        """Fetch a source; again, if this machine was too slow."""
        while True:
            answer = self.http.post(f"/v1/sources/{self.numbers[path]}/fetch")
            assert answer.status_code == 200, answer.text
            source = answer.json()
            if path == "/slow" or "no complete answer" not in (source["last_error"] or ""):
                return source

    def mail(self, name: str) -> list[int]:
        """The events of a mailbox, to its end."""
        found: list[int] = []
        after = "0"
        while True:
            page = self.client.matches(name, after=after, limit=50)
            found += [own.event for own in page.matches]
            after = page.cursor
            if page.is_complete:
                return found

    def search(self, query: str) -> list[int]:
        """The events that a search finds, the newest first."""
        return list(self._search(query))

    def _search(self, query: str) -> Iterator[int]:
        cursor = None
        while True:
            page = self.client.search(
                query=query, attributes=["title", "body"], limit=100, cursor=cursor
            )
            yield from (own["event"] for own in page["hits"])
            if (cursor := page["cursor"]) is None:
                return


def check(source: dict, expected: Expected, path: str) -> None:
    assert expected.message in (source["last_error"] or ""), (path, source)
    assert bool(expected.message) == bool(source["last_error"]), (path, source)
    assert (source["state"], source["n_items"]) == (expected.state, expected.n_items), (
        path,
        source,
    )
    assert expected.notes <= {note["kind"] for note in source["notes"]}, (path, source)


def kill_in_the_middle(reader: Reader, site: Site, paths: list[str]) -> int:
    """Fetch sources; the server is killed at a request. Returns how many it has answered."""
    lock, n_asked = Lock(), 0

    def die_at(page: Callable[[Asked], Page]) -> Callable[[Asked], Page]:
        def answer(asked: Asked) -> Page:
            nonlocal n_asked
            with lock:
                n_asked += 1
                if n_asked == len(paths) // 2:
                    reader.process.process.kill()
            return page(asked)

        return answer

    whole = {path: site.pages[path] for path in paths}
    site.pages |= {path: die_at(page) for path, page in whole.items()}

    def fetch(path: str) -> bool:
        with suppress(httpx2.TransportError):
            return reader.http.post(f"/v1/sources/{reader.numbers[path]}/fetch").is_success
        return False

    with ThreadPoolExecutor(8) as pool:
        n_answered = sum(pool.map(fetch, paths))
    reader.process.process.wait(HANG_SECONDS)
    site.pages |= whole
    return n_answered


@pytest.fixture
def site():
    with run_site() as running:
        yield running


@pytest.fixture
def reader(tmp_path, site):
    running = Reader(tmp_path / "server", site)
    try:
        yield running
    finally:
        running.stop()


@pytest.mark.skipif(not REAL.exists(), reason=f"the real feeds are not at {REAL}")
def test_the_whole_way(reader, site):
    made = put_made_feeds(site)
    early = put_real_feeds(site, is_whole=False)
    for name, query in SEARCHES.items():
        reader.client.subscribe(spell(query), id=name)
    for path, expected in (made | early).items():
        reader.add(path)
        check(reader.fetch(path), expected, path)
    read_again(reader, made, early)
    made |= read_whole(reader, site)

    # The newest items appear, and the server is killed while it reads them.
    late = put_real_feeds(site, is_whole=True)
    n_answered = kill_in_the_middle(reader, site, list(late))
    assert n_answered < len(late)
    reader.stop()
    reader.start()
    for path, expected in late.items():
        check(reader.fetch(path), expected, path)

    compare_mailboxes(reader)
    n_matches = compare_result_feed(reader)
    # What appears now is in both mailboxes, the early and the late one.
    site.put("/good", rss(item("A storm again", guid="3", date=DATE)))
    reader.fetch("/good")
    mails = [reader.mail(name) for name in ("flood", "flood-late")]
    assert mails[0] == mails[1]
    assert len(mails[0]) == n_matches + 1
    reader.stop()
    check_events(reader.folder, sum(own.n_items for own in (made | late).values()) + 1)


def spell(query: str) -> str:
    return tamis.search_query(query, attributes=("title", "body"))


def read_again(reader: Reader, made: dict[str, Expected], real: dict[str, Expected]) -> None:
    """Nothing is new: real feeds answer 304, and another one has new ids for old items."""
    known = reader.mail("models")
    assert known
    for path, expected in real.items():
        source = reader.fetch(path)
        check(source, expected, path)
        assert source["last_status"] == 304
    assert reader.fetch("/renamed")["policy"] == "link"
    for path in ("/doubled", "/good", "/moved", "/renamed", "/bomb"):
        check(reader.fetch(path), Expected(made[path].n_items), path)
    assert reader.mail("models") == known


def read_whole(reader: Reader, site: Site) -> dict[str, Expected]:
    """What was cut off is read; the validators are used from then on. Returns how sources end."""
    site.pages["/short"].declared = None
    expected = {path: Expected(2) for path in ("/cut", "/members", "/short")}
    for path, own in expected.items():
        check(reader.fetch(path), own, path)
    for path in ("/cut", "/members"):
        assert reader.fetch(path)["last_status"] == 304
    return expected


def compare_mailboxes(reader: Reader) -> None:
    """What was delivered, the history of a late subscriber, and a search have the same events."""
    for name, query in SEARCHES.items():
        reader.client.subscribe(spell(query), id=f"{name}-late", history=0)
        found = reader.mail(name)
        assert found
        assert len(set(found)) == len(found)
        assert reader.mail(f"{name}-late") == found
        assert reader.search(query) == found[::-1]


def compare_result_feed(reader: Reader) -> int:
    """A result feed has the newest matches, and is a feed as any other. Returns how many match."""
    made = reader.http.post("/v1/feeds", json={"subscription": "flood"}).json()
    shown = read_document(httpx2.get(made["atom"]).content, "application/atom+xml", made["atom"])
    archived = reader.client.matches("flood", after="0", limit=1_000).matches
    newest = [own.content["title"] for own in archived][::-1]
    assert shown.items
    assert [own.title for own in shown.items] == newest[: len(shown.items)]
    return len(archived)


def check_events(folder: Path, n_expected: int) -> None:
    """All items of all sources are published, each once."""
    with MatchServer.open(folder) as server:
        page = server.archive.read_events(after=0, limit=1_000_000)
        events = [orjson.loads(own.event) for own in page.events]
        assert server.broker.source_fetches.list_outbox() == []
    # One feed gives three items the same id, link and title.
    names = ("feed", "id", "link", "title", "body")
    keys = Counter(tuple(own.get(name) for name in names) for own in events)
    assert max(keys.values()) == 1
    assert len(events) == n_expected
    assert all(own["published"] < "2099" for own in events)
    assert max(len(own["title"]) for own in events) < 1_000  # no entity has exploded
