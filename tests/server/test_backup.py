"""Backups while a server runs, restored servers, imported versions, and the end of a server."""

from __future__ import annotations

import json
import signal
import socket
import stat
from contextlib import closing
from threading import Event, Thread
from urllib.parse import urlsplit

import httpx2
import pytest

import tamis
from tamis.broker.backup import FACTS, back_up, restore
from tamis.broker.match_server import MatchServer
from tamis.broker.rights import LOCAL
from tamis.errors import InputError, StoreError
from tests.cli.shell import json_lines, run, run_process
from tests.server.places import ON_SQLITE
from tests.server.processes import ServerProcess, serving
from tests.server.test_end_to_end import read, subscribe
from tests.server.test_keys import bearer
from tests.waiting import HANG_SECONDS, wait_until


def make(match_server, target):
    live, archive = match_server.live, match_server.archive
    return back_up(match_server.folder, live.store, archive, target)


@ON_SQLITE  # a database is restored by its own tools
def test_a_restored_server_has_everything(client, match_server, tmp_path):
    made = subscribe(client, id="a", expression="x >= 1", tags=["t"])
    key = match_server.broker.keys.create(LOCAL, "ann", ["admin"]).secret.reveal()
    own = bearer(key)
    client.post("/v1/events", json=[{"x": 1}, {"x": 2}], headers=own)
    found = make(match_server, tmp_path / "backup")
    assert (found.last_event, found.last_change) == (2, 1)
    client.post("/v1/events", json={"x": 3}, headers=own)
    client.delete("/v1/subscriptions/a", headers={"tamis-ticket": made["ticket"]})
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o700
    restore(tmp_path / "backup", tmp_path / "restored")
    with MatchServer.open(tmp_path / "restored") as restored:
        assert restored.live.get("a").tags == ("t",)
        assert restored.archive.last_event == 2
        assert restored.archive.epoch != match_server.archive.epoch == found.archive_epoch
        assert restored.live.store.epoch != match_server.live.store.epoch == found.store_epoch
        assert restored.broker.keys.authenticate(key) is not None
        ticket_hash = restored.live.get("a").ticket_hash
        assert restored.broker.tickets.verify(made["ticket"], ticket_hash)
        number = restored.live.get("a").created
        matches = restored.archive.read_matches([number], after=0, limit=10).matches
        assert [match.event for match in matches] == [1, 2]
        assert restored.live.match({"x": 5}) == ["a"]


