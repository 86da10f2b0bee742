"""The whole way of a person: write, see the error, forecast, save, see it match, ask why not.

`make check` walks it with 100,000 subscriptions loaded, which all these tests share.
"""

from __future__ import annotations

import re

import pytest

from tests.console.keyboard import Keyboard
from tests.console.places import (
    button,
    card,
    expression_of,
    link,
    run_console,
    wait_for_words,
    write_expression,
)
from tests.server.receiver import run_receiver
from tests.waiting import wait_until

A_FEW = pytest.param(300, marks=pytest.mark.slow)
A_LOT = pytest.param(100_000, marks=pytest.mark.slow)
BOTH = pytest.mark.parametrize("n_more", [300, A_LOT], scope="module")
FEW = pytest.mark.parametrize("n_more", [A_FEW], scope="module")
MANY = pytest.mark.parametrize("n_more", [A_LOT], scope="module")


@pytest.fixture(scope="module")
def running(tmp_path_factory, n_more):
    with run_console(tmp_path_factory.mktemp("walk") / "server", n_more) as running:
        yield running


@BOTH
def test_from_a_draft_to_its_end(open_page, running):  # noqa: PLR0915 - it is a long way
    from playwright.sync_api import expect

    page = open_page(running.url, "/#/subscriptions")
    expect(page.get_by_text("No keys", exact=True)).to_be_visible()
    link(page, "New subscription").click()

    # The error is shown with its place; the button works when it is corrected.
    write_expression(page, "age >= = 30")
    expect(page.get_by_text("Error, line 1, column 8:")).to_be_visible()
    expect(page.get_by_text("expected a condition or a value, found '='").first).to_be_visible()
    subscribe = card(page, "Subscribe")
    expect(button(subscribe, "Subscribe")).to_be_disabled()
    write_expression(page, "age >= 30 AND age >= 40 AND country = 'NO'")
    expect(page.get_by_text("Valid", exact=True)).to_be_visible()
    expect(page.get_by_text("Hint", exact=False).first).to_be_visible()  # one test implies another
    page.get_by_text("Canonical form").click()
    expect(page.get_by_text("age >= 40 AND country = 'NO'", exact=True)).to_be_visible()

    # What would it have matched?
    forecast = card(page, "Forecast")
    button(forecast, "Forecast").click()
    expect(forecast.get_by_text("Of events")).to_be_visible()
    expect(forecast.get_by_text("the rarest: it decides")).to_be_visible()

    subscribe.get_by_label("Id", exact=True).fill("mine")
    subscribe.get_by_label("Tags").fill("walk, norway")
    button(subscribe, "Subscribe").click()
    expect(page.get_by_text(re.compile("^tkt_"))).to_be_visible()
    button(page, "I have it").click()
    expect(page.get_by_role("heading", name="mine", level=1)).to_be_visible()

    # Publish, and see the match arrive.
    link(page, "Mailbox").click()
    expect(page.get_by_text("New matches appear here")).to_be_visible()
    expect(page.get_by_text("Nothing has matched yet")).to_be_visible()
    other = open_page(running.url, "/#/playground")
    other.get_by_label("The event, as JSON").fill('{"age": 50, "country": "NO", "big": 1e400}')
    expect(other.get_by_role("button", name="Explain mine")).to_be_visible()
    button(other, "Publish this event").click()
    expect(page.get_by_text('{"age":50,"country":"NO","big":1e400}')).to_be_visible()

    # Why does another event not match?
    other.get_by_label("The event, as JSON").fill('{"age": 39, "country": "NO"}')
    expect(other.get_by_role("button", name="Explain mine")).to_be_hidden()
    other.get_by_label("Any other subscription").fill("mine")
    other.get_by_role("button", name="Explain mine").click()
    expect(other.get_by_text("it would match if age >= 40")).to_be_visible()
    tree = other.get_by_role("list", name="Expression with the truth of each part")
    expect(tree.get_by_text("age is 39").first).to_be_visible()
    expect(tree.locator(".truth.false").first).to_be_visible()
    expect(tree.locator(".truth.true").first).to_be_visible()
    again = open_page(running.url, other.url)  # the address is the view
    expect(again.get_by_text("it would match if age >= 40")).to_be_visible()

    # Change it, and compare with what is in force.
    link(other, "Open").click()
    write_expression(other, "age >= 35 AND country = 'NO'")
    expect(other.get_by_text("In force now")).to_be_visible()
    forecast = card(other, "Forecast")
    button(forecast, "Compare").click()
    expect(forecast.get_by_text("Newly matching", exact=True)).to_be_visible()
    expect(forecast.get_by_text("No longer matching: 0")).to_be_visible()
    button(other, "Save the change").click()
    expect(other.get_by_text("Nothing is changed.")).to_be_visible()
    assert running.context.match_server.live.get("mine").expression == (
        "age >= 35 AND country = 'NO'"
    )

    before = running.context.match_server.live.get("mine").valid_until
    other.get_by_label("Renew for").select_option("30 days")
    button(other, "Renew").click()
    wait_until(
        lambda: running.context.match_server.live.get("mine").valid_until > before, "it is renewed"
    )
    button(other, "Delete").click()
    button(other.get_by_role("dialog"), "Delete").click()
    expect(other.get_by_role("heading", name="Subscriptions", level=1)).to_be_visible()
    assert running.context.match_server.live.get("mine") is None


