"""Random lives of a live index, against a dictionary and the reference evaluator.

Everything is drawn from the seed, so a failure can be repeated: it names the life and its last
steps.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

import pytest

from tamis.live import live_set, maintenance
from tamis.logic.evaluate import Missing
from tests.effort import examples
from tests.live.machine import LiveMachine
from tests.live.places import by_hand
from tests.live.worlds import draw_world
from tests.match.examples import RANDOM_EVENTS
from tests.subscriptions.places import new_folder

N_STEPS = 500  # of one life
N_LIVES = 10  # in each mode of missing values
N_WORLDS = 12

QUIET = [
    RANDOM_EVENTS,
    # Chance may also name tags that no subscription has.
    pytest.mark.filterwarnings("ignore:no subscription has:tamis.TamisWarning"),
]


@contextmanager
def repeatable(most_newest: int):
    """What is decided by measured time is not, so that a seed gives the same life again."""
    with (
        by_hand(),
        patch.object(live_set, "MOST_NEWEST", most_newest),
        patch.object(live_set, "SLOW_BUILD", math.inf),
        patch.object(maintenance, "MEASURED", 10**9),
    ):
        yield


def live_once(
    seed: str, missing: Missing, kind: Callable[..., LiveMachine] = LiveMachine
) -> LiveMachine:
    """One life in a new folder."""
    draw, folder = Random(seed), new_folder()
    world = draw_world(draw.randrange(N_WORLDS), missing)
    try:
        with repeatable(draw.choice((2, 6, 512))):
            machine = kind(folder, draw, world, missing)
            try:
                machine.run(N_STEPS)
            except BaseException as error:
                error.add_note(f"life {seed}, the last steps: {', '.join(machine.steps)}")
                raise
            finally:
                machine.close()
    finally:
        shutil.rmtree(folder)
    return machine


def live_many(seed: int, missing: Missing) -> None:
    """5,000 steps, and ten times as many with an effort of ten."""
    for number in range(examples(N_LIVES)):
        machine = live_once(f"{seed}/{missing.value}/{number}", missing)
        assert machine.change > N_STEPS / 4
