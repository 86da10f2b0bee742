"""What one event left behind is never another's, however many come between them."""

from __future__ import annotations

import pytest

from tamis.logic.evaluate import Missing
from tamis.match.build import build

TEXTS = {
    "there": "x IS NOT NULL",
    "not there": "x IS NULL",
    "test": "x = 1",
    "other test": "NOT x = 1",
    "bound": "x < 5 AND y = 1",
    "array": "NOT array_contains(tags, 'b')",
    "either": "x = 1 OR tags IS NOT NULL",
    "plain": "y = 1",
}
SCHEMA = "x INT, y INT, tags ARRAY<STRING>"
FULL = {"x": 1, "y": 1, "tags": ["a", None]}


@pytest.mark.parametrize("missing", Missing)
@pytest.mark.parametrize("few", [{}, {"y": 1}, {"tags": ["b"]}, {"tags": []}], ids=str)
def test_events_one_after_the_other(missing, few):
    """Marks of an event are stamped with a byte: after 255 events they begin again."""
    used, unused = (build(TEXTS, SCHEMA, missing=missing) for _ in range(2))
    expected = unused.match(few)
    full = used.match(FULL)
    for number in range(1, 600):
        assert used.match(few) == expected, number
    assert used.match(FULL) == full
