"""A server in this process, without a network."""

from __future__ import annotations

import httpx2
import pytest
from starlette.testclient import TestClient

from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.server import Settings, create_app
from tamis.server.settings import ServerSettings
from tests.subscriptions.conftest import postgres
from tests.waiting import HANG_SECONDS

__all__ = ["postgres"]

# No request fails because the machine is busy: a test about that names its limit.
for function in (httpx2.get, httpx2.post, httpx2.delete, httpx2.patch, httpx2.Client.__init__):
    function.__kwdefaults__["timeout"] = HANG_SECONDS

OWN_URL = "http://127.0.0.1:8080"  # other names are refused


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(server=ServerSettings(folder=tmp_path / "server"))


STORES = ("sqlite", pytest.param("postgres", marks=pytest.mark.slow))


def choose_store(request) -> str | None:
    """The address of the store that a fixture with the parameters `STORES` asks for; None for
    SQLite in the folder.
    """
    if request.param == "sqlite":
        return None
    return request.getfixturevalue("postgres").new_place()


@pytest.fixture(params=STORES)
def database(request) -> str | None:
    """The address of the store. With `EVERY_STORE`, a test runs on PostgreSQL in `make test` too,
    otherwise in `make check`.
    """
    return choose_store(request)


@pytest.fixture
def match_server(settings, database):
    own = MatchServerSettings(store=database)
    with MatchServer.open(settings.server.folder, own) as opened:
        yield opened


@pytest.fixture
def client(match_server, settings):
    """A client of a server that needs no keys."""
    app = create_app(match_server, settings, is_open=True)
    with TestClient(app, base_url=OWN_URL) as client:
        yield client
