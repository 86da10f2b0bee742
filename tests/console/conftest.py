"""A real browser on a real server. Without Chromium, these tests are left out."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.waiting import HANG_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
HAS_PLAYWRIGHT = importlib.util.find_spec("playwright") is not None
LEFT_OUT = (
    "left out: the console in a browser (a walk, every screen, sessions); it needs Chromium and "
    "Playwright: apt-get install chromium, pip install '.[dev]'"
)
PATIENCE = HANG_SECONDS * 1_000  # milliseconds
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
]


# Not for the session: as long as Playwright runs, its thread cannot run another event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None or not HAS_PLAYWRIGHT:
        if os.environ.get("TAMIS_NEEDS_BROWSER"):
            pytest.fail(LEFT_OUT)
        pytest.skip(LEFT_OUT)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=ARGUMENTS, timeout=PATIENCE
        )
        yield browser
        browser.close()


def open_context(browser: Browser, url: str, **options: Any) -> BrowserContext:
    """A window with its own cookies; what goes wrong in its pages fails the test at the end."""
    given = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **options}
    context = browser.new_context(base_url=url, **given)
    context.set_default_timeout(PATIENCE)
    context.faults = []  # type: ignore[attr-defined]

    def watch(page: Page) -> None:
        page.on("pageerror", lambda error: context.faults.append(str(error)))
        page.on("dialog", lambda dialog: context.faults.append(f"dialog {dialog.message}"))
        page.on("console", lambda message: note(context, message))

    context.on("page", watch)
    return context


def note(context: Any, message: Any) -> None:
    """Remember an error of the page. That a request failed is for the page to show, not an error
    of it. Chromium itself gives text that replaces other text the style of that, which the policy
    forbids: such a style has no line of a script.
    """
    is_own = message.text.startswith("Applying inline style") and not message.location["lineNumber"]
    is_shown = message.text.startswith("Failed to load resource")
    if message.type == "error" and not is_own and not is_shown:
        context.faults.append(f"{message.text} ({message.location})")


@pytest.fixture
def open_page(browser) -> Iterator[Any]:
    """Opens pages, each in a window of its own; none of them may have an error."""
    contexts = []

    def open_one(url: str, path: str = "/", **options: Any) -> Page:
        context = open_context(browser, url, **options)
        contexts.append(context)
        page = context.new_page()
        page.goto(path)
        return page

    yield open_one
    for context in contexts:
        faults = context.faults
        context.close()
        assert faults == []
