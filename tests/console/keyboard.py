"""A person without a mouse: Tab, Enter, Space, arrows, and what they type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

MOST_STEPS = 400
OUTLINE = "own => getComputedStyle(own.closest('.cm-editor') ?? own).outlineStyle"


class Keyboard:
    """The keys of a page. Nothing here clicks, or sets the focus."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def reach(self, place: Locator) -> None:
        """Press Tab until the focus is there, and it can be seen that it is."""
        place.wait_for()
        for _ in range(MOST_STEPS):
            if place.evaluate("own => own.getRootNode().activeElement === own"):
                # The editor gets its class for the focus a moment later.
                wait_until(lambda: place.evaluate(OUTLINE) == "solid", "the focus can be seen")
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {place}")

    def use(self, place: Locator) -> None:
        """Press a button, or follow a link."""
        self.reach(place)
        self.page.keyboard.press("Enter")

    def write(self, place: Locator, text: str) -> None:
        """Replace the text of a field."""
        self.reach(place)
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(text)
