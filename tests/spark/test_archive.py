"""Spark over the archive of a server: many queries over all history, and a crawl by a stream."""

from __future__ import annotations

import pytest

import tamis
import tamis.spark as ts
from tamis.broker.match_server import MatchServer, MatchServerSettings, StreamSettings
from tamis.broker.taking import StreamTaker
from tamis.cli.demo_news import FEEDS, SAMPLES
from tamis.lab.workloads.keywords import KeywordParams, Keywords
from tamis.search import Asked, Budget
from tamis.subscriptions import Subscribe
from tests.cli.shell import run
from tests.feeds.conftest import Clock, Reading
from tests.feeds.places import item, rss
from tests.feeds.site import run_site

WORKLOAD = Keywords(KeywordParams(200, n_drawn=60, seed=5))
QUERIES = {
    **{f"q{at}": text for at, text in enumerate(WORKLOAD.expressions())},
    "wildcards": tamis.search_query("vulnerab* exec* -cisco", attributes=("title", "body")),
    "near": tamis.search_query('"code execution"~2', attributes=("title", "body")),
    "phrase": tamis.search_query('"memory corruption" | injection', attributes=("title", "body")),
    "mixed": "matches(body, 'apple') AND published >= TIMESTAMP '2024-01-01T00:00:00Z'",
    "tags": "array_contains(tags, 'made') AND NOT matches(title, '7')",
    "negated": "NOT matches(title, 'apple')",
}
SCHEMA = "number bigint, moment timestamp, change bigint, event string"


@pytest.fixture
def site():
    with run_site() as running:
        for name in FEEDS:
            running.put(f"/{name}", (SAMPLES / name).read_bytes())
        texts = enumerate(WORKLOAD.texts(60))
        running.put("/made", rss(*(item(f"made {n}", guid=str(n), body=text) for n, text in texts)))
        yield running


def read_all(reading: Reading, site) -> None:
    """Read all feeds of the site."""
    tags = {"/made": ["made"]}
    paths = [*(f"/{name}" for name in FEEDS), "/made"]
    reading.fetch(*(reading.add(site.url + path, tags=tags.get(path, [])) for path in paths))


def deliver(server: MatchServer) -> set[tuple[int, str]]:
    """What is in the mailboxes of all subscriptions."""
    names = {server.live.get(name).created: name for name in QUERIES}
    page = server.mailboxes.read_named(names, after=0, limit=100_000)
    assert page.is_last
    return {(match.event, name) for match in page.matches for name in match.subscriptions}


def find(server: MatchServer) -> set[tuple[int, str]]:
    """What searches of the archive find."""
    found = set()
    for name, expression in QUERIES.items():
        page = server.searcher.find(expression, Asked(limit=10_000), Budget())
        assert page.is_complete
        found |= {(hit.event.number, name) for hit in page.hits}
    return found


def test_all_history_is_matched_as_it_was_live(spark, tmp_path, site):
    """Spark, the searches of the server and its standing searches agree on each pair."""
    with MatchServer.open(tmp_path / "server", clock=Clock()) as server:
        server.live.apply([Subscribe(name, text) for name, text in QUERIES.items()])
        read_all(Reading(server, Clock()), site)
        server.archive.seal()
        expected = deliver(server)
        assert find(server) == expected
        events = str(server.archive.folder / "events")
    assert {name for _, name in expected} >= {"wildcards", "near", "phrase", "mixed", "tags"}
    queries = spark.createDataFrame(
        list(QUERIES.items()), "subscription_id string, expression string"
    )
    place = str(tmp_path / "queries")
    report = ts.build(queries, place, parts=3)
    assert report.n_rejects == 0
    archived = spark.read.parquet(events)
    found = ts.match(archived, place, event_id="number", attributes="event")
    pairs = [(row["event_id"], row["subscription_id"]) for row in found.collect()]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected


@pytest.mark.usefixtures("shell_session")
def test_the_shell_matches_an_archive(spark, tmp_path, site):
    with MatchServer.open(tmp_path / "server", clock=Clock()) as server:
        server.live.apply([Subscribe(name, text) for name, text in QUERIES.items()])
        read_all(Reading(server, Clock()), site)
        server.archive.seal()
        expected = deliver(server)
        place, events = tmp_path / "index", server.archive.folder / "events"
        tamis.build(QUERIES).save(place)
    arguments = ["--index", str(place), "--events", str(events), "--events-format", "parquet"]
    arguments += ["--event-id", "number", "--attributes", "event"]
    done = run("spark", "match", *arguments, "--output", str(tmp_path / "matches"))
    assert done.exit_code == 0, done.output
    rows = spark.read.parquet(str(tmp_path / "matches")).collect()
    assert {(row["event_id"], row["subscription_id"]) for row in rows} == expected


def test_a_crawl_is_matched_by_a_stream(spark, tmp_path, site, monkeypatch):
    """The items of feeds go to the intake, a stream matches them, and the server delivers."""
    monkeypatch.setattr(StreamTaker, "start", lambda self: None)
    shared = StreamSettings(str(tmp_path / "matches"), str(tmp_path / "versions"), 3600)
    settings = MatchServerSettings(stream=shared)
    with MatchServer.open(tmp_path / "server", settings, clock=Clock()) as server:
        server.live.apply([Subscribe(name, text) for name, text in QUERIES.items()])
        server.versions.publish()
        reading = Reading(server, Clock())
        read_all(reading, site)
        assert server.intake.last_event == 90
        reading.fetch(*(own.number for own in reading.sources.list().items))
        assert server.intake.last_event == 90  # nothing is published twice
        server.intake.seal()
        ts.stream(
            spark.readStream.schema(SCHEMA).parquet(str(server.folder / "intake" / "events")),
            str(tmp_path / "versions"),
            str(tmp_path / "matches"),
            checkpoint=str(tmp_path / "checkpoint"),
            event_id="number",
            attributes="event",
            event_columns=["*"],
            trigger={"availableNow": True},
        ).awaitTermination()
        assert server.taker.take_all() == 1
        page = server.intake.read_events(after=0, limit=1_000)
        index = tamis.build(QUERIES)
        expected = {
            (event.event, name) for event in page.events for name in index.match(event.event)
        }
        assert len(expected) > 50
        names = {server.live.get(name).created: name for name in QUERIES}
        mail = server.mailboxes.read_named(names, after=0, limit=100_000).matches
        found = [(own.content, name) for own in mail for name in own.subscriptions]
        assert len(found) == len(set(found))
        assert set(found) == expected
