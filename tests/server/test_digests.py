"""Digests, from a published event to a mail server on a real socket."""

from __future__ import annotations

import re
import socket
from email import message_from_bytes, policy
from urllib.parse import urlsplit

import pytest
from aiosmtpd.controller import Controller
from sqlalchemy import update
from starlette.testclient import TestClient

from tamis.broker import digest_worker
from tamis.broker.match_server import MatchServer
from tamis.broker.tables import DIGESTS
from tamis.server import Settings, create_app
from tamis.server.settings import DeliverySettings, ServerSettings
from tests.server.asking import make_key, needs_keys, publish, subscribe
from tests.server.conftest import OWN_URL
from tests.waiting import wait_until

EVIL = "<script>alert(1)</script>\r\nBcc: victim@example.com"


class MailServer:
    """A mail server that keeps what it accepts."""

    def __init__(self) -> None:
        self.answer = "250 OK"
        self.n_tried = 0
        self.accepted: list[bytes] = []

    async def handle_DATA(self, _server, _session, envelope) -> str:  # noqa: N802
        self.n_tried += 1
        if self.answer.startswith("250"):
            self.accepted.append(envelope.content)
        return self.answer

    def mails(self) -> list:
        return [message_from_bytes(own, policy=policy.default) for own in self.accepted]


@pytest.fixture
def mail_server():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    handler = MailServer()
    controller = Controller(handler, hostname="127.0.0.1", port=port)
    controller.start()
    handler.port = port
    yield handler
    controller.stop()


@pytest.fixture
def settings(tmp_path, mail_server) -> Settings:
    return Settings(
        server=ServerSettings(folder=tmp_path / "server", public_url="https://tamis.example/x/"),
        delivery=DeliverySettings(
            smtp_host="127.0.0.1",
            smtp_port=mail_server.port,
            smtp_sender="tamis@tamis.example",
            smtp_starttls=False,
            trusted_domains=("example.com",),
        ),
    )


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch):
    monkeypatch.setattr(digest_worker, "POLL_SECONDS", 0.02)


