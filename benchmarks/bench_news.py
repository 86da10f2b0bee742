"""The way of news: documents of feeds to mailboxes of 100,000 standing searches, and 2,000 feeds.

The searches are what people typed into search engines (`../shared/data/trec-web-queries` and
`excite-queries`), each plain, as a phrase, with a truncation, or without a word. The documents are
abstracts of arXiv, articles of Reuters and items of real feeds, 100 in a feed. A match server in
this process publishes what is parsed, and answers a reading of each mailbox as JSON; shares are CPU
times of the process. The analysis is what the same items cost with a single search, matching what
they cost with all without publishing them, and the archive the rest of publishing. Some answers are
compared with the reference evaluator.

The feeds are polled by `tamis serve`, in another process, and served by this one; both are limited
to the same two CPUs. What the server and its parser use at most is read from the system.
`TAMIS_BENCH_SIZE` is `tiny`, `small` (the default) or `full`.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import random
import re
import tempfile
import threading
import time
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest.mock import patch
from warnings import catch_warnings, simplefilter
from xml.sax.saxutils import escape

import orjson

import tamis
from benchmarks.search_documents import DATA, read_excite_queries, read_queries
from benchmarks.server_process import Server, ask, fill
from benchmarks.targets import Target, at_size, chosen_size, make_row
from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import MatchServer
from tamis.broker.matching import Publication
from tamis.errors import ExpressionError, TamisError, TamisWarning
from tamis.events.json_source import JsonObjects
from tamis.feeds.parsing import read_document
from tamis.server.mailbox_reader import spell_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.client import HTTPConnection

TITLE = "news: from feeds to mailboxes, and many feeds; the target is for TAMIS_BENCH_SIZE=full"
NEEDED: Final = ("trec-web-queries", "excite-queries", "arxiv-abstracts", "reuters-21578")
ATTRIBUTES: Final = ("title", "body")
SCHEMA: Final = "title TEXT, body TEXT"
AT_ONCE: Final = 100  # items of a feed
N_SHOWN: Final = 10  # items of a feed that is polled
N_COMPARED: Final = (10, 200)  # documents, searches
LIMIT: Final = 512.0  # MiB
N_CPUS: Final = 2
TARGETS: Final = at_size("full", {"memory of the server and its parser": Target(LIMIT)})


class Size(NamedTuple):
    """How much there is."""

    n_searches: int
    n_documents: int
    n_feeds: int


SIZES: Final = {
    "tiny": Size(300, 200, 20),
    "small": Size(100_000, 3_000, 300),
    "full": Size(100_000, 30_000, 2_000),
}

Row = dict[str, Any]


def run() -> list[Row]:
    """The documents per second with the share of each step, and the memory of a server."""
    chosen = chosen_size()
    if chosen not in SIZES:
        raise TamisError(f"TAMIS_BENCH_SIZE is {chosen!r}; allowed: {', '.join(SIZES)}")
    if not all((DATA / own).is_dir() for own in NEEDED):
        return []
    size = SIZES[chosen]
    feeds = [*islice(write_feeds(), -(-size.n_documents // AT_ONCE))]
    searches = read_searches(size.n_searches)
    return [*measure_way(searches, feeds), *measure_polling(feeds, size.n_feeds)]


# ── searches and documents ──────────────────────────────────────────────────────────────────


def read_searches(n_searches: int) -> list[str]:
    """That many different expressions."""
    rng = random.Random(1)
    found: dict[str, None] = {}
    for query in _read_queries():
        words = re.findall(r"[a-z0-9]+", query.lower())
        if words:
            text = _vary(words, rng.randrange(4))
            try:
                with catch_warnings():
                    simplefilter("ignore", TamisWarning)  # about `and`, which people write
                    found[tamis.search_query(text, attributes=ATTRIBUTES)] = None
            except ExpressionError:  # such as one without words
                continue
        if len(found) == n_searches:
            break
    return [*found]


def _read_queries() -> Iterator[str]:
    """All queries, again and again."""
    lines = [*read_queries(), *read_excite_queries()]
    if stray := next((own for own in lines if re.match(r"\d+:", own)), None):
        raise TamisError(f"the query {stray!r} begins with a number of its file")
    random.Random(2).shuffle(lines)
    while True:
        yield from lines


def _vary(words: list[str], how: int) -> str:
    longest = max(words, key=len)
    if how == 1 and len(words) > 1:
        return f'"{" ".join(words)}"'
    if how == 2 and len(longest) > 5:
        return " ".join(f"{word[:-1]}*" if word is longest else word for word in words)
    if how == 3 and len(words) > 2:
        return f"{' '.join(words[:-1])} -{words[-1]}"
    return " ".join(words)


def write_feeds() -> Iterator[bytes]:
    """Feeds of 100 documents of all kinds, and the real feeds among them."""
    real = (path.read_bytes() for path in sorted((DATA / "rss-feeds" / "feeds").glob("*.xml")))
    items: list[str] = []
    for number, pair in enumerate(zip_longest(_read_reuters(), _read_abstracts())):
        for at, document in enumerate(pair):
            if document is not None:
                title, body = map(_clean, document)
                key = f"{number}-{at}"
                items.append(
                    f"<item><guid>{key}</guid><title>{title}</title>"
                    f"<description>{body}</description></item>"
                )
        if len(items) >= AT_ONCE:
            yield _wrap(items)
            yield from islice(real, 1)
            items = []


def _wrap(items: list[str]) -> bytes:
    head = '<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>'
    return f"{head}{''.join(items)}</channel></rss>".encode()


def _clean(text: str) -> str:
    return escape(re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", " ", text))


def _read_reuters() -> Iterator[tuple[str, str]]:
    for path in sorted((DATA / "reuters-21578").glob("*.json.gz")):
        for own in json.loads(gzip.decompress(path.read_bytes())):
            yield own.get("title", ""), own.get("body", "")


def _read_abstracts() -> Iterator[tuple[str, str]]:
    for path in sorted((DATA / "arxiv-abstracts").glob("*.tsv.xz")):
        rows = lzma.decompress(path.read_bytes()).decode("utf-8").splitlines()
        names = rows[0].split("\t")
        places = names.index("title"), names.index("abstract")
        for row in rows[1:]:
            cells = row.split("\t")
            if len(cells) == len(names):
                yield cells[places[0]], cells[places[1]]


# ── from feeds to mailboxes ─────────────────────────────────────────────────────────────────


def measure_way(searches: list[str], feeds: list[bytes]) -> list[Row]:
    """Documents per CPU second, and the share of each step."""
    schema = dict.fromkeys(ATTRIBUTES, "text")
    alone = tamis.build({"0": "matches((title, body), 'tamis')"}, SCHEMA)
    spent = dict.fromkeys(("parse", "analyse", "match", "publish", "deliver"), 0.0)
    n_documents = n_stored = 0
    with tempfile.TemporaryDirectory() as place:
        fill(Path(place), schema, searches)
        with MatchServer.open(place) as server:
            index = server.live.snapshot()
            for own in (index, alone):  # the first call compiles kernels
                own.match_lists(['{"title": "x", "body": "y"}'])
            for body in feeds:
                clock = _Clock(spent)
                document = read_document(body, "application/rss+xml", "https://example.com/")
                events = [
                    orjson.dumps({"title": own.title, "body": own.body}) for own in document.items
                ]
                clock.note("parse")
                alone.match_lists(events)
                clock.note("analyse")
                index.match_lists(events)
                clock.note("match")
                size = sum(map(len, events))
                done = server.publisher.publish(Publication(JsonObjects(events), size)).result()
                clock.note("publish")
                n_stored += done.n_matches or 0
                n_documents += len(events)
            compare(index, searches, events)
            clock = _Clock(spent)
            n_matches = _deliver(server, len(searches))
            clock.note("deliver")
    if n_matches != n_stored:
        raise TamisError(f"{n_stored:,} matches were stored, and {n_matches:,} delivered")
    # Publishing matches too, and matching analyses: each is counted once.
    spent["archive"] = spent.pop("publish") - spent["match"]
    spent["match"] -= spent["analyse"]
    total = sum(spent.values())
    whole = {"searches": len(searches), "documents": n_documents, "matches": n_matches}
    rows = [make_row(TARGETS, "documents end to end", n_documents / total, "/CPU s", **whole)]
    return rows + [
        make_row(TARGETS, f"share of {name}", 100 * own / total, "%") for name, own in spent.items()
    ]


class _Clock:
    """Adds the CPU time since the last call to a step."""

    def __init__(self, spent: dict[str, float]) -> None:
        self._spent = spent
        self._last = time.process_time()

    def note(self, step: str) -> None:
        now = time.process_time()
        self._spent[step] += now - self._last
        self._last = now


def _deliver(server: MatchServer, n_searches: int) -> int:
    """Read each mailbox, page by page, as the answers of the server; returns the number of
    matches.
    """
    n_matches = 0
    for number in range(1, n_searches + 1):  # that of the change that made the subscription
        mailbox = Mailbox.of_subscription(number)
        after, is_last = 0, False
        while not is_last:
            page = server.mailboxes.read(mailbox, after=after, limit=1_000)
            orjson.dumps(spell_page(server.archive.epoch, page))
            n_matches += len(page.matches)
            after, is_last = page.after, page.is_last
    return n_matches


def compare(index: Any, searches: list[str], events: list[bytes]) -> None:
    """Refuse an index that answers differently from the reference evaluator."""
    n_documents, n_searches = N_COMPARED
    step = max(1, len(searches) // n_searches)
    for event in map(orjson.loads, events[:n_documents]):
        found = set(index.match(event))
        for at in range(0, len(searches), step):
            if tamis.evaluate(searches[at], event, SCHEMA) is not (str(at) in found):
                raise TamisError(f"{searches[at]} is answered differently for {event}")


# ── many feeds ──────────────────────────────────────────────────────────────────────────────


def measure_polling(feeds: list[bytes], n_feeds: int) -> list[Row]:
    """Feeds per second of a server that reads that many, and its most memory."""
    settings = {
        "TAMIS_FEEDS_ALLOW_PRIVATE_ADDRESSES": "true",
        "TAMIS_FEEDS_HOST_PAUSE": "0 s",
    }
    with (
        _limit_cpus() as n_cpus,
        tempfile.TemporaryDirectory() as place,
        _run_site(_cut(feeds)) as site,
        patch.dict(os.environ, settings),
        Server(Path(place) / "server") as server,
        closing(server.connect()) as connection,
    ):
        server.wait_until_ready()
        urls = [{"url": f"{site}/{at}"} for at in range(n_feeds)]
        began = time.perf_counter()
        ask(connection, "POST", "/v1/sources/import", orjson.dumps({"sources": urls}))
        peaks = [0.0, 0.0]
        while (counts := _count_read(connection))[0] < n_feeds:
            peaks = [max(pair) for pair in zip(peaks, _measure_peaks(server), strict=True)]
            time.sleep(0.2)
        seconds = time.perf_counter() - began
        peaks = [max(pair) for pair in zip(peaks, _measure_peaks(server), strict=True)]
    whole = {"feeds": n_feeds, "items": counts[1], "failed": counts[2], "CPUs": n_cpus}
    names = ("memory of the server", "memory of its parser")
    both = make_row(TARGETS, "memory of the server and its parser", sum(peaks), "MiB", **whole)
    polled = make_row(TARGETS, "feeds polled", n_feeds / seconds, "/s")
    return [
        polled,
        *(make_row(TARGETS, *pair, "MiB") for pair in zip(names, peaks, strict=True)),
        both,
    ]


@contextmanager
def _limit_cpus() -> Iterator[int]:
    """Two CPUs for this thread, and the threads and processes that it starts; or all if fewer."""
    before = os.sched_getaffinity(0)
    chosen = sorted(before)[:N_CPUS]
    os.sched_setaffinity(0, chosen)
    try:
        yield len(chosen)
    finally:
        os.sched_setaffinity(0, before)


def _cut(feeds: list[bytes]) -> list[bytes]:
    """Feeds of a few items."""
    found = [own for body in feeds for own in re.findall(r"<item>.*?</item>", body.decode(), re.S)]
    return [_wrap(found[at : at + N_SHOWN]) for at in range(0, len(found), N_SHOWN)]


@contextmanager
def _run_site(pages: list[bytes]) -> Iterator[str]:
    """A site that answers every address with one of the pages."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages[int(self.path[1:]) % len(pages)]
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: there are thousands."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _count_read(connection: HTTPConnection) -> tuple[int, int, int]:
    """The number of sources that were read, of their items, and of those that failed."""
    sources, cursor = [], ""
    while cursor is not None:
        page = ask(connection, "GET", f"/v1/sources?limit=1000{cursor and f'&cursor={cursor}'}")
        sources += page["sources"]
        cursor = page["cursor"]
    read = [own for own in sources if own["last_fetch"] is not None]
    n_failed = sum(own["last_error"] is not None for own in read)
    return len(read), sum(own["n_items"] for own in read), n_failed


def _measure_peaks(server: Server) -> list[float]:
    """The most memory of the server and of its children so far, in MiB."""
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [_read_peak(pid), sum(map(_read_peak, children))]


def _read_peak(pid: int | str) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:  # it has ended
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 0.0
