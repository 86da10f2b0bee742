"""The server of the subscriptions' tests serves live indexes too."""

from __future__ import annotations

from tests.subscriptions.conftest import postgres  # noqa: F401 - a fixture
