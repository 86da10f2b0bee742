"""Operators are modules that the owner of the server names; no request brings code with it."""

from __future__ import annotations

import sys

import pytest
from starlette.testclient import TestClient

from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.server import create_app
from tests.server.conftest import OWN_URL

OWNED = """
import tamis

@tamis.operator("is_large(number)", timeout=None)
def is_large(event, least):
    return event.get("n", 0) >= least
"""
# Texts that would do something if they were ever run or imported.
CODE = (
    "os.system('x') = 1",
    "__import__('os')",
    "evil_module.run(1)",
    "eval('1')",
    "(lambda: 1)()",
    "n = 1; import os",
)


@pytest.fixture
def traps(monkeypatch):
    """What is compiled, run or imported because of a request."""
    found = []

    def watch(event: str, arguments: tuple) -> None:
        if is_watching and event in ("exec", "compile", "import", "os.system", "subprocess.Popen"):
            found.append((event, str(arguments)[:200]))

    is_watching = [True]
    sys.addaudithook(watch)
    yield found
    is_watching.clear()


def ask_everything(client: TestClient, text: str) -> list[int]:
    """The statuses of requests with a text wherever a request may have an expression or a name."""
    event = {"n": 1, "code": text, text: 1}
    asked = [
        ("/v1/subscriptions", {"expression": text}),
        ("/v1/subscriptions", {"expression": "n = 1", "operators": [text]}),
        ("/v1/subscriptions", {"expression": "n = 1", "attributes": {"operators": text}}),
        ("/v1/check", {"expression": text}),
        ("/v1/forecast", {"expression": text}),
        ("/v1/search", {"expression": text}),
        ("/v1/explain", {"expression": text, "event": event}),
        ("/v1/match", {"event": event, "tagged": [text]}),
        ("/v1/events", event),
    ]
    return [client.post(path, json=body).status_code for path, body in asked]


def test_no_request_runs_code(client, traps):
    ask_everything(client, "n = 1")  # imports and compiles what an ordinary request needs
    ask_everything(client, "x.y(1)")
    traps.clear()
    for text in CODE:
        statuses = ask_everything(client, text)
        assert statuses[0] == 422
        assert statuses[1] == 422  # there is no such field
        assert all(status < 500 for status in statuses)
    assert not [own for own in traps if any(text in own[1] for text in (*CODE, "evil_module"))]
    assert "evil_module" not in sys.modules


def test_operators_come_from_the_settings_only(tmp_path, settings, monkeypatch):
    (tmp_path / "owned_operators.py").write_text(OWNED)
    monkeypatch.syspath_prepend(tmp_path)
    for operators, status in (((), 422), (("owned_operators",), 201)):
        folder = tmp_path / f"server-{status}"
        with MatchServer.open(folder, MatchServerSettings(operators=operators)) as match_server:
            client = TestClient(create_app(match_server, settings, is_open=True), base_url=OWN_URL)
            asked = {"id": "large", "expression": "is_large(3)"}
            assert client.post("/v1/subscriptions", json=asked).status_code == status
    sys.modules.pop("owned_operators", None)
