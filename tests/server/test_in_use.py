"""A folder that another process writes to: commands find its server, or say what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

import tamis
from tamis.broker.match_server import INDEX, MatchServer
from tamis.cli import server_access
from tamis.cli.server_access import RemoteServer, reaching
from tamis.errors import IndexFormatError, InputError, StoreInUseError
from tamis.server.server_file import Presence, new_local_key, write_presence
from tamis.subscriptions import SubscriptionStore
from tests.cli.shell import run, run_process

URL = "http://127.0.0.1:8765"


@pytest.fixture
def folder(tmp_path):
    """The folder of a server that is starting: it has the store open, and does not listen."""
    folder = tmp_path / "server"
    with MatchServer.open(folder):
        pass
    with SubscriptionStore.open(folder / INDEX):
        yield folder


def announce(folder: Path) -> None:
    write_presence(folder, Presence(URL, new_local_key()))


def test_an_index_is_not_the_folder_of_a_server(tmp_path):
    saved, live = tmp_path / "saved", tmp_path / "live"
    tamis.build({"s": "a = 1"}).save(saved)
    with tamis.LiveIndex.open(live):
        pass
    for place in (saved, live):
        before = sorted(place.rglob("*"))
        with pytest.raises(InputError, match="is an index; a server needs its own folder"):
            MatchServer.open(place)
        assert sorted(place.rglob("*")) == before
    (tmp_path / "e.jsonl").write_text("")
    with pytest.raises(InputError, match="is a file; a folder for a server is expected"):
        MatchServer.open(tmp_path / "e.jsonl")


def test_the_folder_of_a_server_is_not_an_index(tmp_path):
    with MatchServer.open(tmp_path) as server:
        server.live.add("s", "a = 1")
    with pytest.raises(IndexFormatError, match="is the folder of a server, not an index") as error:
        tamis.open(tmp_path)
    assert error.value.hint == f"its index is {tmp_path / INDEX}"
    assert tamis.open(tmp_path / INDEX).match({"a": 1}) == ["s"]


def test_a_second_server_says_how_to_go_on(folder):
    refused = run_process("serve", folder, "--port", "0")
    assert refused.returncode == 1
    shown = refused.stderr.decode()
    assert "another writer has the store at" in shown
    assert "hint: another server or command writes to it: stop that first" in shown
    announce(folder)
    shown = run_process("serve", folder, "--port", "0").stderr.decode()
    assert f"hint: the server at {URL} writes to it" in shown
    assert f"tamis serve {folder} --port 0 --follow {URL}" in shown
    assert "read_only" not in shown


def test_a_command_waits_for_a_server_that_starts(folder, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: announce(folder))
    with reaching(str(folder)) as reached:
        assert isinstance(reached, RemoteServer)
        assert reached.url == URL


def test_a_command_waits_for_one_that_ends(tmp_path, monkeypatch):
    folder = tmp_path / "server"
    with MatchServer.open(folder):
        pass
    other = SubscriptionStore.open(folder / INDEX)
    monkeypatch.setattr("time.sleep", lambda seconds: other.close())
    with reaching(str(folder)) as reached:
        assert not isinstance(reached, RemoteServer)


def test_a_command_does_not_wait_for_ever(folder, monkeypatch):
    monkeypatch.setattr(server_access, "_PATIENCE", 0.0)
    with pytest.raises(StoreInUseError) as refused, reaching(str(folder)):
        pass
    assert "another machine" not in str(refused.value)
    assert refused.value.hint.startswith("a server that is starting, or another command")
    shown = run("keys", "create", folder, "root", "--role", "admin")
    assert shown.exit_code == 1
    assert "a server that is starting" in shown.stderr
