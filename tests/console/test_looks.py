"""Every screen, at two widths, in light and dark: without a serious fault, and as a picture.

`TAMIS_PICTURES=folder` keeps the pictures.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tamis.broker.rights import LOCAL
from tests.console.conftest import open_context
from tests.console.places import (
    button,
    card,
    expression_of,
    run_console,
    run_with_everything,
    wait_for_words,
)

WIDTHS = {"wide": {"width": 1280, "height": 800}, "narrow": {"width": 375, "height": 812}}


def choose_two(page) -> None:
    page.get_by_label("Choose adults").check()
    page.get_by_label("Choose children").check()
    page.get_by_text("2 subscriptions chosen").wait_for()


def complete(page) -> None:
    wait_for_words(page)
    expression_of(page).click()
    page.keyboard.type("a")
    page.keyboard.press("Control+Space")
    page.get_by_role("listbox").wait_for()


def forecast(page) -> None:
    expression_of(page).get_by_text("country").first.wait_for()  # the editor comes later
    button(card(page, "Forecast"), "Forecast").click()
    page.get_by_text("Of events").wait_for()


def import_some(page) -> None:
    content = "id,expression\ngood-1,age = 1\nbad,age = = 1\n"
    page.get_by_label("File with subscriptions").set_input_files(
        {"name": "rules.csv", "mimeType": "text/csv", "buffer": content.encode()}
    )
    page.get_by_text("Would be made").first.wait_for()


def open_recent(page) -> None:
    page.get_by_text("Recent events").click()
    page.get_by_role("button", name=re.compile("Take event")).first.wait_for()


def publish_some(page) -> None:
    page.get_by_text("Open", exact=True).wait_for()  # then it shows all that is published
    people = ((50, "FR"), (8, "DE"), (31, "NO"), (77, "IT"), (24, "PL"))
    events = [{"age": age, "country": country, "score": 99} for age, country in people]
    page.request.post("/v1/events", data=events)
    page.get_by_role("list", name="Events, the newest first").wait_for()


def lose(page) -> None:
    page.context.set_offline(True)
    page.get_by_label("The event, as JSON").fill('{"age": 1}')
    page.get_by_role("alert").wait_for()


# Where it is, what shows that it is there, and what is done first.
SCREENS: dict[str, tuple[str, str, Any]] = {
    "subscriptions": ("/#/subscriptions", "adults", None),
    "bulk": ("/#/subscriptions", "adults", choose_two),
    "silent": ("/#/subscriptions?state=silent", "alerts/critical", None),
    "new": ("/#/new?expression=age >= 18 AND country = 'FR'", "Canonical form", None),
    "completion": ("/#/new", "Start from a template", complete),
    "error": ("/#/new?expression=age >= = 18", "Error, line 1, column 8:", None),
    "edit": ("/#/edit/children", "In force", forecast),
    "dialog": ("/#/edit/children", "In force", lambda page: button(page, "Delete").click()),
    "import": ("/#/import", "Drop a file here", None),
    "import-result": ("/#/import", "Drop a file here", import_some),
    "search": ("/#/search?text=flood OR storm", "2 events", None),
    "playground": (
        '/#/playground?subscription=children&event={"age":20,"country":"FR"}',
        "Smallest change",
        None,
    ),
    "many": (
        '/#/playground?event={"age":89,"country":"FR","score":99}',
        "more below",
        None,
    ),
    "recent": ("/#/playground", "Recent events", open_recent),
    "live": ("/#/live", "Waiting for events", publish_some),
    "mailbox": ("/#/deliveries/mailbox?subscription=everything", "New matches appear here", None),
    "reading": (
        "/#/deliveries/mailbox?subscription=floods",
        "Flood in Oslo",
        lambda page: page.locator("mark").first.wait_for(),
    ),
    "webhooks": ("/#/deliveries/webhooks", "New webhook", None),
    "webhook": ("/#/deliveries/webhooks/1", "Send all again", None),
    "feeds": ("/#/deliveries/feeds", "Floods", None),
    "digests": ("/#/deliveries/digests", "not confirmed", None),
    "channels": ("/#/deliveries/mailbox", "people", None),
    "channel": ("/#/deliveries/mailbox?channel=people", "New matches appear here", None),
    "sources": ("/#/sources", "the answer is 500", None),
    "health": ("/#/health", "Most shared subexpressions", None),
    "keys": ("/#/admin/keys", "There are no keys", None),
    "log": ("/#/admin/audit", "What administrators did", None),
    "settings": ("/#/admin/settings", "server.folder", None),
    "nothing": ("/#/nothing", "The address names no screen", None),
    "banner": ("/#/playground", "Explain everything", lose),
}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with run_with_everything(tmp_path_factory.mktemp("looks") / "server") as running:
        yield running


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    kept = os.environ.get("TAMIS_PICTURES")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# What cannot be pressed or read without scrolling sideways: buttons and links that are beyond the
# window, or beyond what holds them, and words in two pieces.
MISPLACED = """() => {
  const found = [];
  for (const own of document.querySelectorAll("main button, main a, main select, dialog button")) {
    const box = own.getBoundingClientRect();
    if (!box.width || own.closest(".hidden")) continue;
    const holder = own.closest(".scroll")?.getBoundingClientRect();
    const left = Math.max(0, holder?.left ?? 0);
    const right = Math.min(innerWidth, holder?.right ?? innerWidth);
    if (box.left >= left - 1 && box.right <= right + 1) continue;
    found.push(`outside: ${own.outerHTML.slice(0, 120)}`);
  }
  for (const cell of document.querySelectorAll("td.words")) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const word of node.data.matchAll(/\\p{L}+/gu)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        const rows = new Set([...range.getClientRects()].map((own) => Math.round(own.top)));
        if (rows.size > 1) found.push(`broken: ${word[0]}`);
      }
    }
  }
  return found;
}"""

LOOKS = pytest.mark.parametrize(
    ("width", "scheme"),
    [
        ("wide", "light"),
        ("narrow", "dark"),
        pytest.param("wide", "dark", marks=pytest.mark.slow),
        pytest.param("narrow", "light", marks=pytest.mark.slow),
    ],
)


@LOOKS
def test_screens_have_no_serious_fault(browser, running, pictures, width, scheme):
    from playwright.sync_api import expect

    # What looks for faults is a script that the policy of the page does not allow.
    context = open_context(
        browser, running.url, viewport=WIDTHS[width], color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    found: list[str] = []
    for name, (path, text, act) in SCREENS.items():
        page.goto("about:blank")  # so that it starts from the address
        page.goto(path)
        place = page.get_by_role("button", name=text, exact=True).or_(page.get_by_text(text))
        expect(place.first).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
        if act is not None:
            act(page)
        found += look(page, pictures / f"{name}-{width}-{scheme}.png", name)
        context.set_offline(False)
    faults = context.faults
    context.close()
    assert found == []
    assert faults == []


@LOOKS
def test_screens_of_sessions_have_no_serious_fault(browser, pictures, tmp_path, width, scheme):
    """Signing in, keys, and a key that is shown once."""
    with run_console(tmp_path / "server", 0) as running:
        keys = running.context.match_server.broker.keys
        secret = keys.create(LOCAL, "root", ["admin"]).secret.reveal()
        context = open_context(
            browser, running.url, viewport=WIDTHS[width], color_scheme=scheme, bypass_csp=True
        )
        page = context.new_page()
        page.goto("/#/admin/keys")
        page.get_by_label("API key").wait_for()
        found = look(page, pictures / f"sign-in-{width}-{scheme}.png", "sign-in")
        page.get_by_label("API key").fill(secret)
        button(page, "Sign in").click()
        page.get_by_text("yours").wait_for()
        found += look(page, pictures / f"some-keys-{width}-{scheme}.png", "some keys")
        page.get_by_label("Owner", exact=True).fill("ann")
        button(page, "Make the key").click()
        page.get_by_role("dialog").wait_for()
        found += look(page, pictures / f"new-key-{width}-{scheme}.png", "a new key")
        faults = context.faults
        context.close()
    assert found == []
    assert faults == []


def look(page, picture: Path, name: str) -> list[str]:
    """Take a picture; returns what is wrong."""
    from axe_playwright_python.sync_playwright import Axe

    page.screenshot(path=picture)
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    found = [f"{name} is {wide} pixels too wide"] if wide > 0 else []
    found += [f"{name}: {own}" for own in page.evaluate(MISPLACED)]
    for own in Axe().run(page).response["violations"]:
        if own["impact"] in ("serious", "critical"):
            found += [
                f"{name}: {own['id']}: {node['target']} {node['html'][:200]}"
                f" {node['failureSummary']}"
                for node in own["nodes"]
            ]
    return found