@FEW
def test_a_value_that_was_seen_is_completed(open_page, running):
    from playwright.sync_api import expect

    page = open_page(running.url, "/#/new")
    wait_for_words(page)
    expression_of(page).click()
    page.keyboard.type("country = '")  # the editor closes the quote
    page.get_by_role("listbox").get_by_text("'FR'").click()
    expect(expression_of(page)).to_have_text("country = 'FR'")


@FEW
def test_a_forecast_says_what_decides(open_page, running):
    from playwright.sync_api import expect

    page = open_page(running.url, "/#/new?expression=contry = 'FR' OR age >= 0")
    wait_for_words(page)
    forecast = card(page, "Forecast")
    button(forecast, "Forecast").click()
    decides = forecast.get_by_role("row").filter(has_text="the most frequent: it decides")
    expect(decides.get_by_text("age >= 0")).to_be_visible()
    expect(forecast.get_by_text("No archived event has contry")).to_be_visible()


@FEW
def test_those_that_an_operator_broke_are_listed(open_page, running):
    from playwright.sync_api import expect

    ids = ["adults", "children", "ended"]  # the last one is not there any more
    message = "OSError: <b>no</b>\u202e"
    fault = {"call": "find('x')", "kind": "raised", "message": message, "n_events": 2}

    def add_fault(route) -> None:
        answer = route.fetch()
        found = answer.json()
        found["operators"]["faults"] = [{**fault, "subscription_ids": ids}]
        route.fulfill(response=answer, json=found)

    page = open_page(running.url, "about:blank")
    page.route("**/v1/stats", add_fault)
    page.goto("/#/health")
    expect(page.get_by_text("find('x') failed for 2 events")).to_be_visible()
    expect(page.get_by_text("OSError: <b>no</b>U+202E.")).to_be_visible()
    link(card(page, "Operators and audit"), "List them.").click()
    expect(page.get_by_text("2 subscriptions", exact=True)).to_be_visible()
    expect(page.get_by_label("State")).to_have_value("broken")
    page.get_by_label("Search in ids and expressions").fill("Os%")
    expect(page.get_by_text("1 subscription", exact=True)).to_be_visible()
    expect(link(page, "children")).to_be_visible()
    expect(page.locator(".rows-all").get_by_text("Broken", exact=True)).to_be_visible()
    page.unroute_all(behavior="wait")


