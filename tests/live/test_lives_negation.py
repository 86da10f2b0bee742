"""Random lives where a test of a missing attribute satisfies a negation."""

from __future__ import annotations

from tamis.logic.evaluate import Missing
from tests.live.lives import QUIET, live_many

pytestmark = QUIET


def test_random_lives(seed):
    live_many(seed, Missing.SATISFIES_NEGATION)
