"""Servers, callers and requests that tests of the server share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from tamis.broker.rights import LOCAL
from tamis.server import Settings, create_app
from tests.server.conftest import OWN_URL

if TYPE_CHECKING:
    from tamis.broker.match_server import MatchServer

# Tests with the fixture `database`, or one that needs it, on SQLite and on PostgreSQL.
EVERY_STORE = pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)

# What is different on PostgreSQL by design.
ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def key_of(match_server: MatchServer, owner: str, *roles: str) -> dict[str, str]:
    """The header with a new key."""
    made = match_server.broker.keys.create(LOCAL, owner, roles)
    return {"authorization": f"Bearer {made.secret.reveal()}"}


def closed_client(match_server: MatchServer, settings: Settings) -> TestClient:
    """A client of a server that needs keys; errors of the server are answers."""
    app = create_app(match_server, settings, is_open=False)
    return TestClient(app, base_url=OWN_URL, raise_server_exceptions=False)


def subscribe(client: TestClient, headers: dict[str, str] | None = None, **asked: Any) -> dict:
    """Subscribe; returns the answer."""
    answer = client.post("/v1/subscriptions", json=asked, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()