@FEW
def test_an_expired_one_is_made_again(open_page, running):
    from playwright.sync_api import expect

    page = open_page(running.url, "/#/subscriptions?state=expired")
    link(page, "last-week").click()
    expect(page.get_by_role("heading", name="It has expired")).to_be_visible()
    link(page, "Make it again").click()
    expect(expression_of(page)).to_have_text("age = 9")
    subscribe = card(page, "Subscribe")
    expect(subscribe.get_by_label("Id", exact=True)).to_have_value("last-week")
    expect(subscribe.get_by_label("Tags")).to_have_value("x, y")
    button(subscribe, "Subscribe").click()
    button(page, "I have it").click()
    expect(page.get_by_text("Live", exact=True).last).to_be_visible()
    assert running.context.match_server.live.get("last-week").tags == ("x", "y")


@FEW
def test_a_match_between_the_list_and_the_stream_is_shown(open_page, running):
    from playwright.sync_api import expect

    page = open_page(running.url, "about:blank")

    def publish_first(route) -> None:
        with running.client() as client:
            client.post("/v1/events", json={"age": 61, "note": "between"})
        route.continue_()

    page.route("**/stream*", publish_first, times=1)
    page.goto("/#/deliveries/mailbox?subscription=everything")
    expect(page.get_by_text('{"age":61,"note":"between"}')).to_be_visible()


@FEW
def test_a_server_that_cannot_answer_yet_is_asked_again(open_page, running):
    from playwright.sync_api import expect

    page = open_page(running.url, "about:blank")
    problem = {"status": 503, "code": "not-ready", "detail": "the kernels are being compiled"}
    page.route("**/readyz", lambda route: route.fulfill(status=503, json=problem))
    page.goto("/#/deliveries/mailbox?subscription=everything")
    expect(page.get_by_text("The kernels are being compiled.")).to_be_visible()
    page.unroute("**/readyz")
    expect(page.get_by_text("New matches appear here")).to_be_visible()


def height(page) -> int:
    """The height of all rows that are loaded."""
    return page.locator(".rows-all").evaluate("own => own.offsetHeight")


@MANY
def test_the_list_is_searched_and_scrolled(open_page, running):
    from playwright.sync_api import expect

    page = open_page(running.url, "/#/subscriptions")
    expect(link(page, "adults")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("matches in 7 days")).first).to_be_visible()
    rows = page.get_by_role("rowgroup", name="Subscriptions: rows")
    seen = 0
    for _ in range(3):  # pages come by cursor
        rows.evaluate("own => own.scrollTo(0, own.scrollHeight)")
        wait_until(lambda least=seen: height(page) > least, "there are more rows")
        seen = height(page)
    assert page.locator(".rows-all .row").count() < 60  # only those in view are there

    page.get_by_label("Search in ids and expressions").fill("critical")
    expect(link(page, "alerts/critical")).to_be_visible()
    expect(page.get_by_text("1 subscription", exact=True)).to_be_visible()
    page.get_by_label("Search in ids and expressions").fill("")
    page.get_by_label("State").select_option("expiring")
    expect(page.get_by_text("1 subscription", exact=True)).to_be_visible()
    expect(link(page, "children")).to_be_visible()
    expect(page.locator(".rows-all").get_by_text("Expiring", exact=True)).to_be_visible()
    # A new one with a short lease is not.
    with running.client() as client:
        assert client.post(
            "/v1/subscriptions", json={"id": "for-a-day", "expression": "age = 1000"}
        ).is_success
    page.get_by_label("State").select_option("valid")
    page.get_by_label("Search in ids and expressions").fill("for-a-day")
    expect(page.locator(".rows-all").get_by_text("Live", exact=True)).to_be_visible()
    page.get_by_label("Search in ids and expressions").fill("")
    page.get_by_label("State").select_option("noisy")
    expect(page.locator(".rows-all .row").first.get_by_text("everything")).to_be_visible()
    page.get_by_label("State").select_option("silent")
    expect(link(page, "alerts/critical")).to_be_visible()
    expect(link(page, "everything")).to_be_hidden()
    page.get_by_label("Tag", exact=True).fill("no such tag")
    expect(page.get_by_text("No subscription is like that")).to_be_visible()
    assert "state=silent" in page.url