@ON_SQLITE  # a database is restored by its own tools
def test_cursors_notice_that_a_server_was_restored(client, match_server, tmp_path):
    subscribe(client, id="a", expression="x >= 1")
    client.post("/v1/events", json={"x": 1})
    cursor = client.get("/v1/subscriptions/a/matches").json()["cursor"]
    make(match_server, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored")
    with MatchServer.open(tmp_path / "restored") as restored:
        client.app.state.context.match_server = restored
        lost = client.get("/v1/subscriptions/a/matches", params={"after": cursor})
        assert (lost.status_code, lost.json()["code"]) == (410, "history-lost")
        assert len(read(client, "a")) == 1


@ON_SQLITE  # a database is restored by its own tools
def test_a_backup_under_load_is_consistent(client, match_server, tmp_path):
    """Every match in the backup belongs to a subscription in it."""
    ended = Event()

    def work() -> None:
        turn = 0
        while not ended.is_set():
            match_server.live.add(f"s{turn}", "x >= 1")
            client.post("/v1/events", json={"x": 1})
            turn += 1

    worker = Thread(target=work)
    worker.start()
    try:
        for turn in range(3):
            wait_until(
                lambda n=turn: match_server.archive.last_event > 5 * n, "events were published"
            )
            make(match_server, tmp_path / f"backup{turn}")
    finally:
        ended.set()
        worker.join()
    for turn in range(3):
        restore(tmp_path / f"backup{turn}", tmp_path / f"restored{turn}")
        with MatchServer.open(tmp_path / f"restored{turn}") as restored:
            numbers = {restored.live.get(name).created for name in restored.live}
            page = restored.archive.read_matches(range(1, 10_000), after=0, limit=10_000)
            assert {own for match in page.matches for own in match.subscriptions} <= numbers
            assert restored.archive.last_event == len(page.matches) > 0


@ON_SQLITE  # a database is restored by its own tools
def test_places_that_cannot_be_used(match_server, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="exists"):
        make(match_server, tmp_path / "there")
    with pytest.raises(InputError, match="inside of the archive"):
        make(match_server, match_server.archive.folder / "x")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="was not made"):
        make(match_server, tmp_path / "file" / "x")
    with pytest.raises(InputError, match="not a backup"):
        restore(tmp_path / "there", tmp_path / "new")
    make(match_server, tmp_path / "backup")
    with pytest.raises(InputError, match="exists"):
        restore(tmp_path / "backup", tmp_path / "there")
    facts = json.loads((tmp_path / "backup" / FACTS).read_text())
    (tmp_path / "backup" / FACTS).write_text(json.dumps(facts | {"format": 99}))
    with pytest.raises(InputError, match="format 99"):
        restore(tmp_path / "backup", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_admins_name_places_in_one_folder(client, settings):
    answer = client.post("/v1/backup", json={"target": "nightly-1"})
    assert answer.status_code == 201
    assert (settings.server.folder / "backups" / "nightly-1" / FACTS).exists()
    for wrong in ("", ".", "..", "../x", "a/b", "/tmp/x", ".hidden", "a\0b", "x" * 200, "a\n"):
        for path, name in (("/v1/backup", "target"), ("/v1/import-version", "source")):
            answer = client.post(path, json={name: wrong})
            assert (answer.status_code, answer.json()["code"]) == (422, "bad-place")
    actions = [entry["action"] for entry in client.get("/v1/audit").json()["entries"]]
    assert actions == ["backup"]


def lines_of(answer) -> list[dict]:
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_version_is_imported_with_a_result_for_each_row(client, match_server, settings):
    subscribe(client, id="b", expression="x = 7")
    rows = [
        {"id": "a", "expression": "x >= 1", "tags": ["t"], "owner": "ann", "level": 5},
        {"id": "b", "expression": "x >= 2"},
        {"id": "c", "expression": "x >= 3", "valid_until": "2090-01-01T00:00:00Z"},
        {"id": "d", "expression": "x = 'text'"},
    ]
    folder = settings.server.folder / "imports"
    folder.mkdir()
    tamis.build(rows[:3], "x int").save(folder / "nightly0")
    tamis.build(rows[3:], "x string").save(folder / "nightly1")
    asked = {"source": "nightly0"}
    *results, numbers = lines_of(client.post("/v1/import-version", json=asked))
    assert [(row["id"], row["outcome"]) for row in results] == [
        ("a", "added"),
        ("b", "refused"),
        ("c", "added"),
    ]
    assert results[1]["code"] == "exists"
    assert (numbers["rows"], numbers["added"], numbers["refused"]) == (3, 2, 1)
    found = match_server.live.get("a")
    assert (found.owner, found.tags, found.attributes) == ("ann", ("t",), {"level": 5})
    assert match_server.live.get("c").valid_until.year == 2090
    *results, numbers = lines_of(client.post("/v1/import-version", json=asked | {"replace": True}))
    assert [row["outcome"] for row in results] == ["unchanged", "replaced", "unchanged"]
    assert sorted(match_server.live.match({"x": 2})) == ["a", "b"]
    *results, _ = lines_of(client.post("/v1/import-version", json={"source": "nightly1"}))
    assert [row["outcome"] for row in results] == ["refused"]
    unknown = client.post("/v1/import-version", json={"source": "unknown"})
    assert unknown.status_code in (400, 422)


# ── in the shell, of a running server ───────────────────────────────────────────────────────


def test_maintenance_of_a_running_server(tmp_path):
    tamis.build({"a": "x >= 1", "b": "x >= 2"}).save(tmp_path / "built")
    with serving(tmp_path / "server") as server:
        imported = run_process("import-version", server.folder, tmp_path / "built")
        assert imported.returncode == 0, imported.stderr
        assert httpx2.post(f"{server.url}/v1/events", json={"x": 1}).json()["matches"] == 1
        made = run_process("backup", server.folder, tmp_path / "backup", "--output", "json")
        assert made.returncode == 0, made.stderr
        assert json_lines(made.stdout.decode())[0]["last_event"] == 1
        again = run_process("backup", server.folder, tmp_path / "backup")
        assert (again.returncode, b"exists" in again.stderr) == (1, True)
    assert run("import-version", server.folder, tmp_path / "built").exit_code == 1
    assert run("backup", server.folder, tmp_path / "later").exit_code == 0
    restored = run("restore", tmp_path / "later", tmp_path / "restored", "--output", "json")
    assert json_lines(restored.stdout)[0]["last_change"] == 2
    with serving(tmp_path / "restored") as other:
        answer = httpx2.get(f"{other.url}/v1/subscriptions/a/matches").json()
        assert [match["content"] for match in answer["matches"]] == [{"x": 1}]


# ── the end ─────────────────────────────────────────────────────────────────────────────────


def begin_request(server, body: bytes) -> socket.socket:
    """Send a request without its last byte."""
    parts = urlsplit(server.url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=HANG_SECONDS)
    head = b"POST /v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n" % len(body)
    connection.sendall(head + body[:-1])
    return connection


def wait_for_stop(server) -> None:
    wait_until(lambda: "stopping" in server.log.read_text(), "the server is stopping")


def test_what_was_accepted_is_answered_before_the_end(tmp_path):
    server = ServerProcess(tmp_path / "server")
    body = b'{"x": 1}'
    with closing(begin_request(server, body)) as connection:
        httpx2.get(f"{server.url}/healthz")  # the request has arrived
        server.process.send_signal(signal.SIGTERM)
        wait_for_stop(server)
        connection.sendall(body[-1:])
        assert b"200 OK" in connection.recv(65_536)
    assert server.process.wait(timeout=HANG_SECONDS) == 0
    server.stop()
    with MatchServer.open(tmp_path / "server") as opened:
        assert opened.archive.last_event == 1


def test_a_second_signal_ends_at_once(tmp_path):
    server = ServerProcess(tmp_path / "server", TAMIS_SERVER_SHUTDOWN_TIMEOUT="1 h")
    assert httpx2.post(f"{server.url}/v1/events", json={"x": 1}).status_code == 200
    with closing(begin_request(server, b'{"x": 2}')):
        httpx2.get(f"{server.url}/healthz")
        server.process.send_signal(signal.SIGTERM)
        wait_for_stop(server)
        assert server.process.poll() is None
        assert server.stop(signal.SIGTERM) == 128 + signal.SIGTERM
    with MatchServer.open(tmp_path / "server") as opened:
        assert opened.archive.last_event == 1
