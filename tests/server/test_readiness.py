"""Readiness is true: it says what cannot be written, and recovers by itself."""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from tamis import durable
from tamis.archive import journal
from tamis.broker.readiness import PATIENCE, PROBE, Readiness
from tamis.errors import StoreError
from tamis.server import create_app
from tamis.server.settings import OperationSettings, Size
from tests.broker.places import Timer
from tests.server.conftest import OWN_URL
from tests.server.test_end_to_end import read, subscribe


@pytest.fixture
def timer(client, match_server) -> Timer:
    """The clock of the readiness, which otherwise answers for a second."""
    timer = Timer()
    client.app.state.context.readiness = Readiness(match_server, timer=timer)
    return timer


def reasons(client, timer) -> list[str]:
    timer.seconds += 1
    answer = client.get("/readyz")
    if answer.status_code == 200:
        return []
    assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
    assert answer.headers["retry-after"] == "1"
    assert client.get("/healthz").status_code == 200
    return answer.json()["reasons"]


def fail_with(code: int):
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_ready_server(client, match_server, timer):
    assert reasons(client, timer) == []
    for folder in (match_server.live.folder, match_server.archive.folder):
        assert not (folder / PROBE).exists()


def test_answers_are_kept_for_a_second(client, timer, monkeypatch):
    assert reasons(client, timer) == []
    monkeypatch.setattr(durable, "sync_directory", fail_with(errno.EROFS))
    timer.seconds += 0.5
    assert client.get("/readyz").status_code == 200
    assert reasons(client, timer) != []


@pytest.mark.parametrize(
    ("code", "what"),
    [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "Read-only"), (errno.EIO, "error")],
)
def test_a_folder_that_cannot_be_written(client, timer, monkeypatch, code, what):
    with monkeypatch.context() as broken:
        broken.setattr(durable, "sync_directory", fail_with(code))
        found = reasons(client, timer)
    assert len(found) == 2
    assert all(what in reason for reason in found)
    assert reasons(client, timer) == []


def test_an_archive_that_cannot_be_written(client, timer, monkeypatch):
    subscribe(client, id="a", expression="x >= 1")
    assert client.post("/v1/events", json={"x": 1}).status_code == 200
    with monkeypatch.context() as full:
        full.setattr(journal, "_flush", fail_with(errno.ENOSPC))
        refused = client.post("/v1/events", json={"x": 2})
        assert (refused.status_code, refused.json()["code"]) == (503, "store-unavailable")
        assert "No space left" in refused.json()["detail"]
        assert "nothing of this was stored" in refused.json()["hint"]
        assert any("No space left" in reason for reason in reasons(client, timer))
    assert reasons(client, timer) == []
    assert client.post("/v1/events", json={"x": 3}).status_code == 200
    assert [match["content"]["x"] for match in read(client, "a")] == [1, 3]
    assert [match["event"] for match in read(client, "a")] == [1, 2]


def test_an_archive_that_is_removed(client, match_server, timer):
    subscribe(client, id="a", expression="x >= 1")
    assert client.post("/v1/events", json={"x": 1}).status_code == 200
    shutil.rmtree(match_server.archive.folder)
    for _ in range(2):
        refused = client.post("/v1/events", json={"x": 2})
        assert (refused.status_code, refused.json()["code"]) == (503, "store-unavailable")
        assert "No such file" in refused.json()["detail"]
    assert any("cannot be written" in reason for reason in reasons(client, timer))


def test_a_store_that_cannot_be_written(client, match_server, timer, monkeypatch):
    subscribe(client, id="a", expression="x >= 1")
    writer = match_server.live.store._writer

    def fail(*_: object) -> None:
        raise StoreError("the store cannot be used: the disk is full", hint="free some space")

    with monkeypatch.context() as full:
        full.setattr(writer, "_commit", fail)
        refused = client.post("/v1/subscriptions", json={"id": "b", "expression": "x >= 1"})
        assert (refused.status_code, refused.json()["code"]) == (503, "store-unavailable")
        assert reasons(client, timer) == ["the store cannot be used: the disk is full"]
        assert client.post("/v1/events?matches=ids", json={"x": 1}).json()["ids"] == [["a"]]
    assert reasons(client, timer) == []
    subscribe(client, id="b", expression="x >= 1")
    assert client.post("/v1/events?matches=ids", json={"x": 1}).json()["ids"] == [["a", "b"]]


def test_a_set_behind_the_store(client, match_server, timer, monkeypatch):
    with monkeypatch.context() as ahead:
        ahead.setattr(type(match_server.live.store), "last_change", 5)
        assert reasons(client, timer) == []
        timer.seconds += PATIENCE
        assert reasons(client, timer) == ["the set is 5 changes behind the store"]
    assert reasons(client, timer) == []


def test_too_little_free_space(match_server, settings):
    operations = OperationSettings(least_free_space=Size(1 << 60))
    app = create_app(match_server, replace(settings, operations=operations), is_open=True)
    answer = TestClient(app, base_url=OWN_URL).get("/readyz")
    assert answer.status_code == 503
    assert "free bytes" in answer.json()["detail"]


def test_a_stopping_server(client, match_server, timer):
    client.app.state.context.is_closing.set()
    assert reasons(client, timer) == ["the server is stopping"]
    client.app.state.context.is_closing.clear()
    match_server.publisher.close()
    assert reasons(client, timer) == ["publishing has ended"]
    refused = client.post("/v1/events", json={"x": 1})
    assert (refused.status_code, "shutting down" in refused.text) == (503, True)
