"""Secrets: never shown, never stored, compared in constant time."""

from __future__ import annotations

import base64
import hmac
import os
import stat
from threading import Thread

import pytest

from tamis.broker import secrets
from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import INDEX, MatchServer
from tamis.broker.rights import LOCAL
from tamis.broker.secrets import FILE, Purpose, Secret, ServerSecret
from tamis.broker.tickets import Tickets
from tamis.errors import InputError, StoreError
from tamis.live import LiveIndex
from tamis.subscriptions import Subscribe
from tests.broker.places import SECRET
from tests.waiting import HANG_SECONDS


def test_the_secret_of_a_server_is_made_once(tmp_path):
    folder = tmp_path / "server"
    first = ServerSecret.load(folder)
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert len((folder / FILE).read_bytes()) == 32
    again = ServerSecret.load(folder)
    assert first.hash(Purpose.TICKET, "x") == again.hash(Purpose.TICKET, "x")
    other = ServerSecret.load(tmp_path / "other")
    assert first.hash(Purpose.TICKET, "x") != other.hash(Purpose.TICKET, "x")
    assert os.listdir(folder) == [FILE]


def test_of_many_that_start_at_once_all_get_the_same_secret(tmp_path):
    hashes = []

    def load() -> None:
        hashes.append(ServerSecret.load(tmp_path).hash(Purpose.TICKET, "x"))

    threads = [Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    assert len(hashes) == 8
    assert len(set(hashes)) == 1


def test_a_secret_that_others_can_read_is_refused(tmp_path):
    ServerSecret.load(tmp_path)
    os.chmod(tmp_path / FILE, 0o640)
    with pytest.raises(StoreError, match=r"other users have access .* 0640") as raised:
        ServerSecret.load(tmp_path)
    assert "chmod 600" in raised.value.hint


def test_a_damaged_secret_is_refused(tmp_path):
    (tmp_path / FILE).touch(0o600)
    with pytest.raises(StoreError, match="has 0 bytes; 32 are expected"):
        ServerSecret.load(tmp_path)


@pytest.mark.parametrize("what", ["ticket", "key", "feed"])
def test_a_missing_secret_is_not_replaced(tmp_path, what):
    with MatchServer.open(tmp_path) as server:
        ticket = server.broker.tickets.make().hash if what == "ticket" else None
        server.live.apply([Subscribe("a", "x = 1", ticket_hash=ticket)])
        if what == "key":
            server.broker.keys.create(LOCAL, "ann", ["read"])
        if what == "feed":
            server.broker.feeds.create(LOCAL, Mailbox.of_subscription(1), "News")
    secret = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).unlink()
    with pytest.raises(StoreError, match="secret is missing") as raised:
        MatchServer.open(tmp_path)
    assert "restore it from a backup" in raised.value.hint
    assert not (tmp_path / FILE).exists()
    (tmp_path / FILE).write_bytes(secret)
    (tmp_path / FILE).chmod(0o600)
    MatchServer.open(tmp_path).close()


def test_a_set_without_tickets_needs_no_earlier_secret(tmp_path):
    with LiveIndex.open(tmp_path / INDEX) as live:
        live.add("a", "x = 1")
    MatchServer.open(tmp_path).close()
    (tmp_path / FILE).unlink()
    MatchServer.open(tmp_path).close()


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be used"):
        ServerSecret.load(tmp_path / "file")


@pytest.mark.parametrize("value", [b"", b"short", "x" * 32, None])
def test_given_secrets_are_checked(value):
    with pytest.raises(InputError, match="32 bytes"):
        ServerSecret(value)


def test_hashes_are_keyed_and_separate():
    ours = SECRET.hash(Purpose.TICKET, "tkt_x")
    assert ours == hmac.digest(bytes(range(32)), b"ticket\0tkt_x", "sha256")
    assert ours != SECRET.hash(Purpose.FEED, "tkt_x")
    assert ours != ServerSecret(bytes(32)).hash(Purpose.TICKET, "tkt_x")
    assert SECRET.verify(Purpose.TICKET, "tkt_x", ours)
    assert not SECRET.verify(Purpose.TICKET, "tkt_y", ours)
    assert not SECRET.verify(Purpose.TICKET, "tkt_x", None)
    assert not SECRET.verify(Purpose.TICKET, "\ud800", ours)


@pytest.mark.parametrize(
    ("make", "prefix", "n_bytes"),
    [
        (secrets.new_ticket, "tkt_", 32),
        (secrets.new_feed_token, "feed_", 32),
        (lambda: secrets.new_api_key()[1], "tamis_", 32),
        (secrets.new_signing_secret, "whsec_", 32),
    ],
)
def test_what_is_handed_out(make, prefix, n_bytes):
    made = {make().reveal() for _ in range(50)}
    assert len(made) == 50
    for text in made:
        assert text.startswith(prefix)
        random = text[19:] if prefix == "tamis_" else text.removeprefix(prefix)
        padded = random.replace("-", "+").replace("_", "/") + "=" * (-len(random) % 4)
        assert len(base64.b64decode(padded, validate=True)) == n_bytes
        secret = Secret(text)
        for shown in (repr(secret), str(secret), f"{secret}", repr([secret]), f"{[secret]}"):
            assert random not in shown
            assert prefix in shown
        line = f'GET /feeds/{text}?key="{text}",'
        assert random not in secrets.redact(line)
        assert secrets.redact(line).endswith('",')


def test_secrets_of_other_shapes_are_not_shown():
    assert "hunter2" not in repr(Secret("hunter2"))
    assert Secret("a") == Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert "0" not in repr(SECRET)


def test_ids_of_keys():
    key_id, text = secrets.new_api_key()
    assert secrets.find_key_id(text.reveal()) == key_id
    shown = text.reveal()
    for wrong in ("", shown[:-1], shown + "x", shown.upper(), "tamis__", shown + "\n", f" {shown}"):
        assert secrets.find_key_id(wrong) is None


@pytest.mark.parametrize("n_bytes", [24, 32, 64])
def test_signing_secrets_of_others(n_bytes):
    text = "whsec_" + base64.b64encode(bytes(n_bytes)).decode()
    assert secrets.check_signing_secret(text).reveal() == text


@pytest.mark.parametrize(
    "text",
    ["", "whsec_", "whsec_!!!!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 5]
    + ["whsec_" + base64.b64encode(bytes(n)).decode() for n in (23, 65)],
)
def test_wrong_signing_secrets(text):
    with pytest.raises(InputError, match="24 to 64 bytes") as raised:
        secrets.check_signing_secret(text)
    assert "MfKQ" not in str(raised.value)


def test_tickets():
    tickets = Tickets(SECRET)
    ticket = tickets.make()
    assert tickets.verify(ticket.secret.reveal(), ticket.hash)
    assert len(ticket.hash) == 32
    assert ticket.secret.reveal() not in repr(ticket)
    for wrong in ("", tickets.make().secret.reveal(), ticket.secret.reveal() + "x", None, 5):
        assert not tickets.verify(wrong, ticket.hash)
    assert not tickets.verify(ticket.secret.reveal(), None)
    assert not Tickets(ServerSecret(bytes(32))).verify(ticket.secret.reveal(), ticket.hash)


def test_a_wrong_ticket_is_compared_as_a_right_one(monkeypatch):
    compared = []

    def compare(one, other) -> bool:
        compared.append((len(one), len(other)))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    ticket = Tickets(SECRET).make()
    for shown, known in (("", ticket.hash), (ticket.secret.reveal(), None), ("x" * 999, None)):
        assert not Tickets(SECRET).verify(shown, known)
    assert compared == [(32, 32)] * 3
