"""Who is signed in, and what they see: keys, roles, sessions that end, servers that go away."""

from __future__ import annotations

import re

import pytest

from tamis.broker.rights import LOCAL
from tests.console.conftest import open_context
from tests.console.keyboard import Keyboard
from tests.console.places import button, card, expression_of, link, run_console, write_expression
from tests.server.running import run_server
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A server that needs keys."""
    folder = tmp_path_factory.mktemp("sessions") / "server"
    with run_console(folder, 20) as running:
        running.context.match_server.broker.keys.create(LOCAL, "root", ["admin"])
        yield running


def make_key(running, owner: str, *roles: str) -> str:
    return running.context.match_server.broker.keys.create(LOCAL, owner, roles).secret.reveal()


def sign_in(page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    button(page, "Sign in").click()


def test_a_key_signs_in_and_out(open_page, running):
    from playwright.sync_api import expect

    page = open_page(running.url, "/#/subscriptions")
    expect(page.get_by_role("heading", name="Sign in to Tamis")).to_be_visible()
    sign_in(page, "tamis_000000000000_" + "x" * 43)
    expect(page.get_by_text("This key does not open the console")).to_be_visible()
    expect(page.get_by_text("Copy the whole key", exact=False)).to_be_visible()
    assert "Bearer" not in page.locator("main").inner_text()  # that is for programs
    key = make_key(running, "ann", "admin")
    keys = Keyboard(page)
    keys.write(page.get_by_label("API key"), key)
    page.keyboard.press("Enter")
    expect(link(page, "adults")).to_be_visible()
    stored = page.evaluate(
        "JSON.stringify({...localStorage, ...sessionStorage}) + document.cookie"
        " + document.body.innerHTML"
    )
    assert key not in stored
    assert "session_" not in stored  # scripts cannot read the cookie
    page.reload()
    expect(link(page, "adults")).to_be_visible()
    keys.use(button(page, "Sign out"))
    expect(page.get_by_role("heading", name="Sign in to Tamis")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Sign in to Tamis")).to_be_visible()


def test_a_role_that_is_missing_is_named(open_page, running):
    from playwright.sync_api import expect

    page = open_page(running.url, "/#/subscriptions")
    sign_in(page, make_key(running, "bob", "read"))
    expect(page.get_by_text("There are no subscriptions yet")).to_be_visible()  # of bob
    expect(link(page, "New subscription")).to_be_hidden()
    expect(link(page, "Health")).to_be_hidden()
    page.goto("/#/admin")
    expect(page.get_by_text("This needs a key with the role admin.").first).to_be_visible()
    page.goto("/#/health")
    expect(page.get_by_text("This needs a key with the role admin.").first).to_be_visible()
    page.goto("/#/live")
    expect(page.get_by_text(re.compile("Only an admin may read events"))).to_be_visible()
    page.goto("/#/edit/adults")
    expect(page.get_by_text('There is no subscription "adults".')).to_be_visible()
    page.goto("/#/new")
    expect(page.get_by_text("Your key does not have the role subscribe.")).to_be_visible()


@pytest.mark.slow
def test_an_owner_changes_with_the_ticket(open_page, running):
    from playwright.sync_api import expect

    page = open_page(running.url, "/#/new")
    sign_in(page, make_key(running, "eve", "subscribe", "read"))
    write_expression(page, "age = 7")
    subscribe = card(page, "Subscribe")
    subscribe.get_by_label("Id", exact=True).fill("of-eve")
    button(subscribe, "Subscribe").click()
    ticket = page.get_by_text(re.compile("^tkt_")).inner_text()
    button(page, "I have it").click()
    page.get_by_label("Tags").fill("kept")  # this tab has the ticket
    button(page, "Save the change").click()
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()

    other = open_page(running.url, "/#/edit/of-eve")  # and this one does not
    sign_in(other, make_key(running, "eve", "subscribe", "read"))
    other.get_by_label("Tags").fill("other")
    button(other, "Save the change").click()
    expect(other.get_by_text(re.compile("can be changed only with its ticket"))).to_be_visible()
    other.get_by_label("Ticket").fill(ticket)
    button(other, "Use this ticket").click()
    button(other, "Save the change").click()
    expect(other.get_by_text("Nothing is changed.")).to_be_visible()
    assert running.context.match_server.live.get("of-eve").tags == ("other",)


@pytest.mark.slow
def test_a_session_that_ends_loses_nothing(open_page, running):
    from playwright.sync_api import expect

    keys = running.context.match_server.broker.keys
    made = keys.create(LOCAL, "ann", ["admin"])
    page = open_page(running.url, "/#/new")
    sign_in(page, made.secret.reveal())
    write_expression(page, "age = 44")
    expect(page.get_by_text("Valid", exact=True)).to_be_visible()
    keys.revoke(LOCAL, made.key.id)
    write_expression(page, "age = 45")
    expect(page.get_by_text(re.compile("Your session has ended"))).to_be_visible()
    sign_in(page, make_key(running, "ann", "admin"))
    expect(page.get_by_text("Valid", exact=True)).to_be_visible()
    expect(expression_of(page)).to_have_text("age = 45")
    expect(page.get_by_role("dialog")).to_be_hidden()


@pytest.mark.slow
def test_the_first_key_ends_the_open_time(open_page, tmp_path):
    from playwright.sync_api import expect

    with run_console(tmp_path / "server", 0) as running:
        page = open_page(running.url, "/#/admin")
        expect(page.get_by_text("There are no keys")).to_be_visible()
        form = card(page, "New key")
        form.get_by_label("Owner", exact=True).fill("root")
        form.get_by_role("checkbox", name=re.compile("admin")).check()
        button(form, "Make the key").click()
        key = page.get_by_text(re.compile("^tamis_")).inner_text()
        button(page, "I have it").click()
        sign_in(page, key)
        expect(page.get_by_role("cell", name="root")).to_be_visible()
        expect(page.get_by_text("yours")).to_be_visible()


def test_a_restart_is_shown_and_the_page_recovers(open_page, tmp_path):
    from playwright.sync_api import expect

    with run_console(tmp_path / "server", 5) as running:
        page = open_page(running.url, "/#/health")
        expect(page.get_by_text("Ready", exact=True)).to_be_visible()
        port = int(running.url.rpartition(":")[2])
        server, settings = running.context.match_server, running.context.settings
        before = running.context.instance
        running.stop()
        expect(page.get_by_text("There is no connection to the server.")).to_be_visible()
        expect(page.get_by_text("Nothing you typed is lost.", exact=False)).to_be_visible()
        wait_until(lambda: is_free(port), "the port is free")
        with run_server(server, settings, port=port) as again:
            assert again.context.instance != before
            expect(page.get_by_text("There is no connection to the server.")).to_be_hidden()
            expect(page.get_by_text("Ready", exact=True)).to_be_visible()


def is_free(port: int) -> bool:
    import socket

    with socket.socket() as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            own.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@pytest.mark.slow
def test_a_lost_connection_is_shown_and_the_page_recovers(open_page, running):
    from playwright.sync_api import expect

    page = open_page(running.url, "/#/playground")
    sign_in(page, make_key(running, "ann", "admin"))
    expect(page.get_by_role("button", name="Explain everything")).to_be_visible()
    page.context.set_offline(True)
    page.get_by_label("The event, as JSON").fill('{"age": 21, "country": "FR"}')
    expect(page.get_by_text("There is no connection to the server.")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_text("There is no connection to the server.")).to_be_hidden()
    expect(page.get_by_role("button", name="Explain adults")).to_be_visible()
    expect(page.get_by_label("The event, as JSON")).to_have_value('{"age": 21, "country": "FR"}')


# Until the session is known, nothing that waits for a frame or for a timer runs: so it is when the
# machine is busy while the page starts.
BUSY = """
const { setTimeout: later, requestAnimationFrame: frame, fetch: ask } = window;
const held = [];
let isHeld = true;
window.setTimeout = (...given) => (isHeld ? held.push(() => later(...given)) : later(...given));
window.requestAnimationFrame = (run) => (isHeld ? held.push(() => frame(run)) : frame(run));
window.fetch = async (...given) => {
  const answer = await ask(...given);
  if (isHeld) later(() => { isHeld = false; held.forEach((run) => run()); }, 300);
  return answer;
};
"""


def test_an_early_session_is_not_lost(browser, running):
    from playwright.sync_api import expect

    context = open_context(browser, running.url)
    context.add_init_script(BUSY)
    page = context.new_page()
    page.goto("/#/subscriptions")
    expect(page.get_by_role("heading", name="Sign in to Tamis")).to_be_visible()
    faults = context.faults
    context.close()
    assert faults == []