@MANY
def test_many_are_changed_at_once(open_page, running):
    from playwright.sync_api import expect

    live = running.context.match_server.live
    page = open_page(running.url, "/#/subscriptions?text=rule-00001")
    expect(page.get_by_text("10 subscriptions", exact=True)).to_be_visible()
    page.get_by_label("Choose all that are loaded").check()
    page.get_by_label("Tag to add").fill("chosen")
    button(page, "Add tag").click()
    wait_until(lambda: len(live.list(tag="chosen").subscriptions) == 10, "all are tagged")
    expect(page.get_by_text("10 subscriptions chosen")).to_be_hidden()
    page.get_by_label("Choose rule-000010").check()
    page.get_by_label("Choose rule-000011").check()
    button(page, "Delete").click()
    button(page.get_by_role("dialog"), "Delete").click()
    expect(page.get_by_text("8 subscriptions", exact=True)).to_be_visible()
    assert live.get("rule-000010") is None


def start_drag(page, place, file):
    """Drag a file from outside the browser over a place; the result does what comes next."""
    box = place.bounding_box()
    at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
    session = page.context.new_cdp_session(page)

    def send(kind: str) -> None:
        session.send("Input.dispatchDragEvent", {"type": kind, **at, "data": data})

    for kind in ("dragEnter", "dragOver"):
        send(kind)
    return send


@BOTH
def test_a_file_with_bad_rows_is_dropped_and_imported(open_page, running, tmp_path):
    from playwright.sync_api import expect

    page = open_page(running.url, "/#/import")
    file = tmp_path / "rules.csv"
    file.write_text(
        "id,expression\ngood-1,age = 1\nbad,age = = 1\ngood-2,agee = 2\nadults,age = 3\n"
    )
    place = page.locator(".drop")
    drag = start_drag(page, place, file)
    expect(place).to_have_class(re.compile("over"))  # it shows that the file can be dropped here
    drag("drop")
    expect(place).not_to_have_class(re.compile("over"))
    row = page.get_by_role("row").filter(has=page.get_by_role("cell", name="bad", exact=True))
    expect(row.get_by_text("expected a condition or a value, found '='")).to_be_visible()
    expect(row.get_by_role("cell", name="3", exact=True)).to_be_visible()  # its line
    assert running.context.match_server.live.get("good-1") is None  # only looked at
    button(page, "Import 2 rows, without those with errors").click()
    expect(page.get_by_text("Done.")).to_be_visible()
    expect(page.get_by_text("An attribute looks misspelt: agee like age")).to_be_visible()
    assert running.context.match_server.live.get("good-2").expression == "agee = 2"
    page.get_by_label("are replaced").check()
    expect(button(page, "Import 3 rows, without those with errors")).to_be_visible()


@MANY
def test_a_dead_letter_is_sent_again(open_page, running):
    from playwright.sync_api import expect

    with run_receiver() as receiver, running.client() as client:
        receiver.answer = 500
        page = open_page(running.url, "/#/deliveries/webhooks")
        form = card(page, "New webhook")
        form.get_by_label("Subscription").fill("everything")
        form.get_by_label("Address").fill(receiver.url)
        button(form, "Register").click()
        expect(page.get_by_text(re.compile("^whsec_"))).to_be_visible()
        button(page, "I have it").click()
        client.post("/v1/events", json={"age": 77})
        letters = card(page, "Dead letters")
        expect(letters.get_by_text("dead", exact=True)).to_be_visible()
        receiver.answer = 204
        letters.get_by_role("button", name=re.compile("Send event .* again")).click()
        expect(letters.get_by_text("None.", exact=False)).to_be_visible()
        expect(card(page, "Recent attempts").get_by_text("204")).to_be_visible()
        assert len(receiver.received) == 2
        button(page, "Delete").click()
        button(page.get_by_role("dialog"), "Delete").click()
        expect(page.get_by_text("There are no webhooks")).to_be_visible()


