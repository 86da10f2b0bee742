"""Every test with a `place` runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.subscriptions import SubscriptionStore
from tests.subscriptions.places import Clock, Postgres, new_folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    made = new_folder()
    yield made / "store"
    shutil.rmtree(made)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return str(request.getfixturevalue("folder"))
    return request.getfixturevalue("postgres").new_place()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(place: str, clock: Clock) -> Iterator[SubscriptionStore]:
    with SubscriptionStore.open(place, clock=clock) as opened:
        yield opened
