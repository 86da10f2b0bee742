"""Random lives of a live index, against a dictionary and the reference evaluator."""

from __future__ import annotations

import random
import shutil
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import tamis
from tamis.live import LiveIndex, follow
from tamis.logic.evaluate import Missing
from tamis.subscriptions import Accepted, Replace, Subscribe, Unsubscribe
from tests.effort import examples
from tests.live.places import by_hand, crash, step
from tests.match.engines import ENGINES
from tests.match.examples import RANDOM_EVENTS, draw_example, reference
from tests.subscriptions.places import Clock, new_folder

pytestmark = RANDOM_EVENTS

NAMES = [f"n{at}" for at in range(40)]
N_EXPRESSIONS = 60
names = st.sampled_from(NAMES)
expressions = st.integers(0, N_EXPRESSIONS - 1).map(lambda at: f"s{at}")
leases = st.none() | st.integers(-5, 60)


class LiveMachine(RuleBasedStateMachine):
    """One live index, its model, a follower, and snapshots of earlier moments."""

    def __init__(self, folder, seed: int, missing: Missing) -> None:
        super().__init__()
        self.folder, self.missing = folder, missing
        self.clock = Clock()
        self.example = draw_example(seed, N_EXPRESSIONS, n_events=12)
        self.held: dict[str, tuple[str, object]] = {}  # id: expression, end of its lease
        self.moment = self.clock.now  # the latest that the index has seen
        self.live = self.open()
        self.follower = follow(folder, is_started=False)
        self.snapshots: list = []

    def open(self) -> LiveIndex:
        options = {"schema": self.example.schema, "missing": self.missing, "clock": self.clock}
        return LiveIndex.open(self.folder, **options)

    def teardown(self) -> None:
        self.follower.close()
        self.live.close()

    # ── the model ──────────────────────────────────────────────────────────────────────────

    def see(self) -> dict[str, tuple[str, object]]:
        """The subscriptions that are not over."""
        self.moment = max(self.moment, self.clock.now)
        self.held = {
            name: own for name, own in self.held.items() if own[1] is None or own[1] > self.moment
        }
        return self.held

    def truth(self, held, ids) -> np.ndarray:
        conditions = [self.example.conditions[held[name][0]] for name in ids]
        return reference(conditions, self.example.events, self.missing)

    def end(self, lease):
        self.see()
        return None if lease is None else self.moment + timedelta(seconds=lease)

    def expect(self, index, held, engines=ENGINES) -> None:
        """The index has exactly the subscriptions of the model, and answers as the reference."""
        ids = list(index)
        over = [name for name in ids if name not in held]
        assert set(held) <= set(ids)
        assert len(ids) == len(set(ids))
        held = held | dict.fromkeys(over, ("s0", None))
        truth = self.truth(held, ids)
        truth[:, [ids.index(name) for name in over]] = False
        for engine in engines:
            if engine.name == "wide" and over:
                continue  # it has another clock
            got = engine.ask(index, self.example.events)
            assert np.array_equal(got, engine.expected(truth)), engine.name

    # ── changes ────────────────────────────────────────────────────────────────────────────

    @rule(name=names, text=expressions, lease=leases)
    def add(self, name, text, lease):
        end = self.end(lease)
        is_right = name not in self.held and (end is None or end > self.moment)
        try:
            self.live.add(name, self.example.texts[text], valid_until=end)
        except tamis.errors.RefusedError:
            assert not is_right
        else:
            assert is_right
            self.held[name] = (text, end)

    @rule(rows=st.lists(st.tuples(names, expressions), max_size=30))
    def add_many(self, rows):
        held = self.see()
        results = self.live.add_many([(name, self.example.texts[text]) for name, text in rows])
        for (name, text), result in zip(rows, results, strict=True):
            assert isinstance(result, Accepted) == (name not in held)
            held.setdefault(name, (text, None))

    @rule(name=names, text=expressions)
    def replace(self, name, text):
        held = self.see()
        try:
            self.live.replace(name, self.example.texts[text])
        except tamis.errors.RefusedError:
            assert name not in held
        else:
            held[name] = (text, held[name][1])

    @rule(name=names, lease=st.none() | st.integers(1, 90))
    def renew(self, name, lease):
        held, end = self.see(), self.end(lease)
        is_right = name in held and (
            end is None or (held[name][1] is not None and end >= held[name][1])
        )
        try:
            self.live.renew(name, end)
        except tamis.errors.RefusedError:
            assert not is_right
        else:
            assert is_right
            held[name] = (held[name][0], end)

    @rule(some=st.lists(names, max_size=15))
    def remove(self, some):
        held = self.see()
        for name, result in zip(some, self.live.remove_many(some), strict=True):
            assert isinstance(result, Accepted) == (name in held)
            held.pop(name, None)

    @rule(rows=st.lists(st.tuples(names, st.none() | expressions), max_size=12))
    def change_many_at_once(self, rows):
        held = self.see()
        asked = [
            Unsubscribe(name)
            if text is None
            else (Replace if name in held else Subscribe)(name, self.example.texts[text])
            for name, text in rows
        ]
        for (name, text), request, result in zip(
            rows, asked, self.live._committer.submit(asked).result(), strict=True
        ):
            assert isinstance(result, Accepted) == (
                (name in held) != isinstance(request, Subscribe)
            )
            if isinstance(result, Accepted) and text is not None:
                held[name] = (text, held[name][1] if name in held else None)
            elif isinstance(result, Accepted):
                del held[name]

    @rule(name=names)
    def add_what_is_wrong(self, name):
        with pytest.raises(tamis.TamisError):
            self.live.add(name, "no_such_attribute = 1")

    @rule(seconds=st.integers(-40, 40))
    def move_clock(self, seconds):
        self.clock.move(seconds)

    # ── maintenance ────────────────────────────────────────────────────────────────────────

    @rule()
    def maintain(self):
        self.live._maintenance._next_expiry = 0.0
        step(self.live)

    @rule()
    def compact(self):
        self.live.compact()

    @rule()
    def reopen(self):
        self.live.close()
        self.live = self.open()

    @rule()
    def crash(self):
        crash(self.live)
        self.live = self.open()

    @rule()
    def keep_a_snapshot(self):
        self.snapshots = [*self.snapshots[-2:], (self.live.snapshot(), dict(self.see()))]

    # ── answers ────────────────────────────────────────────────────────────────────────────

    @rule(at=st.integers(0, 11))
    def match_one(self, at):
        held, event = self.see(), self.example.events[at]
        truth = self.truth(held, held)[at]
        wanted = [name for name, is_true in zip(held, truth, strict=True) if is_true]
        assert sorted(self.live.match(event)) == sorted(wanted)

    @rule()
    def match_in_every_way(self):
        self.expect(self.live.snapshot(), self.see())

    @rule()
    def look_at_snapshots(self):
        for index, held in self.snapshots:
            self.expect(index, held, ENGINES[:3])

    @rule()
    def publish(self):
        held = self.see()
        target = self.folder.with_name(f"{self.folder.name}-published")
        self.live.publish(target)
        with tamis.open(target) as index:
            over = set(index) - held.keys()
            assert set(held) <= set(index)
            lists = index.match_lists(self.example.events, at=self.moment).to_pylist()
            truth = self.truth(held, held)
            for row, found in zip(truth, lists, strict=True):
                wanted = [name for name, is_true in zip(held, row, strict=True) if is_true]
                assert sorted(found) == sorted(wanted), over

    @rule()
    def follow(self):
        assert self.follower.refresh() == self.live.change
        held = self.see()
        ids = set(self.follower)
        assert set(held) <= ids
        truth = self.truth(held, held)
        lists = self.follower.match_lists(self.example.events, at=self.moment).to_pylist()
        for row, found in zip(truth, lists, strict=True):
            wanted = [name for name, is_true in zip(held, row, strict=True) if is_true]
            assert sorted(found) == sorted(wanted)

    @invariant()
    def has_the_subscriptions_of_the_model(self):
        held = self.see()
        page = self.live.list(limit=100)
        assert {one.id for one in page.subscriptions} == set(held)
        assert self.live.change == self.live.store.last_change
        stored = self.live.store.state_at(self.live.change)
        assert sorted(self.live) == sorted(one.id for one in stored)


@pytest.mark.parametrize("missing", Missing)
def test_random_lives(missing):
    folders = []
    numbers = random.Random(str(missing))

    def make() -> LiveMachine:
        folders.append(new_folder())
        return LiveMachine(folders[-1], numbers.randrange(12), missing)

    try:
        with by_hand():
            run_state_machine_as_test(
                make,
                settings=settings(
                    max_examples=examples(15), stateful_step_count=40, phases=[Phase.generate]
                ),
            )
    finally:
        for folder in folders:
            shutil.rmtree(folder)
            shutil.rmtree(folder.with_name(f"{folder.name}-published"), ignore_errors=True)
