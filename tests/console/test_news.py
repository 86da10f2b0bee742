"""Sources, searches and what is read: from a feed to a saved search with its history."""

from __future__ import annotations

import re

import pytest

from tests.console.places import ARTICLES, button, card, link, run_console
from tests.feeds.site import run_site
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # a browser takes minutes


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with run_console(tmp_path_factory.mktemp("news") / "server", 0) as running:
        yield running


@pytest.fixture(scope="module")
def site():
    with run_site() as site:
        yield site


def test_sources_are_added_watched_and_removed(open_page, running, site):
    from playwright.sync_api import expect

    sources = running.context.match_server.broker.sources
    page = open_page(running.url, "/#/sources")
    expect(page.get_by_text("There are no sources yet")).to_be_visible()
    form = card(page, "Add a source")
    form.get_by_label("Address").fill(site.put("/news.xml", ARTICLES))
    form.get_by_label("Tags").fill("local, oslo")
    button(form, "Add").click()
    table = page.get_by_role("table", name="Sources")
    expect(table.get_by_text("News", exact=True)).to_be_visible()
    expect(table.get_by_text("3 items")).to_be_visible()
    assert sources.find(site.url + "/news.xml").tags == ("local", "oslo")

    # One that fails says why, and when it is tried again; it can be fetched when it is mended.
    broken = site.put("/broken.xml", status=500)
    document = (
        f'<opml version="2.0"><body><outline text="Broken" xmlUrl="{broken}"/>'
        '<outline text="Bad" xmlUrl="nonsense"/></body></opml>'
    )
    page.get_by_label("OPML file").set_input_files(
        {"name": "mine.opml", "mimeType": "text/x-opml", "buffer": document.encode()}
    )
    expect(page.get_by_text("1 source added, 0 known before, 1 refused.")).to_be_visible()
    wait_until(lambda: sources.find(broken).last_error, "it is fetched")
    button(page, "Look again").click()
    expect(table.get_by_text("the answer is 500")).to_be_visible()
    expect(table.get_by_text("Failing", exact=True)).to_be_visible()
    site.put("/broken.xml", ARTICLES)
    page.get_by_role("button", name="Fetch Broken now").click()
    expect(table.get_by_text("the answer is 500")).to_be_hidden()
    page.get_by_role("button", name="Pause Broken").click()
    expect(table.get_by_text("Paused", exact=True)).to_be_visible()
    page.get_by_label("State").select_option("paused")
    expect(page.get_by_text("1 source", exact=True)).to_be_visible()
    page.get_by_role("button", name="Resume Broken").click()
    expect(page.get_by_text("No source is in this state")).to_be_visible()
    page.get_by_label("State").select_option("")
    page.get_by_role("button", name="Remove Broken").click()
    button(page.get_by_role("dialog"), "Remove").click()
    expect(page.get_by_text("1 source", exact=True)).to_be_visible()
    assert sources.find(broken) is None
    with page.expect_download() as download:
        link(page, "Export as OPML").click()
    assert "/news.xml" in download.value.path().read_text()


def test_a_search_is_saved_with_its_history(open_page, running, site):
    from playwright.sync_api import expect

    with running.client() as client:
        given = [
            {"title": f"Drizzle {n}", "body": "x " * 300 + f"the drizzle of day {n}"}
            for n in range(25)
        ]
        client.post("/v1/events", json=given)
    page = open_page(running.url, "/#/search")
    expect(page.get_by_text("Nothing is searched yet")).to_be_visible()
    page.get_by_label("Words").fill('drizzle "day 7"')
    page.keyboard.press("Enter")
    found = page.get_by_role("list", name="Found events")
    expect(found.get_by_role("heading", name="Drizzle 7", exact=True)).to_be_visible()
    expect(found.locator("mark")).to_have_text(["Drizzle", "drizzle", "day 7"])
    found.get_by_text("As JSON").click()
    expect(found.locator("pre")).to_contain_text('"title": "Drizzle 7"')
    page.get_by_label("Words").fill("drizzle")
    button(page, "Search").click()
    expect(page.get_by_text("The first 20 events")).to_be_visible()
    button(page, "Show more").click()
    expect(page.get_by_role("heading", name="25 events")).to_be_visible()
    again = open_page(running.url, page.url)  # the address is the search
    expect(again.get_by_text("The first 20 events")).to_be_visible()

    page.get_by_label("Search by").select_option("expression")
    page.get_by_label("Expression", exact=True).fill("title = = 1")
    button(page, "Search").click()
    expect(page.get_by_role("alert").get_by_text("expected a condition or a value")).to_be_visible()
    page.get_by_label("Expression", exact=True).fill(
        "matches(title, 'drizzle') AND body IS NOT NULL"
    )
    page.get_by_label("Order").select_option("relevance")
    button(page, "Search").click()
    expect(page.get_by_text("The first 20 events")).to_be_visible()
    page.get_by_label("What the subscription begins with").select_option("0")
    button(page, "Save this search").click()
    expect(page.get_by_label("Its mailbox has the matches")).to_have_value("0")
    subscribe = card(page, "Subscribe")
    subscribe.get_by_label("Id", exact=True).fill("drizzle")
    expect(button(subscribe, "Subscribe")).to_be_enabled()
    button(subscribe, "Subscribe").click()
    button(page, "I have it").click()
    link(page, "Mailbox").click()
    stories = page.get_by_role("list", name="Matches, the newest first")
    expect(stories.get_by_role("heading")).to_have_count(25)
    expect(stories.locator("mark").first).to_have_text("Drizzle")
    button(page, "As a table").click()
    expect(page.get_by_role("cell").get_by_text('"title":"Drizzle 3"')).to_be_visible()


def test_a_mailbox_with_short_pages_is_read_to_its_end(open_page, running, monkeypatch):
    from playwright.sync_api import expect

    from tamis.broker import mail

    monkeypatch.setattr(mail, "MOST_BYTES", 1)  # each page has one event
    page = open_page(running.url, "/#/deliveries/mailbox?subscription=everything")
    button(page, "As a table").click()
    # The newest, and the oldest of those that are listed.
    last = running.context.match_server.archive.last_event
    for event in (last, max(1, last - 99)):
        expect(page.get_by_role("link", name=re.compile(f"^{event}$"))).to_be_visible()
