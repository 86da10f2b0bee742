"""Both JSON readers on very many changed rows, for two of the tables.

`test_many_json_rows` has the other two, so that two processes share the work.
"""

from __future__ import annotations

import pytest

from tests.effort import SEED, examples
from tests.events.test_json_reader import BATCH, TABLES, check_changed_rows

N_ROWS = 50_000  # for each table; ten times as many in `make check`
NAMES = ("texts", "one")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_changed_rows(name):
    seed = SEED + 100 + list(TABLES).index(name)
    check_changed_rows(name, seed, -(-examples(N_ROWS) // BATCH))