@MANY
def test_events_are_watched_as_they_pass(open_page, running):
    from playwright.sync_api import expect

    with running.client() as client:
        page = open_page(running.url, "/#/live")
        page.get_by_label("Only events that satisfy this expression").fill("age = 101")
        wait_until(lambda: "expression" in page.evaluate("location.hash"), "the filter is used")
        wait_until(lambda: running.context.metrics.n_streams["events"] == 1, "one stream is open")
        events = page.get_by_role("list", name="Events, the newest first")

        def is_shown() -> bool:
            client.post("/v1/events", json=[{"age": 100}, {"age": 101}])
            return events.get_by_text('{"age":101}').count() > 0

        wait_until(is_shown, "an event passes")
        assert events.get_by_text('{"age":100}').count() == 0
        events.get_by_role("link", name=re.compile("Open event")).first.click()
        expect(page.get_by_label("The event, as JSON")).to_have_value('{"age":101}')


@MANY
def test_the_tap_is_paused_and_sampled(open_page, running):
    from playwright.sync_api import expect

    with running.client() as client:
        page = open_page(running.url, "/#/live?expression=age > 200")
        expect(page.get_by_text("Open", exact=True)).to_be_visible()
        events = page.get_by_role("list", name="Events, the newest first")
        client.post("/v1/events", json={"age": 201})
        expect(events.get_by_text('{"age":201}')).to_be_visible()
        button(page, "Pause").click()
        expect(page.get_by_text("Paused", exact=True)).to_be_visible()
        client.post("/v1/events", json={"age": 202})
        wait_until(lambda: count(page, "Chosen") == 2, "it is counted")
        assert events.get_by_text('{"age":202}').count() == 0
        button(page, "Go on").click()
        client.post("/v1/events", json={"age": 203})
        expect(events.get_by_text('{"age":203}')).to_be_visible()
        assert events.get_by_text('{"age":202}').count() == 0  # it has passed
        button(page, "Clear").click()
        expect(page.get_by_text("Waiting for events")).to_be_visible()

        page.get_by_label("Sample").select_option("1 of 10")
        wait_until(lambda: "share=0.1" in page.evaluate("location.hash"), "the sample is used")

        def is_counted() -> bool:
            client.post("/v1/events", json=[{"age": 300}] * 500)
            return count(page, "Events passed") >= 500

        wait_until(is_counted, "events pass")
        wait_until(lambda: count(page, "Chosen") > 0, "some are chosen")
        assert count(page, "Chosen") < count(page, "Events passed") / 2
        expect(events.get_by_text('{"age":300}').first).to_be_visible()


def count(page, name: str) -> int:
    """A number of the screen."""
    shown = page.locator("dl > div").filter(has=page.get_by_text(name, exact=True)).locator("dd")
    return int(shown.inner_text().replace(",", ""))


# ── by keyboard ─────────────────────────────────────────────────────────────────────────────


