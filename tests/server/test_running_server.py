"""A server in another process: backed up under load, and stopped with open streams."""

from __future__ import annotations

import signal
from contextlib import suppress
from itertools import islice
from threading import Event, Thread
from types import SimpleNamespace

import httpx2
from websockets.exceptions import ConnectionClosed

from tests.cli.shell import json_lines, run
from tests.server.asking import publish, subscribe
from tests.server.processes import ServerProcess, serving
from tests.server.running import read_stream
from tests.server.test_sockets import open_socket, receive
from tests.waiting import HANG_SECONDS, wait_until


def connect(server: ServerProcess) -> httpx2.Client:
    return httpx2.Client(base_url=server.url, timeout=HANG_SECONDS, trust_env=False)


def test_backup_and_shutdown_under_load_with_open_streams(tmp_path):
    server = ServerProcess(tmp_path / "server")
    with connect(server) as client, connect(server) as streamer, connect(server) as waiter:
        subscribe(client, id="a", expression="x >= 0")
        subscribe(client, id="idle", expression="x < 0")
        published: list[int] = []
        is_ended = Event()

        def publish_all() -> None:
            with connect(server) as own:
                while not is_ended.is_set():
                    published.append(publish(own, {"x": 1})["first_event"])

        publisher = Thread(target=publish_all)
        publisher.start()
        answers: list[httpx2.Response] = []
        polling = Thread(
            target=lambda: answers.append(
                waiter.get("/v1/subscriptions/idle/matches", params={"wait": 60})
            )
        )
        polling.start()
        address = SimpleNamespace(url=server.url)
        with (
            streamer.stream("GET", "/v1/subscriptions/a/stream?after=0") as stream,
            open_socket(address, "/v1/subscriptions/a/socket?after=0") as connection,
        ):
            events = (own for own in read_stream(stream) if "data" in own)
            assert [own["data"]["event"] for own in islice(events, 5)] == [1, 2, 3, 4, 5]
            assert [receive(connection)["type"] for _ in range(3)] == ["ready", "match", "match"]
            done = run("backup", server.folder, tmp_path / "backup", "--output", "json")
            assert done.exit_code == 0, done.output
            backed = json_lines(done.stdout)[0]["last_event"]
            wait_until(lambda: len(published) > backed, "it goes on")
            is_ended.set()
            publisher.join(HANG_SECONDS)
            server.process.send_signal(signal.SIGTERM)
            # What was acknowledged is delivered, or read later; nothing breaks off.
            rest = [own["data"]["event"] for own in events]
            assert rest == list(range(6, 6 + len(rest)))
            with suppress(ConnectionClosed):
                while True:
                    receive(connection)
            assert connection.close_code in (1001, 1012)
        polling.join(HANG_SECONDS)
        assert answers[0].status_code == 200
        assert answers[0].json()["matches"] == []
    assert server.process.wait(timeout=HANG_SECONDS) == 0, server.log.read_text()
    server.stop()
    assert published == list(range(1, len(published) + 1))
    assert run("restore", tmp_path / "backup", tmp_path / "restored").exit_code == 0
    for folder, n_events in ((tmp_path / "restored", backed), (server.folder, len(published))):
        with serving(folder) as again, connect(again) as client:
            page = client.get("/v1/subscriptions/a/matches", params={"limit": 1_000}).json()
            found = [own["event"] for own in page["matches"]]
            assert found == list(range(1, min(n_events, 1_000) + 1))
