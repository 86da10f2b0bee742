"""The pages behind the links of digests: their buttons work in a browser."""

from __future__ import annotations

import pytest

from tamis.broker.match_server import MatchServer
from tamis.broker.secrets import Purpose
from tamis.server import Settings
from tamis.server.settings import DeliverySettings, ServerSettings
from tests.console.places import button
from tests.server.asking import subscribe
from tests.server.running import run_server

pytestmark = pytest.mark.slow  # a browser takes minutes


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digests") / "server"
    # A mail server that does not answer: the test finds the links without it.
    delivery = DeliverySettings(smtp_host="127.0.0.1", smtp_port=1, smtp_sender="tamis@tamis.test")
    settings = Settings(server=ServerSettings(folder=folder), delivery=delivery)
    with MatchServer.open(folder) as server, run_server(server, settings) as running:
        yield running


def test_digests_are_confirmed_and_ended_by_a_button(open_page, running):
    from playwright.sync_api import expect

    digests = running.context.match_server.broker.digests
    mailer = running.context.deliveries.mailer
    with running.client() as client:
        subscribe(client, id="a", expression="x = 1")
        asked = {"subscription": "a", "address": "ann@example.com"}
        number = client.post("/v1/digests", json=asked).json()["number"]

    token = mailer._make_token(Purpose.CONFIRM, digests.get(number))
    page = open_page(running.url, f"/digests/confirm/{token}")
    button(page, "Send them").click()
    expect(page.get_by_text("The digests will be sent.")).to_be_visible()
    assert digests.get(number).confirmed is not None

    token = mailer._make_token(Purpose.UNSUBSCRIBE, digests.get(number))
    page = open_page(running.url, f"/digests/{token}")
    button(page, "End them").click()
    expect(page.get_by_text("No more digests will be sent.")).to_be_visible()
    assert digests.get(number) is None
