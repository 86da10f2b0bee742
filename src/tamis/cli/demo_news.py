"""`tamis demo news`: feeds are read, standing searches find their items, now and in the past, and
what they found is a feed again.
"""

from __future__ import annotations

import asyncio
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

import orjson

import tamis
from tamis.broker.feed_documents import FeedContents, write_atom
from tamis.broker.histories import subscribe_since
from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import MatchServer
from tamis.broker.rights import LOCAL
from tamis.broker.sources import NewSource
from tamis.cli.console import print_columns, printable
from tamis.feeds.fetching import FetchLimits
from tamis.feeds.reading import FeedOptions
from tamis.feeds.worker import FeedWorker
from tamis.search import Asked, Budget
from tamis.subscriptions import Subscribe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

SAMPLES: Final = files("tamis.cli") / "samples" / "news"
FEEDS: Final = ("microsoft.xml", "apple.atom", "cisco.json")
SEARCHES: Final = {
    "sharepoint": "sharepoint",
    "memory": "memory -webkit",
    "cisco": "cisco injection",
}
ARCHIVED: Final = '"arbitrary code" | kernel'  # nobody has subscribed to it
LATE: Final = "inject*"  # subscribed to when most items are there already
ATTRIBUTES: Final = ("title", "body")
TITLE: Final = 70  # characters that are shown
N_FOUND: Final = 5  # items of the archive that are shown
N_LINES: Final = 16  # lines of the result feed that are shown
N_LATE: Final = 2  # items that the last feed shows only at its second fetch

NEXT_STEPS: Final = (
    "tamis serve                                  # a server, in the folder tamis.server",
    "tamis feeds add tamis.server URL             # a feed or a page that names one",
    "tamis feeds import tamis.server feeds.opml   # all feeds of your feed reader",
)


