"""Every test with a `broker` runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest

from tamis.broker.store import Broker
from tamis.subscriptions import SubscriptionStore
from tests.broker.places import SECRET, Timer
from tests.subscriptions.conftest import clock, folder, place, postgres, store  # noqa: F401


@pytest.fixture
def timer() -> Timer:
    return Timer()


@pytest.fixture
def broker(store: SubscriptionStore, timer: Timer) -> Broker:  # noqa: F811
    return Broker(store, SECRET, timer=timer)
