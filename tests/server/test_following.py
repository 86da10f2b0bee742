"""Several servers for one set: one writes, the others follow."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace

import httpx2
import pytest
from starlette.testclient import TestClient

from tamis.broker.following_server import FollowingServer
from tamis.broker.match_server import MatchServerSettings
from tamis.errors import InputError, StoreError
from tamis.server import create_app
from tamis.server.app import make_routes
from tamis.server.settings_reading import read_settings
from tests.cli.shell import environment
from tests.server.asking import make_key, needs_keys
from tests.server.conftest import OWN_URL
from tests.server.places import EVERY_STORE, subscribe
from tests.server.processes import ServerProcess, serving
from tests.server.running import read_stream, run_server
from tests.waiting import HANG_SECONDS, wait_until

WRITER = "http://writer.example:8080"


@pytest.fixture
def follower(match_server, settings, database):
    own = MatchServerSettings(store=database)
    with FollowingServer.open(settings.server.folder, own) as opened:
        yield opened


@pytest.fixture
def following(settings):
    return replace(settings, server=replace(settings.server, follow=WRITER))


@pytest.fixture
def second(follower, following):
    """A client of the follower."""
    with TestClient(create_app(follower, following, is_open=True), base_url=OWN_URL) as client:
        yield client


def catch_up(match_server, follower) -> None:
    wait_until(lambda: follower.live.change == match_server.live.change, "it has caught up")


@EVERY_STORE
def test_a_follower_answers_like_the_writer(client, second, match_server, follower):
    for name, text in {"few": "n < 3", "all": "n >= 0", "gone": "n = 1"}.items():
        subscribe(client, id=name, expression=text, tags=["t"])
    client.delete("/v1/subscriptions/gone")
    client.post("/v1/channels", json={"name": "both"})
    client.post("/v1/channels/both/members", json={"subscriptions": ["few", "all"]})
    client.post("/v1/events", json=[{"n": n} for n in range(5)])
    catch_up(match_server, follower)
    for path in (
        "/v1/subscriptions",
        "/v1/subscriptions/few",
        "/v1/subscriptions?tag=t",
        "/v1/subscriptions/few/matches",
        "/v1/subscriptions/gone/matches",
        "/v1/subscriptions/missing/matches",
        "/v1/channels",
        "/v1/channels/both/matches",
        "/v1/events?limit=3&who=true",
        "/v1/events/2",
        "/v1/keys",
    ):
        one, two = client.get(path), second.get(path)
        assert (one.status_code, without_id(one.json())) == (
            two.status_code,
            without_id(two.json()),
        ), path
    for path, asked in {
        "/v1/match": {"event": {"n": 1}},
        "/v1/explain": {"subscription_id": "few", "event": {"n": 7}},
        "/v1/check": {"expression": "n < 3 AND n > 5"},
        "/v1/forecast": {"expression": "n = 4"},
        "/v1/search": {"expression": "n = 4"},
    }.items():
        one, two = client.post(path, json=asked).json(), second.post(path, json=asked).json()
        assert one.keys() == two.keys()
        same = one.keys() - {"moment", "parts"}
        assert {key: one[key] for key in same} == {key: two[key] for key in same}, path
    for client_, role in ((client, "writer"), (second, "follower")):
        ready = client_.get("/readyz").json()
        assert (ready["role"], ready["change"], ready["last_event"]) == (role, 4, 5)
        state = client_.get("/v1/stats").json()
        assert (state["role"], state["set"]["change"], state["set"]["store_change"]) == (role, 4, 4)
        metrics = client_.get("/metrics").text
        assert f"tamis_is_writer {1.0 if role == 'writer' else 0.0}" in metrics
        assert "tamis_changes_total 4.0" in metrics


def without_id(answer):
    if isinstance(answer, dict):
        answer.pop("request_id", None)
    return answer


def list_changing() -> list[tuple[str, str]]:
    """The requests that change something."""
    document = make_routes().openapi()
    reading = re.compile(r"/v1/(match|explain|check|lint|similar|forecast|search|drafts)\b")
    return [
        (method.upper(), path)
        for path, methods in document["paths"].items()
        for method in methods
        if method not in ("get", "head") and not reading.match(path)
    ]


def test_a_follower_changes_nothing(client, second, match_server, follower):
    subscribe(client, id="a", expression="n >= 0")
    catch_up(match_server, follower)
    changing = list_changing()
    assert {("POST", "/v1/subscriptions"), ("POST", "/v1/events"), ("POST", "/v1/keys")} <= {
        *changing
    }
    for method, path in changing:
        answer = second.request(method, re.sub(r"\{[^}]+\}", "1", path), json={})
        assert answer.status_code == 421, (method, path, answer.text)
        problem = answer.json()
        assert (problem["code"], problem["writer"]) == ("not-the-writer", WRITER)
        assert problem["hint"] == f"send the request to {WRITER}"
    path = f"ws{OWN_URL.removeprefix('http')}/v1/subscriptions/a/socket"
    host = OWN_URL.removeprefix("http://")
    with second.websocket_connect(path, headers={"host": host}) as socket:
        cursor = socket.receive_json()["cursor"]
        socket.send_json({"type": "acknowledge", "cursor": cursor})
        assert socket.receive_json()["problem"]["code"] == "not-the-writer"
    with pytest.raises(StoreError):
        follower.publisher.publish(None)
    assert match_server.live.change == 1
    assert not list(match_server.folder.glob("running.json"))


def test_rights_are_those_of_the_writer(client, second, match_server, follower):
    key = make_key(match_server, "ann", "subscribe", "read")
    needs_keys(client)
    needs_keys(second)
    made = subscribe(client, headers=key, id="a", expression="n >= 0")
    other = make_key(match_server, "bob", "read")
    path = "/v1/subscriptions/a/matches"
    assert second.get(path).status_code in (401, 404)
    assert second.get(path, headers=other).status_code == 404
    assert second.get(path, headers=key).status_code == 200
    assert second.get(path, headers={"tamis-ticket": made["ticket"]}).status_code == 200


def test_streams_of_a_follower(match_server, follower, following, settings):
    """Also those of a channel, whose members the writer changes."""
    with (
        run_server(match_server, settings) as one,
        run_server(follower, following) as two,
        one.client() as writing,
        two.client() as reading,
    ):
        for name in ("a", "b"):
            subscribe(writing, id=name, expression="n >= 0")
        writing.post("/v1/channels", json={"name": "c"})
        writing.post("/v1/channels/c/members", json={"subscriptions": ["a"]})
        with reading.stream("GET", "/v1/channels/c/stream") as answer:
            events = read_stream(answer)
            seen: list[dict] = []
            enough = threading.Event()

            def read() -> None:
                for event in events:
                    if "data" in event and "subscriptions" in event["data"]:
                        seen.append(event["data"])
                        if event["data"]["subscriptions"] == ["a", "b"]:
                            break
                enough.set()

            thread = threading.Thread(target=read, daemon=True)
            thread.start()
            writing.post("/v1/events", json={"n": 1})
            wait_until(lambda: seen, "the first match")
            assert seen[0]["subscriptions"] == ["a"]
            writing.post("/v1/channels/c/members", json={"subscriptions": ["b"]})

            def publish() -> bool:
                writing.post("/v1/events", json={"n": 2})
                return enough.wait(0.2)

            wait_until(publish, "the new member is followed")
            two.stop()
            thread.join(HANG_SECONDS)


def test_settings_of_a_follower(tmp_path):
    with pytest.raises(InputError, match="an address such as http://writer:8080"):
        read_settings(flags={"server.follow": "yes"})
    with pytest.raises(InputError, match="together with stream"):
        read_settings(flags={"server.follow": WRITER, "stream.matches": "out"})
    with pytest.raises(InputError, match="start the server that writes first"):
        FollowingServer.open(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def ask(server: ServerProcess, method: str, path: str, **options) -> httpx2.Response:
    url = f"{server.url}{path}"
    return httpx2.request(method, url, timeout=HANG_SECONDS, trust_env=False, **options)


def contents(server: ServerProcess, name: str) -> list[int]:
    answer = ask(server, "GET", f"/v1/subscriptions/{name}/matches")
    return [own["content"]["n"] for own in answer.json()["matches"]]


def test_two_servers_on_one_database_and_the_end_of_the_writer(postgres, tmp_path):
    address, folder = postgres.new_place(), tmp_path / "server"
    writer = ServerProcess(folder, "--store", address)
    with serving(folder, "--store", address, "--follow", writer.url) as follower:
        made = ask(writer, "POST", "/v1/subscriptions", json={"id": "a", "expression": "n > 0"})
        assert made.status_code == 201
        ask(writer, "POST", "/v1/events", json=[{"n": 0}, {"n": 1}])
        wait_until(lambda: ask(follower, "GET", "/readyz").json()["change"] == 1, "the change")
        assert contents(follower, "a") == [1]
        refused = ask(follower, "POST", "/v1/events", json={"n": 2})
        assert (refused.status_code, refused.json()["writer"]) == (421, writer.url)

        # A second writer is refused while the first one lives.
        second = subprocess.run(
            [sys.executable, "-m", "tamis", "serve", folder, "--port", "0", "--store", address],
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
            timeout=HANG_SECONDS,
        )
        assert second.returncode == 1
        assert "another writer has the store" in second.stderr

        writer.stop(signal.SIGKILL)
        assert contents(follower, "a") == [1]
        assert ask(follower, "POST", "/v1/match", json={"event": {"n": 5}}).json()["ids"] == ["a"]

        # Another one takes over once the database knows that the first one is dead.
        writer = start_after_a_kill(folder, address)
        ask(writer, "POST", "/v1/subscriptions", json={"id": "b", "expression": "n > 2"})
        ask(writer, "POST", "/v1/events", json=[{"n": 2}, {"n": 3}])
        wait_until(lambda: ask(follower, "GET", "/readyz").json()["change"] == 2, "the change")
        assert (contents(follower, "a"), contents(follower, "b")) == ([1, 2, 3], [3])
        assert writer.stop() == 0
        assert contents(follower, "b") == [3]


def start_after_a_kill(folder, address: str) -> ServerProcess:
    for _ in range(HANG_SECONDS):
        with suppress(AssertionError):  # it did not start
            return ServerProcess(folder, "--store", address)
    raise AssertionError("a dead writer keeps its lock")
