"""kill -9 under load: nothing acknowledged is missing, no mailbox has a gap."""

from __future__ import annotations

import pytest

from tests.server.load.attack import attack
from tests.server.load.scene import Scene


def test_killed_servers_lose_nothing(tmp_path, seed):
    with Scene(tmp_path / "server", seed) as scene:
        attack(scene, 2)


@pytest.mark.slow
def test_many_killed_servers_lose_nothing(tmp_path, seed):
    with Scene(tmp_path / "server", seed + 1_000) as scene:
        attack(scene, 15)


@pytest.mark.soak
@pytest.mark.parametrize("size", ["5000", "40000", "1500000"])
def test_hundreds_of_killed_servers_lose_nothing(tmp_path, seed, size):
    """Segments of different sizes: small ones are closed all the time, large ones by a process."""
    settings = {"TAMIS_ARCHIVE_SEGMENT_SIZE": size}
    with Scene(tmp_path / "server", seed + int(size), **settings) as scene:
        attack(scene, 100)


@pytest.mark.soak
def test_killed_servers_on_postgres_lose_nothing(tmp_path, seed, postgres):
    with Scene(tmp_path / "server", seed + 3_000, postgres.new_place()) as scene:
        attack(scene, 50)
