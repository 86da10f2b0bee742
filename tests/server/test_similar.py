"""Similar matches, as subscribers see them: pages, streams, digests, feeds, and the option."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit
from xml.etree import ElementTree

import orjson
import pytest

from tamis.broker.digest_mails import DigestContents, Envelope, write_mail
from tamis.broker.match_server import MatchServer
from tamis.client import Client
from tamis.server import Settings
from tamis.server.routes import feeds
from tamis.server.settings import ArchiveSettings
from tests.server.asking import publish, subscribe
from tests.server.running import run_server

ATOM = "{http://www.w3.org/2005/Atom}"
STORY = "The harbour of Aarhus was closed on Tuesday after a ship lost its anchor and its radio."
TWICE = STORY.replace("Tuesday", "Wednesday")


def story(number: int, text: str) -> dict:
    return {"x": 1, "title": text, "url": f"http://e.example/{number}"}


@pytest.fixture
def grouped(client) -> dict:
    """A subscription with five matches in two stories: 1 with 2 and 4, and 3 with 5."""
    made = subscribe(client, id="a", expression="x = 1", group_similar="3d")
    texts = [STORY, TWICE, "Rain in Rome", STORY, "rain in rome!"]
    publish(client, *(story(at, text) for at, text in enumerate(texts, start=1)))
    return made


def read(client, **options) -> list[tuple[int, int | None]]:
    matches = client.get("/v1/subscriptions/a/matches", params=options).json()["matches"]
    return [(own["event"], own.get("similar_to")) for own in matches]


def test_a_page_says_to_which_event_a_match_is_similar(client, grouped):
    assert grouped["attributes"] == {"group_similar": "3d"}
    assert read(client) == [(1, None), (2, 1), (3, None), (4, 1), (5, 3)]
    assert read(client, limit=1, after=":3") == [(4, 1)]


def test_acknowledgements_and_counts_are_those_of_all_matches(client, match_server, grouped):
    epoch = match_server.archive.epoch
    asked = {"event": 2, "epoch": epoch}
    assert client.post("/v1/subscriptions/a/acknowledge", json=asked).status_code == 200
    assert read(client) == [(3, None), (4, 1), (5, 3)]
    names = {grouped["number"]: "a"}
    counted = match_server.mailboxes.count(names, after=0, up_to=5)
    assert counted == {grouped["number"]: 5}


def test_the_option_is_changed_and_removed(client, grouped):
    def patch(**fields):
        headers = {"tamis-ticket": grouped["ticket"]}
        answer = client.patch("/v1/subscriptions/a", json=fields, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()["attributes"]

    assert patch(group_similar=None) == {}
    assert [own for _, own in read(client)] == [None] * 5
    assert patch(attributes={"title": "T"}, group_similar="1h") == {
        "title": "T",
        "group_similar": "1h",
    }
    assert [own for _, own in read(client)] == [None, 1, None, 1, 3]
    assert patch(expression="x > 0")["group_similar"] == "1h"
    assert patch(attributes={"title": "U"}) == {"title": "U"}
    assert [own for _, own in read(client)] == [None] * 5


@pytest.mark.parametrize("window", ["soon", "3 days", "0d", "31d", "999999999999999w"])
def test_an_invalid_window_is_an_error(client, window):
    for asked in ({"group_similar": window}, {"attributes": {"group_similar": window}}):
        answer = client.post("/v1/subscriptions", json={"expression": "x = 1"} | asked)
        assert answer.status_code == 422
        assert "group_similar is" in answer.json()["detail"]
        assert "30min, 12h, 7d or 2w" in answer.json()["hint"]
    row = {"subscription_id": "b", "expression": "x = 1", "group_similar": window}
    answer = client.post(
        "/v1/subscriptions/import",
        content=orjson.dumps(row),
        headers={"content-type": "application/x-ndjson"},
    )
    assert "group_similar is" in answer.text
    made = subscribe(client, id="c", expression="x = 1")
    answer = client.patch(
        "/v1/subscriptions/c",
        json={"group_similar": window},
        headers={"tamis-ticket": made["ticket"]},
    )
    assert answer.status_code == 422


class TestWithoutTexts:
    @pytest.fixture
    def settings(self, settings) -> Settings:
        return replace(settings, archive=ArchiveSettings(keep="none"))

    def test_it_is_refused(self, client):
        asked = {"expression": "x = 1", "group_similar": "1d"}
        answer = client.post("/v1/subscriptions", json=asked)
        assert (answer.status_code, answer.json()["code"]) == (422, "no-texts")


def test_feeds_show_one_entry_for_a_story(client, grouped):
    made = client.post("/v1/feeds", json={"subscription": "a"}).json()
    root = ElementTree.fromstring(client.get(urlsplit(made["atom"]).path).content)
    entries = root.findall(f"{ATOM}entry")
    assert [own.findtext(f"{ATOM}title") for own in entries] == ["Rain in Rome", STORY]
    text = entries[1].findtext(f"{ATOM}content")
    assert "and 2 similar:" in text
    assert f"- {TWICE}: http://e.example/2" in text
    related = entries[1].findall(f"{ATOM}link[@rel='related']")
    assert [own.get("href") for own in related] == ["http://e.example/2", "http://e.example/4"]
    items = client.get(urlsplit(made["json_feed"]).path).json()["items"]
    assert [own["id"] for own in items] == [own.findtext(f"{ATOM}id") for own in entries]
    assert "and 1 similar:\n- rain in rome!: http://e.example/5" in items[0]["content_text"]


def test_an_entry_stays_when_its_first_match_is_no_longer_among_the_newest(
    client, grouped, monkeypatch
):
    made = client.post("/v1/feeds", json={"subscription": "a"}).json()

    def fetch() -> dict:
        items = client.get(urlsplit(made["json_feed"]).path).json()["items"]
        return {own["id"]: own["title"] for own in items}

    before = fetch()
    monkeypatch.setattr(feeds, "MOST_ENTRIES", 2)  # matches 4 and 5
    assert fetch() == before


ENVELOPE = Envelope("t@e.example", "a@e.example", "http://no", "http://yes", "e.example")


def write(match_server: MatchServer, number: int, *, after: int, most: int):
    boxes, head = match_server.mailboxes, match_server.mailboxes.head
    names = {number: "a"}
    stories, page = boxes.read_stories(names, after=after, limit=most, up_to=head.event)
    counts = {"a": boxes.count(names, after=after, up_to=head.event)[number]}
    begin = head._replace(event=after)
    contents = DigestContents(1, begin, head, counts, stories, page.missed, False)
    mail = write_mail(contents, ENVELOPE)
    return mail["Subject"], *(mail.get_body((own,)).get_content() for own in ("plain", "html"))


def test_a_digest_shows_similar_matches_under_the_first(match_server, grouped):
    subject, text, html = write(match_server, grouped["number"], after=0, most=20)
    assert subject == "5 matches: a"
    plain = text.splitlines()
    assert plain.count(f"* {STORY}") == 1
    assert f"  - {TWICE}: http://e.example/2" in plain
    assert "  and 2 similar:" in plain
    assert "  and 1 similar:" in plain
    assert "more" not in text.replace("No more digests", "")
    assert html.count("<li>") == 5
    assert f'<li><a href="http://e.example/2">{TWICE}</a></li>' in html


def test_what_a_digest_does_not_show_is_counted(match_server, grouped):
    subject, text, _ = write(match_server, grouped["number"], after=0, most=1)
    assert subject == "5 matches: a"
    assert "and 2 similar:" in text
    assert "… and 2 more" in text


def test_a_digest_says_what_continues_an_earlier_one(match_server, grouped):
    _, text, html = write(match_server, grouped["number"], after=1, most=20)
    for shown in (text, html):
        assert "similar to event 1, which came before" in shown
        assert shown.count("similar to event") == 1


def test_followers_of_a_stream_and_the_clients_are_told(match_server, settings):
    with run_server(match_server, settings) as running, Client(running.url) as client:
        client.subscribe("x = 1", id="a", group_similar="3d")
        client.publish([story(1, STORY), story(2, TWICE)])
        assert [own.similar_to for own in client.matches("a").matches] == [None, 1]
        stream = client.stream("a", after=":0")
        assert [next(stream).similar_to, next(stream).similar_to] == [None, 1]
        client.replace("a", group_similar=None)
        assert [own.similar_to for own in client.matches("a").matches] == [None, None]


def test_titles_of_others_are_escaped(client, match_server):
    made = subscribe(client, id="a", expression="x = 1", group_similar="1d")
    evil = "<script>alert(1)</script>\r\nBcc: v@e.example"
    publish(client, story(1, evil), story(2, evil))
    _, text, html = write(match_server, made["number"], after=0, most=20)
    assert "<script>" not in html
    assert "\nBcc" not in text
