"""Bugs that other systems have shipped: what subscriptions share must not tie them together.

Removing one corrupts those with which it shares tests; a test that is first stored as part of an
AND, and then subscribed alone, is never evaluated. Here two or more subscriptions share tests in
every order, in one part, in several, and in one that was merged.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations, product

import pytest

import tamis
from tamis.live import LiveIndex
from tamis.logic.evaluate import Missing
from tests.live.places import by_hand
from tests.subscriptions.places import new_folder

EXPRESSIONS = {
    "alone": "a = 1",
    "the same again": "a = 1",
    "and": "a = 1 AND b = 2",
    "longer and": "a = 1 AND b = 2 AND c = 3",
    "or": "a = 1 OR b = 2",
    "or below and": "(a = 1 OR b = 2) AND c = 3",
    "not": "NOT a = 1",
    "not of all": "NOT (a = 1 AND b = 2)",
}
CHAIN = ("a = 1", "a = 1 AND b = 2", "a = 1 AND b = 2 AND c = 3", "a = 1 AND b = 2 AND c = 3 AND d")
EVENTS = [
    {name: value for name, value in zip("abcd", values, strict=True) if value is not None}
    for values in product((1, 0, None), (2, None), (3, None), (True, None))
]


def stay(live: LiveIndex) -> None:
    """All that is added is in the newest part."""


def seal(live: LiveIndex) -> None:
    """What is added from now on is in another part."""
    live._committer.run(lambda live_set: replace(live_set, newest=None))


def merge(live: LiveIndex) -> None:
    """All that was added is in one part, which was built by a merge."""
    live.compact()


ARRANGEMENTS = (stay, seal, merge)


class Siblings:
    """A live index, and the expressions that it has."""

    def __init__(self, live: LiveIndex, missing: Missing) -> None:
        self.live, self.missing = live, missing
        self.held: dict[str, str] = {}
        self._truth: dict[str, list[bool]] = {}

    def add(self, name: str, text: str) -> None:
        self.live.add(name, text)
        self.held[name] = text
        self.check()

    def remove(self, name: str) -> None:
        self.live.remove(name)
        del self.held[name]
        self.check()

    def arrange(self, how: Callable[[LiveIndex], None]) -> None:
        how(self.live)
        self.check()

    def check(self) -> None:
        """Each event is matched by what the reference says, alone and in a batch."""
        lists = self.live.match_lists(EVENTS).to_pylist()
        for at, (event, found) in enumerate(zip(EVENTS, lists, strict=True)):
            wanted = sorted(name for name, text in self.held.items() if self.truth(text)[at])
            assert sorted(found) == wanted, event
            assert sorted(self.live.match(event)) == wanted, event

    def truth(self, text: str) -> list[bool]:
        """Whether the reference says that an expression is true, by event."""
        if text not in self._truth:
            self._truth[text] = [
                tamis.evaluate(text, event, missing=self.missing) is True for event in EVENTS
            ]
        return self._truth[text]


@pytest.fixture(params=Missing)
def siblings(request):
    folder, missing = new_folder(), request.param
    schema = "a BIGINT, b BIGINT, c BIGINT, d BOOLEAN"
    with by_hand(), LiveIndex.open(folder / "live", schema=schema, missing=missing) as live:
        yield Siblings(live, missing)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("before", "after"), [(stay, stay), (seal, stay), (merge, stay), (stay, merge), (seal, merge)]
)
def test_two_that_share_a_test(siblings, before, after):
    """Each is found whichever came first, and stays when the other is removed."""
    for first, second in permutations(EXPRESSIONS, 2):
        siblings.add("first", EXPRESSIONS[first])
        siblings.arrange(before)
        siblings.add("second", EXPRESSIONS[second])
        siblings.arrange(after)
        siblings.remove("first")
        siblings.arrange(before)
        siblings.add("first", EXPRESSIONS[first])
        siblings.remove("second")
        siblings.remove("first")


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_a_chain_of_and_is_taken_apart(siblings, arrangement):
    """Each expression contains the one before it; they are removed in every order."""
    for order in permutations(range(len(CHAIN))):
        for at in order:
            siblings.add(f"s{at}", CHAIN[at])
        siblings.arrange(arrangement)
        for at in reversed(order):
            siblings.remove(f"s{at}")
            siblings.arrange(arrangement)


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_one_expression_with_many_ids(siblings, arrangement):
    """Ids are removed, replaced and added again; the others have the same expression."""
    for at in range(8):
        siblings.add(f"s{at}", EXPRESSIONS["or below and"])
        if at == 3:
            siblings.arrange(arrangement)
    for at in (7, 0, 4):
        siblings.remove(f"s{at}")
    siblings.arrange(arrangement)
    siblings.live.replace("s1", EXPRESSIONS["alone"])
    siblings.held["s1"] = EXPRESSIONS["alone"]
    siblings.check()
    siblings.add("s0", EXPRESSIONS["or below and"])
    for at in (0, 1, 2, 3, 5, 6):
        siblings.remove(f"s{at}")


def test_a_test_of_all_strings_is_no_attribute(tmp_path):
    with LiveIndex.open(tmp_path / "live") as live:
        live.add("plain", "x = 1")
        live.add("any", "any_attribute(v -> v = 'a')")
        live.add("late", "x = 2")
        assert sorted(live.match({"x": 1, "y": "a"})) == ["any", "plain"]
    with LiveIndex.open(tmp_path / "live", schema="x NUMBER") as live:
        assert sorted(live.match({"x": 2, "y": "a"})) == ["any", "late"]
        live.remove("any")
        assert live.match({"x": 2, "y": "a"}) == ["late"]