def make(client, *, headers=None, **asked) -> dict:
    asked = {"subscription": "a", "address": "ann@example.com"} | asked
    answer = client.post("/v1/digests", json=asked, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()


def let_be_due(match_server) -> None:
    statement = update(DIGESTS).values(next_due=0)
    match_server.live.store.run(lambda connection: connection.execute(statement))


def send_due(client, match_server, made: dict) -> dict:
    """Let a digest be due; returns how it stands when it was handled."""
    let_be_due(match_server)
    path = f"/v1/digests/{made['number']}"
    wait_until(lambda: client.get(path).json()["next_due"] > "1971", "the digest was handled")
    return client.get(path).json()


def test_a_burst_is_one_message(client, match_server, mail_server):
    subscribe(client, id="a", expression="x = 1")
    publish(client, {"x": 1, "title": "before"})
    made = make(client)
    publish(
        client, *({"x": 1, "title": f"T{n}", "url": f"http://e.example/{n}"} for n in range(30))
    )
    after = send_due(client, match_server, made)
    assert after["last_sent"] is not None
    (mail,) = mail_server.mails()
    assert (mail["to"], mail["from"]) == ("ann@example.com", "tamis@tamis.example")
    assert mail["subject"] == "30 matches: a"
    for kind in ("plain", "html"):
        text = mail.get_body((kind,)).get_content()
        assert "30" in text
        assert "T0" in text
        assert "T19" in text
        assert "http://e.example/20" not in text
        assert "10 more" in text
        assert "before" not in text
        assert "http://e.example/3" in text


def test_nothing_is_sent_without_matches_and_nothing_twice(client, match_server, mail_server):
    subscribe(client, id="a", expression="x = 1")
    made = make(client)
    publish(client, {"x": 2})
    assert send_due(client, match_server, made)["last_sent"] is None
    publish(client, {"x": 1, "title": "first"})
    send_due(client, match_server, made)
    send_due(client, match_server, made)
    publish(client, {"x": 1, "title": "second"})
    send_due(client, match_server, made)
    texts = [own.get_body(("plain",)).get_content() for own in mail_server.mails()]
    assert [("first" in text, "second" in text) for text in texts] == [(True, False), (False, True)]
    identities = [own["message-id"] for own in mail_server.mails()]
    assert len(set(identities)) == 2


def test_a_mail_server_that_refuses_gets_it_again(client, match_server, mail_server):
    subscribe(client, id="a", expression="x = 1")
    made = make(client)
    publish(client, {"x": 1})
    mail_server.answer = "451 try later"
    failed = send_due(client, match_server, made)
    assert (failed["failed_attempts"], failed["last_sent"]) == (1, None)
    assert "451" in failed["last_error"]
    publish(client, {"x": 1})
    mail_server.answer = "250 OK"
    after = send_due(client, match_server, made)
    assert (after["failed_attempts"], after["last_error"]) == (0, None)
    (mail,) = mail_server.mails()
    assert mail["subject"] == "2 matches: a"


def test_contents_are_escaped(client, match_server, mail_server):
    name = "a<b>\n&"
    subscribe(client, id=name, expression="x = 1")
    made = make(client, subscription=name)
    publish(client, {"x": 1, "title": EVIL, "url": "javascript:alert(1)"})
    send_due(client, match_server, made)
    (mail,) = mail_server.mails()
    assert mail["bcc"] is None
    assert mail["subject"] == "1 match: a<b> &"
    html = mail.get_body(("html",)).get_content()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "javascript:" not in html
    assert "a&lt;b&gt;" in html


def test_the_receiver_ends_it_with_one_click(client, match_server, mail_server):
    subscribe(client, id="a", expression="x = 1")
    made, other = make(client), make(client, address="bob@example.com")
    publish(client, {"x": 1})
    send_due(client, match_server, made)
    wait_until(lambda: len(mail_server.accepted) == 2, "both are sent")
    (mail,) = (own for own in mail_server.mails() if own["to"] == "ann@example.com")
    assert mail["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
    address = re.fullmatch(r"<(.+)>", mail["list-unsubscribe"])[1]
    assert address.startswith("https://tamis.example/x/digests/unsub_")
    path = urlsplit(address).path.removeprefix("/x")
    page = client.get(path)
    assert "<form" in page.text
    assert page.headers["referrer-policy"] == "same-origin"  # others make `Origin: null` of it
    assert client.get(f"/v1/digests/{made['number']}").status_code == 200  # looking ends nothing
    wrong = path[:-1] + ("0" if path[-1] != "0" else "1")
    swapped = path.replace(f"_{made['number']}_", f"_{other['number']}_")
    for bad in (wrong, swapped, "/digests/unsub_1_", "/digests/x"):
        assert client.post(bad).status_code == 404
    assert client.post(path, data={"List-Unsubscribe": "One-Click"}).status_code == 200
    assert client.get(f"/v1/digests/{made['number']}").status_code == 404
    assert client.get(f"/v1/digests/{other['number']}").status_code == 200
    assert client.post(path).status_code == 404


def test_gaps_and_restored_histories_are_told(client, match_server, mail_server, monkeypatch):
    subscribe(client, id="a", expression="x = 1")
    made = make(client)
    publish(client, {"x": 1}, {"x": 1}, {"x": 1})
    whole = match_server.archive.read_matches

    def read_later(numbers, *, after, limit, up_to=None):
        page = whole(numbers, after=max(after, 2), limit=limit, up_to=up_to)
        return page._replace(missed=range(after + 1, 3) or None)

    with monkeypatch.context() as patched:
        patched.setattr(match_server.archive, "read_matches", read_later)
        send_due(client, match_server, made)
    match_server.archive.renew_epoch()
    publish(client, {"x": 1, "title": "later"})
    send_due(client, match_server, made)
    gap, restored = (own.get_body(("plain",)).get_content() for own in mail_server.mails())
    assert "events 1 to 2 were removed" in gap
    assert "restored from a backup" in restored
    assert "later" in restored
    assert mail_server.mails()[1]["subject"] == "1 match: a"


def test_a_channel_has_digests(client, match_server, mail_server):
    subscribe(client, id="a", expression="x >= 1")
    subscribe(client, id="b", expression="x >= 2")
    client.post("/v1/channels", json={"name": "c", "subscriptions": ["a", "b"]})
    made = make(client, subscription=None, channel="c", period="hourly")
    publish(client, {"x": 1}, {"x": 2})
    send_due(client, match_server, made)
    (mail,) = mail_server.mails()
    assert mail["subject"] == "3 matches: a and 1 more"
    assert "2  a" in mail.get_body(("plain",)).get_content()


def test_only_its_owner_handles_a_digest(client, match_server):
    ann = make_key(match_server, "ann", "subscribe", "read")
    bob = make_key(match_server, "bob", "subscribe", "read")
    needs_keys(client)
    subscribe(client, headers=ann, id="a", expression="x = 1")
    asked = {"subscription": "a", "address": "ann@example.com"}
    assert client.post("/v1/digests", json=asked, headers=bob).status_code == 404
    made = make(client, headers=ann)
    path = f"/v1/digests/{made['number']}"
    for stranger in (bob, {}):
        assert client.get(path, headers=stranger).status_code == 404
        assert client.delete(path, headers=stranger).status_code == 404
    assert client.get("/v1/digests", headers=bob).json()["digests"] == []
    assert len(client.get("/v1/digests", headers=ann).json()["digests"]) == 1
    for wrong in (
        {"address": "ann"},
        {"address": "a@b\r\nBcc: c@d"},
        {"zone": "Mars"},
        {"hour": 24},
    ):
        answer = client.post("/v1/digests", json=asked | wrong, headers=ann)
        assert answer.status_code == 422, wrong
    assert client.delete(path, headers=ann).status_code == 204


def test_a_server_without_a_mail_server_says_so(tmp_path):
    settings = Settings(server=ServerSettings(folder=tmp_path / "other"))
    with (
        MatchServer.open(settings.server.folder) as server,
        TestClient(create_app(server, settings, is_open=True), base_url=OWN_URL) as client,
    ):
        subscribe(client, id="a", expression="x = 1")
        asked = {"subscription": "a", "address": "ann@example.com"}
        answer = client.post("/v1/digests", json=asked)
        assert (answer.status_code, answer.json()["code"]) == (409, "no-mail-server")
