"""A list of a million subscriptions: every row can be reached, and few are in the document."""

from __future__ import annotations

import pytest

from tests.console.conftest import open_context
from tests.console.places import run_console
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # a browser takes minutes

# Answers as the server does, in the page: a million rows in five pages.
MANY = """
const ask = window.fetch;
const empty = { owner: "", tags: [], attributes: {}, valid_from: null, valid_until: null };
const rows = (from) => Array.from({ length: 200_000 }, (_, at) => ({
  id: `s${from + at}`, number: 1, revision: 1, expression: "TRUE", ...empty,
}));
window.fetch = async (path, ...given) => {
  const url = new URL(path, location.href);
  if (url.pathname !== "/v1/subscriptions") return ask(path, ...given);
  const from = Number(url.searchParams.get("cursor") ?? 0);
  const cursor = from < 800_000 ? String(from + 200_000) : null;
  return new Response(JSON.stringify({ subscriptions: rows(from), cursor }));
};
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with run_console(tmp_path_factory.mktemp("rows") / "server", 0) as running:
        yield running


def test_a_million_rows_are_scrolled(browser, running):
    from playwright.sync_api import expect

    context = open_context(browser, running.url)
    context.add_init_script(MANY)
    page = context.new_page()
    page.goto("/#/subscriptions")
    rows = page.get_by_role("rowgroup", name="Subscriptions: rows")

    def row(number: int):
        return page.get_by_role("link", name=f"s{number}", exact=True)

    expect(row(0)).to_be_in_viewport()
    for least in range(1, 5):
        rows.evaluate("own => own.scrollTo(0, own.scrollHeight)")
        expect(
            page.get_by_text(f"The first {(least + 1) * 200},000").or_(
                page.get_by_text("1,000,000 subscriptions")
            )
        ).to_be_visible()
    rows.evaluate("own => own.scrollTo(0, own.scrollHeight)")
    expect(row(999_999)).to_be_in_viewport()
    assert page.locator(".rows-all .row").count() < 60

    # A page up has the rows just before, none is left out, and so on.
    rows.focus()
    page.keyboard.press("PageUp")
    expect(row(999_999)).not_to_be_in_viewport()
    seen = numbers(page)
    for _ in range(5):
        before = min(seen)
        page.keyboard.press("PageUp")
        wait_until(lambda least=before: min(numbers(page)) < least, "it has moved")
        now = numbers(page)
        assert before - 60 < min(now) < before
        assert max(now) >= before - 1
        seen = now
    # The middle of the bar is the middle of the list.
    rows.evaluate("own => own.scrollTo(0, (own.scrollHeight - own.clientHeight) / 2)")
    expect(row(500_000)).to_be_in_viewport()
    rows.evaluate("own => own.scrollTo(0, 0)")
    expect(row(0)).to_be_in_viewport()
    faults = context.faults
    context.close()
    assert faults == []


def numbers(page) -> list[int]:
    """The rows that are in the document."""
    shown = page.locator(".rows-all .row .id a").all_inner_texts()
    return [int(own.removeprefix("s")) for own in shown] or [0]
