"""A live index answers every case of `tests/cases`, as changed one by one and after a merge."""

from __future__ import annotations

import json

import pytest

from tamis.live import LiveIndex
from tamis.logic.evaluate import Missing
from tamis.subscriptions import Accepted, Subscribe
from tests.joined_cases import assert_matches, join_cases
from tests.live.places import by_hand

pytestmark = [
    pytest.mark.slow,
    # What is reported about odd values is tested elsewhere.
    pytest.mark.filterwarnings("ignore::tamis.TamisWarning"),
]


@pytest.mark.parametrize("missing", Missing)
def test_every_case(missing, tmp_path):
    joined = join_cases(missing)
    with by_hand(), LiveIndex.open(tmp_path / "i", schema=joined.schema, missing=missing) as live:
        names = list(joined.texts)
        for start in range(0, len(names), 150):  # each of these is a part of its own
            made = live.apply([Subscribe(own, joined.texts[own]) for own in names[start:][:150]])
            assert all(isinstance(one, Accepted) for one in made)
        found = live.match_lists(joined.events).to_pylist()
        assert_matches(joined, found)
        assert [live.match(json.dumps(event)) for event in joined.events] == found
