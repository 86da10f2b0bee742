"""Random lives where a test of a missing attribute is undefined.

Those where it satisfies a negation, and those on PostgreSQL, are in other files: processes share
the tests by file.
"""

from __future__ import annotations

from tamis.logic.evaluate import Missing
from tests.live.lives import QUIET, live_many

pytestmark = QUIET


def test_random_lives(seed):
    live_many(seed, Missing.UNDEFINED)