class _Site:
    """The sample feeds on the loopback address."""

    def __init__(self) -> None:
        self.pages = {f"/{name}": (SAMPLES / name).read_bytes() for name in FEEDS}
        pages = self.pages

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = pages.get(self.path)
                self.send_response(404 if body is None else 200)
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                """Nothing: the demo prints what happens."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def show_news(console: Console) -> None:
    """Run the demo."""
    site = _Site()
    late = f"/{FEEDS[-1]}"
    whole = site.pages[late]
    site.pages[late] = _leave_out(whole, N_LATE)
    try:
        with TemporaryDirectory() as folder, MatchServer.open(Path(folder) / "server") as server:
            _show_searches(console, server)
            _add_feeds(site, server)
            _title(console, "2. Three feeds are read: RSS, Atom and JSON Feed")
            _show_sources(console, server)
            _title(console, "3. What the searches found")
            reached = _show_matches(console, server, 0)
            _title(console, "4. A search of what was there before, which nobody has subscribed to")
            _show_search(console, server)
            _title(console, "5. A new standing search asks for its history")
            _subscribe_late(server)
            console.print(f"late  {LATE}\n")
            _show_matches(console, server, 0, ("late",))
            site.pages[late] = whole
            _title(console, f"6. Later, one feed shows {N_LATE} more items")
            asyncio.run(_fetch_all(server))
            _show_matches(console, server, reached, (*SEARCHES, "late"))
            console.print(
                "\nItems that were known are not published again. The mailbox of “late” has"
            )
            console.print("its history and what came later, each item once.")
            _title(console, "7. What a search found is a feed too, for any feed reader")
            _show_feed(console, server, "cisco")
    finally:
        site.close()
    _title(console, "8. Try next")
    for step in NEXT_STEPS:
        console.print(step)
    console.print("\nFeeds are described in docs/news.md, searches in docs/keywords.md.")


def _leave_out(body: bytes, n_items: int) -> bytes:
    found = orjson.loads(body)
    return orjson.dumps({**found, "items": found["items"][n_items:]})


def _show_searches(console: Console, server: MatchServer) -> None:
    _title(console, f"1. {len(SEARCHES)} standing searches over title and text")
    rows = []
    for name, query in SEARCHES.items():
        server.live.apply([Subscribe(name, tamis.search_query(query, attributes=ATTRIBUTES))])
        rows.append([name, query])
    print_columns(console, rows)


def _add_feeds(site: _Site, server: MatchServer) -> None:
    for name in FEEDS:
        server.broker.sources.create(LOCAL, NewSource(f"{site.url}/{name}", tags=["security"]))
    asyncio.run(_fetch_all(server))


async def _fetch_all(server: MatchServer) -> None:
    # The feeds of the demo are on this machine.
    options = FeedOptions(limits=FetchLimits(allow_private=True), host_pause=0.0)
    worker = FeedWorker(server, options, polls=False)
    try:
        for source in server.broker.sources.list().items:
            await worker.fetch(source.number)
    finally:
        await worker.close()


def _show_sources(console: Console, server: MatchServer) -> None:
    sources = server.broker.sources.list().items
    rows = [[own.kind, f"{own.n_items} items", printable(own.title)] for own in sources]
    print_columns(console, rows)


def _show_matches(
    console: Console, server: MatchServer, after: int, searches: Iterable[str] = SEARCHES
) -> int:
    """Print what was published after an event and matched; returns the last event."""
    names = {_find_number(server, name): name for name in searches}
    page = server.mailboxes.read_named(names, after=after, limit=1_000)
    rows: list[list[Any]] = []
    for match in page.matches:
        item = orjson.loads(match.content or b"{}")
        found = ", ".join(match.subscriptions)
        rows.append([found, item["published"][:10], printable(item["title"])[:TITLE]])
    print_columns(console, rows)
    return server.archive.last_event


def _find_number(server: MatchServer, name: str) -> int:
    state = server.live.get(name)
    assert state is not None
    return state.created


def _show_search(console: Console, server: MatchServer) -> None:
    """Print the newest items of the archive that a search finds, with the found words marked."""
    from rich.text import Text

    expression = tamis.search_query(ARCHIVED, attributes=ATTRIBUTES)
    page = server.searcher.find(expression, Asked(limit=N_FOUND), Budget())
    console.print(f"{ARCHIVED}\n")
    for hit in page.hits:
        item = orjson.loads(hit.event.event or b"{}")
        console.print(Text(f"{item['published'][:10]}  {printable(item['title'])[:TITLE]}"))
        spans = hit.highlights.get("body", [])
        if spans:
            start = max(0, spans[0][0] - TITLE // 2)
            text = Text(item["body"])
            for begin, end in spans:
                text.stylize("bold reverse", begin, end)
            shown = text[start : start + TITLE]
            shown.plain = printable(shown.plain)
            before, after = ("…" if own else "" for own in (start, start + TITLE < len(text)))
            console.print(Text(f"            {before}").append_text(shown).append(after))
    if page.place is not None:
        console.print("\nThere are more: each page has the cursor of the next one.")


def _subscribe_late(server: MatchServer) -> None:
    expression = tamis.search_query(LATE, attributes=ATTRIBUTES)
    ticket = server.broker.tickets.make()
    wanted = Subscribe("late", expression, ticket_hash=ticket.hash)
    subscribe_since(server.live, server.broker.histories, wanted, since=0)


def _show_feed(console: Console, server: MatchServer, name: str) -> None:
    """Print the beginning of the feed of a search."""
    mailbox = Mailbox.of_subscription(_find_number(server, name))
    stories = server.mailboxes.newest_stories(mailbox, N_FOUND)
    address = "https://tamis.example/feeds/SECRET.atom"
    epoch, updated = server.mailboxes.head.epoch, stories[0].match.moment
    contents = FeedContents(f"Matches of {name}", mailbox, epoch, updated, stories, address)
    document = ElementTree.fromstring(write_atom(contents))
    ElementTree.register_namespace("", "http://www.w3.org/2005/Atom")
    ElementTree.indent(document)
    lines = ElementTree.tostring(document, "unicode").splitlines()
    for line in lines[:N_LINES]:
        console.print(line, markup=False, highlight=False, no_wrap=True, overflow="ellipsis")
    n_more = len(lines) - N_LINES
    console.print(f"… and {n_more} more lines. The server makes its address: POST /v1/feeds")


def _title(console: Console, title: str) -> None:
    console.print()
    console.print(title, style="bold")
    console.print()