@BOTH
def test_a_subscription_by_keyboard(open_page, running):
    from playwright.sync_api import expect

    live = running.context.match_server.live
    page = open_page(running.url, "/#/subscriptions")
    keys = Keyboard(page)
    keys.use(link(page, "New subscription"))
    keys.reach(expression_of(page))
    page.keyboard.type("age > 64 AND city = 'Bergen'")
    page.keyboard.press("Escape")  # no completion
    expect(page.get_by_text("Valid", exact=True)).to_be_visible()
    keys.use(button(card(page, "Forecast"), "Forecast"))
    expect(page.get_by_text("Of events")).to_be_visible()
    keys.write(card(page, "Subscribe").get_by_label("Id", exact=True), "by-keyboard")
    page.keyboard.press("Enter")
    keys.use(button(page.get_by_role("dialog"), "I have it"))
    expect(page.get_by_role("heading", name="by-keyboard", level=1)).to_be_visible()

    # Why does it not match? And an event that does.
    keys.use(link(page, "Why does it not match?"))
    expect(page.get_by_text("Smallest change")).to_be_visible()  # of the newest event
    keys.write(page.get_by_label("The event, as JSON"), '{"age": 65, "city": "Bergen"}')
    keys.use(page.get_by_role("button", name="Explain by-keyboard"))
    expect(page.locator(".verdict .truth.true")).to_be_visible()
    keys.use(button(page, "Publish this event"))
    expect(page.locator(".toasts").get_by_text("is published")).to_be_visible()

    # Change, renew, delete.
    keys.use(link(page, "Open"))
    keys.write(expression_of(page), "age > 60 AND city = 'Bergen'")
    page.keyboard.press("Escape")
    keys.use(button(page, "Compare"))
    expect(page.get_by_text("No longer matching: 0")).to_be_visible()
    keys.use(button(page, "Save the change"))
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()
    assert live.get("by-keyboard").expression == "age > 60 AND city = 'Bergen'"
    before = live.get("by-keyboard").valid_until
    keys.reach(page.get_by_label("Renew for"))
    page.keyboard.type("30")  # as a person chooses "30 days"
    expect(page.get_by_label("Renew for")).to_have_value("2592000")
    keys.use(button(page, "Renew"))
    wait_until(lambda: live.get("by-keyboard").valid_until > before, "it is renewed")
    keys.use(button(page, "Delete"))
    keys.use(button(page.get_by_role("dialog"), "Delete"))
    expect(page.get_by_role("heading", name="Subscriptions", level=1)).to_be_visible()
    assert live.get("by-keyboard") is None


@BOTH
def test_a_webhook_by_keyboard(open_page, running):
    from playwright.sync_api import expect

    with run_receiver() as receiver, running.client() as client:
        receiver.answer = 500
        page = open_page(running.url, "/#/subscriptions")
        keys = Keyboard(page)
        keys.use(link(page, "Deliveries"))
        keys.use(link(page, "Webhooks"))
        form = card(page, "New webhook")
        keys.write(form.get_by_label("Subscription"), "every")
        expect(form.locator("datalist option[value=everything]")).to_be_attached()
        keys.write(form.get_by_label("Subscription"), "everything")
        keys.write(form.get_by_label("Address"), receiver.url)
        page.keyboard.press("Enter")
        keys.use(button(page.get_by_role("dialog"), "I have it"))
        client.post("/v1/events", json={"age": 78})
        letters = card(page, "Dead letters")
        expect(letters.get_by_text("dead", exact=True)).to_be_visible()
        receiver.answer = 204
        keys.use(letters.get_by_role("button", name=re.compile("Send event .* again")))
        expect(letters.get_by_text("None.", exact=False)).to_be_visible()
        assert len(receiver.received) == 2
        keys.use(button(page, "Delete"))
        keys.use(button(page.get_by_role("dialog"), "Delete"))
        expect(page.get_by_text("There are no webhooks")).to_be_visible()


@MANY
def test_a_file_is_imported_by_keyboard(open_page, running, tmp_path):
    from playwright.sync_api import expect

    file = tmp_path / "keys.jsonl"
    file.write_text(
        '{"id": "key-1", "expression": "age = 1"}\n{"id": "key-2", "expression": "= 1"}\n'
    )
    page = open_page(running.url, "/#/subscriptions")
    keys = Keyboard(page)
    keys.use(link(page, "Import a file"))
    with page.expect_file_chooser() as chooser:
        keys.use(button(page, "choose one"))
    chooser.value.set_files(file)
    keys.use(button(page, "Import 1 row, without those with errors"))
    expect(page.get_by_text("Done.")).to_be_visible()
    assert running.context.match_server.live.get("key-1") is not None
