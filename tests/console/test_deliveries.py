"""Digests from the form to the address that confirms them, and mailboxes that are shared."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from tests.console.mail import run_mail_server
from tests.console.places import button, card, link, run_console
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # a browser takes minutes


@pytest.fixture(scope="module")
def mail():
    with run_mail_server() as mail:
        yield mail


@pytest.fixture(scope="module")
def running(tmp_path_factory, mail):
    folder = tmp_path_factory.mktemp("deliveries") / "server"
    with run_console(folder, 0, smtp_port=mail.port) as running:
        yield running


def test_a_digest_is_made_confirmed_and_deleted(open_page, running, mail):
    from playwright.sync_api import expect

    page = open_page(running.url, "/#/edit/adults")
    link(page, "Digests").click()
    expect(page.get_by_text("There are no digests")).to_be_visible()
    form = card(page, "New digest")
    form.get_by_label("E-mail address").fill("ann@example.com")
    form.get_by_label("At", exact=True).fill("18:30")
    form.get_by_label("Time zone").fill("Nowhere/Atlantis")
    button(form, "Make the digest").click()
    expect(form.get_by_role("alert").get_by_text("Nowhere/Atlantis")).to_be_visible()
    form.get_by_label("Time zone").fill("Europe/Oslo")
    button(form, "Make the digest").click()
    row = page.get_by_role("row").filter(has_text="ann@example.com")
    expect(row.get_by_text("daily at 18:30")).to_be_visible()
    expect(row.get_by_role("link", name="adults")).to_be_visible()
    expect(row.get_by_text("not confirmed")).to_be_visible()

    # The address opens the link that it got.
    wait_until(lambda: mail.texts("ann@example.com"), "the address was asked")
    (text,) = mail.texts("ann@example.com")
    address = re.search(r"http\S+/digests/confirm/\S+", text)
    other = open_page(running.url, urlsplit(address[0]).path)
    button(other, "Send them").click()
    expect(other.get_by_text("The digests will be sent.")).to_be_visible()
    expect(row.get_by_text("active", exact=True)).to_be_visible()

    page.get_by_role("button", name="Delete the digest to ann@example.com").click()
    button(page.get_by_role("dialog"), "Delete").click()
    expect(page.get_by_text("There are no digests")).to_be_visible()
    assert not running.context.match_server.broker.digests.list().items


def test_the_mailbox_of_a_channel_is_read(open_page, running):
    from playwright.sync_api import expect

    with running.client() as client:
        made = {"name": "a / b", "subscriptions": ["adults", "everything"]}
        assert client.post("/v1/channels", json=made).status_code == 201
        page = open_page(running.url, "/#/deliveries")
        link(page, "a / b").click()
        expect(page.get_by_text("New matches appear here")).to_be_visible()
        members = card(page, "Subscriptions of the channel")
        expect(members.get_by_role("link")).to_have_text(["adults", "everything"])
        assert page.url.endswith("#/deliveries/mailbox?channel=a+%2F+b")
        client.post("/v1/events", json={"age": 33, "country": "FR", "note": "shared"})
        row = page.get_by_role("row").filter(has_text="shared")
        expect(row.get_by_role("link", name="adults")).to_be_visible()
        expect(row.get_by_role("link", name="everything")).to_be_visible()

        # What hangs on it is made by its name too.
        page.goto("/#/deliveries/digests")
        form = card(page, "New digest")
        form.get_by_label("Matches of").select_option("channel")
        form.get_by_label("Channel", exact=True).fill("a / b")
        form.get_by_label("E-mail address").fill("ann@tamis.test")  # is trusted
        form.get_by_label("How often").select_option("hourly")
        form.get_by_label("At minute").fill("5")
        button(form, "Make the digest").click()
        row = page.get_by_role("row").filter(has_text="ann@tamis.test")
        expect(row.get_by_text("hourly, at minute 5")).to_be_visible()
        expect(row.get_by_text("active", exact=True)).to_be_visible()
        link(row, "a / b").click()
        expect(page.get_by_role("heading", name="Matches of the channel a / b")).to_be_visible()
        page.get_by_label("Kind of mailbox").select_option("channel")
        page.get_by_label("Name of a channel").fill("nothing")
        expect(page.get_by_text('There is no channel "nothing".')).to_be_visible()
