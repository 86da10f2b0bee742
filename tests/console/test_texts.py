"""Stored texts that try to be scripts, links or tricks stay texts, wherever they are shown."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tamis.broker.rights import LOCAL
from tests.console.places import expression_of, run_console, subscription, wait_for_words
from tests.server.receiver import run_receiver
from tests.waiting import wait_until

# Each would run, load or fake something if it were taken for more than a text.
SCRIPT = "<img src=x onerror=window.hit=1><script>window.hit=1</script>"
IMAGE = "<img src=x onerror=window.hit=1>"
LINK = "<a href=javascript:window.hit=1>x</a>"
ANSI = "\x1b[31mred"
BIDI = "\u202egnp.exe\u2066"
UNSEEN = "a\u3164b\u115fc\u034fd\U000e0041e\u200bf"
NEVER_SHOWN = "[\x1b\u202e\u2066\u3164\u115f\u034f\U000e0041\u200b]"
TEXTS = (SCRIPT, LINK, ANSI, BIDI, UNSEEN)
ALL = "".join(TEXTS)
NAME = "".join(own for own in TEXTS if own != ANSI)  # of things that have no control characters
OLD = f"old {ALL}"
QUOTED = ALL.replace("'", "''").replace("\x1b", "\\u001b")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts") / f"{IMAGE}{BIDI}"  # one of the settings
    yesterday = datetime.now(UTC) - timedelta(days=1)
    expired = subscription(OLD, f"gone = '{QUOTED}'", ALL, TEXTS, yesterday)
    # A mail server that does not answer: a digest is shown all the same.
    with (
        run_console(folder, 0, others=[expired], smtp_port=1) as running,
        run_receiver() as receiver,
        running.client() as client,
    ):
        receiver.answer = 500
        made = client.post(
            "/v1/subscriptions",
            json={
                "id": ALL,
                "expression": f"note = '{QUOTED}'",
                "owner": ALL,
                "tags": list(TEXTS),
                "lease": 1e6,
            },
        )
        assert made.status_code == 201, made.text
        hook = client.post("/v1/webhooks", json={"subscription": ALL, "url": receiver.url})
        assert hook.status_code == 201, hook.text
        feed = client.post("/v1/feeds", json={"subscription": ALL, "title": NAME})
        assert feed.status_code == 201, feed.text
        digest = {"subscription": ALL, "address": "ann@tamis.test"}
        assert client.post("/v1/digests", json=digest).status_code == 201
        channel = {"name": NAME, "subscriptions": [ALL], "owner": NAME}
        made = client.post("/v1/channels", json=channel)
        assert made.status_code == 201, made.text
        article = {"title": ALL, "body": ALL, "link": "javascript:window.hit=1", "feed_title": ALL}
        published = client.post("/v1/events", json={"note": ALL, ALL: ALL, **article})
        assert published.json()["matches"] == 2, published.text
        matches = f"/v1/subscriptions/{quote(ALL, safe='')}"
        head = client.get(f"{matches}/matches").json()
        told = {"consumer": f"{IMAGE}{BIDI}", "event": 1, "epoch": head["epoch"]}
        assert client.post(f"{matches}/acknowledge", json=told).status_code == 200
        source = {"url": f"{receiver.url}/nothing", "title": NAME, "tags": [NAME]}
        client.post("/v1/sources?fetch=false", json=source)
        letters = f"/v1/webhooks/{hook.json()['number']}/dead-letters"
        wait_until(lambda: client.get(letters).json()["letters"], "there is a dead letter")
        yield running


def place_of(*parts: str, **query: str) -> str:
    path = "/".join(quote(part, safe="") for part in parts)
    return f"/#/{path}?{urlencode(query)}" if query else f"/#/{path}"


EVENT = '{"note": 1}'
PLACES: dict[str, tuple[str, str]] = {
    "list": (place_of("subscriptions"), "[role=table]"),
    "found": (place_of("subscriptions", text=SCRIPT), "[role=table]"),
    "editor": (place_of("edit", ALL), "main"),
    "unknown id": (place_of("edit", f"x{ALL}"), ".note"),
    "expired": (place_of("edit", OLD), ".card"),
    "playground": (place_of("playground", subscription=ALL, event=EVENT), ".explanation"),
    "mailbox": (place_of("deliveries", "mailbox", subscription=ALL), "table"),
    "channels": (place_of("deliveries", "mailbox"), "table"),
    "channel": (place_of("deliveries", "mailbox", channel=NAME), "main"),
    "digests": (place_of("deliveries", "digests", subscription=ALL), "main"),
    "feeds": (place_of("deliveries", "feeds"), "table"),
    "webhooks": (place_of("deliveries", "webhooks"), "table"),
    "sources": (place_of("sources"), "[role=table]"),
    "search": (place_of("search", kind="expression", text="note IS NOT NULL"), ".story h3"),
    "settings": (place_of("admin", "settings"), "table"),
    "choices": (place_of("playground", event=json.dumps({"note": ALL})), ".choice"),
    "draft": (place_of("playground", event=EVENT, draft=f"note = '{QUOTED}'"), ".explanation"),
    "webhook": (place_of("deliveries", "webhooks", "1"), "main"),
    "health": (place_of("health"), "main"),
    "screen": (place_of(ALL), "main"),
}


def expect_text_only(page: Any, faults: list[str]) -> None:
    """Nothing of a text became an element, ran, or changed how others are shown."""
    assert page.evaluate("window.hit") is None
    # The editor has images of its own, without an address, next to characters that it names.
    made = "main img:not(.cm-widgetBuffer), main img[src], main script, main iframe, [onerror]"
    assert page.locator(made).count() == 0
    assert page.locator("main a[href^='javascript']").count() == 0
    shown = page.locator("body").inner_text()
    assert not re.search(NEVER_SHOWN, shown)
    names = page.evaluate(
        "[...document.querySelectorAll('[aria-label], [title]')].map("
        "own => `${own.ariaLabel} ${own.title}`).join(' ')"
    )
    names += " ".join(page.locator("datalist option").evaluate_all("all => all.map(o => o.value)"))
    assert not re.search(NEVER_SHOWN, names + page.title())
    assert faults == []


def test_stored_texts_stay_texts(open_page, running):
    """In one window: to open one for each place would take most of the time."""
    page = open_page(running.url, "about:blank")
    for name, (path, where) in PLACES.items():
        page.goto("about:blank")  # so that it starts from the address
        page.goto(path)
        look_at(page, name, where)


def look_at(page: Any, name: str, where: str) -> None:
    from playwright.sync_api import expect

    if name == "webhook":
        expect(page.get_by_text("dead", exact=True)).to_be_visible()
    elif name not in ("screen",):
        expect(page.locator(where).get_by_text("<img src=x", exact=False).first).to_be_attached()
    if name in ("list", "editor", "playground", "mailbox", "health"):
        expect(page.locator(where).get_by_text("U+202E").first).to_be_attached()
    if name in ("list", "editor", "health"):
        expect(page.locator(where).get_by_text("U+001B").first).to_be_attached()
    expect_text_only(page, page.context.faults)


@pytest.mark.slow
def test_a_text_in_an_error_stays_a_text(open_page, running):
    from playwright.sync_api import expect

    page = open_page(running.url, place_of("new", expression=f"a = = '{QUOTED}'"))
    expect(page.get_by_text("Error, line 1")).to_be_visible()
    expect_text_only(page, page.context.faults)
    page.goto(place_of("import"))
    bad = [{"id": SCRIPT, "expression": SCRIPT}, {"id": LINK, "expression": 5}]
    bad += [{"id": ANSI + BIDI, "expression": f"x = = '{BIDI}{ANSI}'"}]
    bad += [{"id": f"made {NAME}", "expression": "a = 1", "tags": [NAME]}]
    content = "\n".join(map(json.dumps, bad))
    page.get_by_label("File with subscriptions").set_input_files(
        {"name": f"{LINK}.jsonl", "mimeType": "text/plain", "buffer": content.encode()}
    )
    expect(page.get_by_text("Error", exact=True).first).to_be_visible()
    for made in ("Would be made", "Made"):
        row = page.get_by_role("row").filter(has=page.get_by_text(made, exact=True))
        expect(row.get_by_text("made <img src=x", exact=False)).to_be_visible()
        expect(row.get_by_text("U+202E").first).to_be_visible()
        expect(page.get_by_role("cell", name=SCRIPT, exact=True)).to_be_visible()
        expect(page.get_by_role("cell").get_by_text("U+001B").first).to_be_visible()
        expect_text_only(page, page.context.faults)
        if made == "Would be made":
            page.get_by_role("button", name="Import 1 row, without those with errors").click()
    page.goto(place_of("playground", event=f"{SCRIPT}{BIDI}"))
    expect(page.get_by_text("This is not an event", exact=False)).to_be_visible()
    expect_text_only(page, page.context.faults)


@pytest.mark.slow
def test_a_text_in_the_live_tap_stays_a_text(open_page, running):
    with running.client() as client:
        page = open_page(running.url, place_of("live"))
        page.get_by_text("Open", exact=True).wait_for()
        client.post("/v1/events", json={"note": ALL})
        events = page.get_by_role("list", name="Events, the newest first")
        events.get_by_text("<img src=x").first.wait_for()
        expect_text_only(page, page.context.faults)


@pytest.mark.slow
def test_a_text_in_keys_and_their_log_stays_a_text(open_page, tmp_path):
    from playwright.sync_api import expect

    with run_console(tmp_path / "server", 0) as running:
        keys = running.context.match_server.broker.keys
        admin = keys.create(LOCAL, NAME, ["admin"]).secret.reveal()
        page = open_page(running.url, place_of("admin", "keys"))
        page.get_by_label("API key").fill(admin)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("cell").get_by_text("<img src=x").first).to_be_visible()
        expect_text_only(page, page.context.faults)
        page.goto(place_of("admin", "audit"))
        expect(page.get_by_role("cell").get_by_text("<img src=x").first).to_be_visible()
        expect_text_only(page, page.context.faults)


@pytest.mark.slow
def test_a_text_in_the_editor_and_its_forecast_stays_a_text(open_page, running):
    from playwright.sync_api import expect

    page = open_page(running.url, place_of("new", expression=f"note = '{QUOTED}'"))
    page.get_by_text("Similar subscriptions: 1").click()
    expect(page.get_by_role("link").get_by_text("<img src=x").first).to_be_visible()
    page.get_by_role("button", name="Forecast", exact=True).click()
    expect(page.get_by_role("region", name="The newest matches")).to_be_visible()
    expect_text_only(page, page.context.faults)
    wait_for_words(page)
    expression_of(page).click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("`")
    completion = page.get_by_role("listbox")
    expect(completion.get_by_text("<img src=x").first).to_be_visible()
    assert not re.search(NEVER_SHOWN, completion.inner_text())
    expect_text_only(page, page.context.faults)


@pytest.mark.slow
def test_a_text_in_dialogs_toasts_and_errors_stays_a_text(open_page, tmp_path):
    from playwright.sync_api import expect

    with run_console(tmp_path / "server", 0) as running, running.client() as client:
        for tags in ([ALL], []):
            made = {"id": ALL + "".join(tags), "expression": "x = 1", "tags": tags, "lease": 1e6}
            assert client.post("/v1/subscriptions", json=made).status_code == 201
        page = open_page(running.url, place_of("edit", ALL))
        page.get_by_label("Tags").fill("new")
        page.get_by_role("button", name="Save the change").click()
        expect(page.locator(".toasts").get_by_text("<img src=x")).to_be_visible()
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(page.get_by_role("dialog").get_by_text("<img src=x")).to_be_visible()
        expect_text_only(page, page.context.faults)
        # What is gone in the meantime cannot be changed: the error names it.
        page.goto(place_of("subscriptions"))
        page.get_by_role("table").get_by_text("<img src=x").first.wait_for()
        page.get_by_label("Choose all that are loaded").check()
        client.delete(f"/v1/subscriptions/{quote(ALL, safe='')}")
        page.get_by_role("button", name="Renew for a day").click()
        expect(page.get_by_role("alert").get_by_text("<img src=x").first).to_be_visible()
        expect_text_only(page, page.context.faults)
