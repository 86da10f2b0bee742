"""Addresses confirm digests before they get any."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from tamis.broker import confirmations, digest_worker
from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.server import create_app
from tests.server.asking import make_key, needs_keys, publish, subscribe
from tests.server.conftest import OWN_URL
from tests.server.test_digests import let_be_due, mail_server, make
from tests.server.test_digests import settings as trusting
from tests.subscriptions.places import Clock
from tests.waiting import wait_until

__all__ = ["mail_server", "trusting"]


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch):
    monkeypatch.setattr(digest_worker, "POLL_SECONDS", 0.02)


@pytest.fixture
def settings(trusting):
    delivery = replace(trusting.delivery, trusted_domains=("trusted.example",))
    return replace(trusting, delivery=delivery)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def match_server(settings, database, clock):
    own = MatchServerSettings(store=database)
    with MatchServer.open(settings.server.folder, own, clock=clock) as opened:
        yield opened


def find_link(mail) -> str:
    """The path of the link in a question."""
    (found,) = re.findall(r"https://\S+", mail.get_content())
    assert found.startswith("https://tamis.example/x/digests/confirm/confirm_")
    return urlsplit(found).path.removeprefix("/x")


def wait_for_mails(mail_server, n_mails: int) -> list:
    wait_until(lambda: len(mail_server.accepted) >= n_mails, "the messages are sent")
    assert len(mail_server.accepted) == n_mails
    return mail_server.mails()


def test_nothing_but_the_question_is_sent_until_it_is_confirmed(
    client, match_server, mail_server, clock
):
    subscribe(client, id="evil\nBcc: x", expression="x = 1", lease=1e7)
    made = make(client, subscription="evil\nBcc: x")
    assert made["confirmed"] is None
    (question,) = wait_for_mails(mail_server, 1)
    assert (question["to"], question["bcc"]) == ("ann@example.com", None)
    assert "evil" not in question.as_string()  # nothing of those who ask
    publish(client, {"x": 1, "title": "one"})
    clock.move(86_400)  # the digest would be due
    path = find_link(question)
    page = client.get(path)
    assert "<form" in page.text
    assert page.headers["referrer-policy"] == "same-origin"  # others make `Origin: null` of it
    own = f"/v1/digests/{made['number']}"
    assert client.get(own).json()["confirmed"] is None  # looking confirms nothing
    assert len(mail_server.accepted) == 1
    assert client.post(path).status_code == 200
    confirmed = client.get(own).json()["confirmed"]
    assert confirmed is not None
    assert client.post(path).status_code == 200  # again: it stays as it is
    assert client.get(own).json()["confirmed"] == confirmed
    let_be_due(match_server)
    _, digest = wait_for_mails(mail_server, 2)
    assert "one" in digest.get_body(("plain",)).get_content()


def test_a_link_is_for_one_digest_and_one_purpose(client, mail_server, match_server):
    subscribe(client, id="a", expression="x = 1")
    made, other = make(client), make(client, address="bob@example.com")
    mails = wait_for_mails(mail_server, 2)
    path = find_link(next(own for own in mails if own["to"] == "ann@example.com"))
    wrong = path[:-1] + ("0" if path[-1] != "0" else "1")
    swapped = path.replace(f"_{made['number']}_", f"_{other['number']}_")
    ending = path.replace("/confirm/confirm_", "/unsub_")
    for bad in (wrong, swapped, ending, "/digests/confirm/x", path.replace("/confirm/", "/")):
        assert client.post(bad).status_code == 404, bad
        assert client.get(bad).status_code == 404
    found = client.get("/v1/digests").json()["digests"]
    assert [own["confirmed"] for own in found] == [None, None]
    assert client.delete(f"/v1/digests/{made['number']}").status_code == 204
    assert client.post(path).status_code == 404


def test_an_unconfirmed_digest_ends_when_its_link_expires(client, mail_server, clock):
    subscribe(client, id="a", expression="x = 1", lease=1e7)
    made = make(client)
    path = find_link(wait_for_mails(mail_server, 1)[0])
    publish(client, {"x": 1})
    clock.move(confirmations.VALID_SECONDS)
    own = f"/v1/digests/{made['number']}"
    wait_until(lambda: client.get(own).status_code == 404, "it is deleted")
    assert client.post(path).status_code == 404
    assert len(mail_server.accepted) == 1


def test_a_question_that_was_not_sent_is_sent_again(client, mail_server, clock):
    subscribe(client, id="a", expression="x = 1")
    mail_server.answer = "451 try later"
    made = make(client)
    own = f"/v1/digests/{made['number']}"
    wait_until(lambda: client.get(own).json()["failed_attempts"], "it has failed")
    mail_server.answer = "250 OK"
    clock.move(timedelta(hours=1).total_seconds())
    wait_for_mails(mail_server, 1)
    wait_until(lambda: not client.get(own).json()["failed_attempts"], "that is recorded")


def test_trusted_domains_are_not_asked(client, mail_server, match_server):
    subscribe(client, id="a", expression="x = 1")
    assert make(client, address="ann@Trusted.example")["confirmed"] is not None
    assert make(client, address="ann@not-trusted.example")["confirmed"] is None
    assert make(client, address="ann@sub.trusted.example")["confirmed"] is None


def test_all_domains_can_be_trusted(match_server, settings):
    delivery = replace(settings.delivery, trusted_domains=("*",))
    app = create_app(match_server, replace(settings, delivery=delivery), is_open=True)
    with TestClient(app, base_url=OWN_URL) as client:
        subscribe(client, id="a", expression="x = 1")
        assert make(client, address="ann@anywhere.example")["confirmed"] is not None


def test_questions_are_limited_for_an_address_and_for_an_owner(
    client, match_server, monkeypatch, clock
):
    monkeypatch.setattr(confirmations, "MOST_PER_ADDRESS", 2)
    monkeypatch.setattr(confirmations, "MOST_PER_OWNER", 3)
    keys = {name: make_key(match_server, name, "subscribe", "read") for name in ("ann", "bob")}
    needs_keys(client)
    for name, headers in keys.items():
        subscribe(client, headers=headers, id=name, expression="x = 1", lease=1e7)

    def ask(name: str, address: str):
        asked = {"subscription": name, "address": address}
        return client.post("/v1/digests", json=asked, headers=keys[name])

    first = ask("ann", "victim@example.com").json()
    assert ask("bob", "Victim@example.com").status_code == 201
    # Deleting does not help.
    client.delete(f"/v1/digests/{first['number']}", headers=keys["ann"])
    refused = ask("ann", "victim@example.com")
    assert (refused.status_code, refused.json()["code"]) == (429, "too-often")
    assert 0 < int(refused.headers["retry-after"]) <= 86_400
    assert ask("ann", "a@example.com").status_code == 201
    assert ask("ann", "b@example.com").status_code == 201
    assert ask("ann", "c@example.com").status_code == 429
    assert ask("bob", "c@example.com").status_code == 201
    clock.move(86_400)
    assert ask("ann", "victim@example.com").status_code == 201
