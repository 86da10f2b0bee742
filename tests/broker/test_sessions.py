"""Sessions: signed texts that stand for a key for some hours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tamis.broker.keys import Keys
from tamis.broker.match_server import MatchServer
from tamis.broker.rights import LOCAL
from tamis.broker.secrets import ServerSecret, redact
from tamis.broker.sessions import SESSION_SECONDS, Sessions
from tamis.broker.store import Broker


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.moment = datetime(2030, 1, 1, 10, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def broker(tmp_path, clock):
    with MatchServer.open(tmp_path / "server", clock=clock) as server:
        yield server.broker


def test_a_session_is_that_of_its_key(broker: Broker):
    key = broker.keys.create(LOCAL, "ann", ["read"]).key
    begun = broker.sessions.begin(key)
    found = broker.sessions.find(begun.text.reveal())
    assert found is not None
    assert found.key == key
    assert found.expires == begun.expires
    assert key.id in begun.text.reveal()


def test_a_session_ends_after_some_hours(broker: Broker, clock: Clock):
    begun = broker.sessions.begin(broker.keys.create(LOCAL, "ann", ["read"]).key)
    clock.moment += timedelta(seconds=SESSION_SECONDS - 2)
    assert broker.sessions.find(begun.text.reveal()) is not None
    clock.moment += timedelta(seconds=3)
    assert broker.sessions.find(begun.text.reveal()) is None


def test_a_session_ends_with_its_key(broker: Broker, clock: Clock):
    until = clock.moment + timedelta(hours=1)
    short = broker.sessions.begin(broker.keys.create(LOCAL, "ann", ["read"], expires=until).key)
    assert short.expires == until
    revoked = broker.sessions.begin(broker.keys.create(LOCAL, "bob", ["read"]).key)
    broker.keys.revoke(LOCAL, revoked.key.id)
    assert broker.sessions.find(revoked.text.reveal()) is None
    assert broker.sessions.find(short.text.reveal()) is not None


def test_a_changed_text_is_no_session(broker: Broker):
    ann, bob = (broker.keys.create(LOCAL, name, ["read"]).key for name in ("ann", "bob"))
    text = broker.sessions.begin(ann).text.reveal()
    other = text.replace(ann.id, bob.id)
    head, signature = text[:-44], text[-43:]  # a signature may contain underscores
    later = f"{head[:-1]}{(int(head[-1]) + 1) % 10}_{signature}"
    for wrong in (other, later, text[:-1], text + "A", f"{head}_{'A' * 43}", "", "session_"):
        assert broker.sessions.find(wrong) is None
    assert broker.sessions.find(text) is not None


def test_another_server_does_not_accept_it(broker: Broker):
    key = broker.keys.create(LOCAL, "ann", ["read"]).key
    other_secret = ServerSecret(b"x" * 32)
    other = Sessions(Keys(broker.store, other_secret), other_secret, broker.store.now)
    assert other.find(broker.sessions.begin(key).text.reveal()) is None
    assert other.cookie != broker.sessions.cookie


def test_a_token_is_that_of_its_session(broker: Broker):
    ann, bob = (
        broker.sessions.begin(broker.keys.create(LOCAL, name, ["read"]).key)
        for name in ("ann", "bob")
    )
    token = broker.sessions.make_token(ann)
    assert broker.sessions.is_token(ann, token)
    assert not broker.sessions.is_token(bob, token)
    assert not broker.sessions.is_token(ann, "")
    assert not broker.sessions.is_token(ann, "ä")


def test_a_session_is_not_logged(broker: Broker):
    text = broker.sessions.begin(broker.keys.create(LOCAL, "ann", ["read"]).key).text
    assert text.reveal().rpartition("_")[2] not in f"{redact(text.reveal())} {text!r}"
