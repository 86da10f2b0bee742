"""A cold start: the server listens, says that it is not ready, and why, until all is compiled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tamis.match import warmup
from tamis.server import create_app, warming
from tamis.server.warming import REASON, Warming
from tests.cli.shell import environment
from tests.server.conftest import OWN_URL
from tests.waiting import HANG_SECONDS, wait_until

ENDLESS = (sys.executable, "-c", "import time; time.sleep(1e6)")
WRONG = (sys.executable, "-c", "raise SystemExit(3)")
MESSAGE = "compiling kernels, about 50 s, once on this machine"


@pytest.fixture
def cold(monkeypatch):
    """As on a machine on which nothing was compiled."""
    monkeypatch.setattr(warming, "is_warmed_up", lambda: False)
    monkeypatch.setattr(warming, "announce", lambda report, packages: report(MESSAGE))


def test_the_server_is_not_ready_while_kernels_are_compiled(
    cold, match_server, settings, caplog, tmp_path
):
    caplog.set_level("INFO")
    flag, told = tmp_path / "flag", []
    script = f"import os, time\nwhile not os.path.exists({str(flag)!r}): time.sleep(0.01)"
    with Warming(told.append, (sys.executable, "-c", script)) as own:
        app = create_app(match_server, settings, is_open=True, warming=own)
        client = TestClient(app, base_url=OWN_URL)
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["reasons"]) == (503, [REASON])
        assert client.get("/healthz").status_code == 200
        flag.touch()
        wait_until(lambda: client.get("/readyz").status_code == 200, "it is ready")
    assert told == [f"{MESSAGE}; until then, /readyz says that the server is not ready"]
    assert MESSAGE in caplog.messages
    assert any(one.startswith("the kernels are compiled, after ") for one in caplog.messages)


def test_a_server_that_is_stopped_does_not_wait_for_it(cold):
    with Warming(command=ENDLESS) as own:
        wait_until(lambda: own._process is not None, "it runs")
        assert own.reason == REASON
    assert own.reason is None
    assert own._process.poll() is not None


@pytest.mark.parametrize("command", [WRONG, ("/nonexistent/python",)])
def test_what_cannot_be_compiled_before_is_compiled_later(cold, command, caplog):
    with Warming(command=command) as own:
        wait_until(lambda: own.reason is None, "it has ended")
    assert "compile" in caplog.text


def test_a_warm_start_does_nothing(monkeypatch):
    monkeypatch.setattr(warming, "is_warmed_up", lambda: True)
    with Warming(pytest.fail, ENDLESS) as own:
        assert own.reason is None
        assert own._process is None


def test_what_was_compiled_is_remembered_for_these_sources(monkeypatch, tmp_path):
    stamp = tmp_path / "stamp"
    monkeypatch.setattr(warmup, "_find_stamp", lambda: (stamp, "these"))
    monkeypatch.setattr(warmup, "warm_up", lambda: None)
    assert not warmup.is_warmed_up()
    warmup.main()
    assert warmup.is_warmed_up()
    monkeypatch.setattr(warmup, "_find_stamp", lambda: (stamp, "others"))
    assert not warmup.is_warmed_up()


def test_without_compilation_there_is_nothing_to_wait_for(monkeypatch):
    monkeypatch.setattr(warmup, "_find_stamp", lambda: None)
    assert warmup.is_warmed_up()


def test_everything_that_a_server_uses_is_warmed_up():
    done = subprocess.run(
        [sys.executable, "-m", "tests.server.warmed"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env=environment(),
        timeout=HANG_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
