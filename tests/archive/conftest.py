"""Archives of tests are in memory, and are maintained by hand."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.archive.maintenance import Maintenance
from tests.subscriptions.places import new_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for an archive."""
    made = new_folder()
    yield made / "archive"
    shutil.rmtree(made)


_START = Maintenance.start


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread maintains an archive: tests call `maintain` and `seal`."""
    monkeypatch.setattr(Maintenance, "start", lambda self: None)


@pytest.fixture
def with_thread(by_hand: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread maintains each archive, as usual."""
    monkeypatch.setattr(Maintenance, "start", _START)
