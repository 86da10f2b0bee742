"""Random lives of a live index whose subscriptions are in a PostgreSQL database."""

from __future__ import annotations

from functools import partial

import pytest

from tamis.live import LiveIndex, follow
from tamis.logic.evaluate import Missing
from tamis.match.index import Index
from tests.effort import examples
from tests.live.lives import N_STEPS, QUIET, live_once
from tests.live.machine import LiveMachine

pytestmark = QUIET


class PostgresMachine(LiveMachine):
    """A live index whose subscriptions are in a database."""

    def __init__(self, *args, address: str) -> None:
        self.address = address
        super().__init__(*args)

    def open(self, folder=None) -> LiveIndex:
        return super().open(folder, store=self.address)

    def follow(self) -> Index:
        operators = self.world.toys.registry
        return follow(
            self.folder / "live", operators=operators, store=self.address, is_started=False
        )

    copy_in_flight = None  # no copy of the folder has a database


@pytest.mark.parametrize("missing", Missing)
def test_random_lives(missing, seed, postgres):
    for number in range(examples(1)):
        kind = partial(PostgresMachine, address=postgres.new_place())
        machine = live_once(f"{seed}/{missing.value}/postgres/{number}", missing, kind)
        assert machine.change > N_STEPS / 4
