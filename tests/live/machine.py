"""What happens to a live index in a random life, and a dictionary that says what must come of it.

Each step draws a rule by its weight, and its arguments; after each step the index must have the
subscriptions of the dictionary, and match an event as the reference evaluator does.
"""

from __future__ import annotations

import json
import shutil
from collections import deque
from collections.abc import Callable
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

import tamis
from tamis.live import LiveIndex, follow, live_set
from tamis.logic.evaluate import Missing
from tamis.match.index import Index
from tamis.subscriptions import Accepted, Replace, Subscribe, Unsubscribe
from tamis.versions.store import IndexStore
from tests.live.places import crash, step
from tests.live.worlds import World
from tests.match.engines import ENGINES
from tests.subscriptions.places import Clock

NAMES = [f"n{at}" for at in range(24)]
TAGS = ("red", "green", "blue")
N_SHOWN = 25  # steps that a failure names


class Own(NamedTuple):
    """What the model knows of a subscription."""

    text: int  # its number in the world
    tag: str
    start: datetime | None = None
    end: datetime | None = None

    def is_over(self, moment: datetime) -> bool:
        return self.end is not None and self.end <= moment

    def is_valid(self, moment: datetime) -> bool:
        return not self.is_over(moment) and (self.start is None or self.start <= moment)


Held = dict[str, Own]


def rule(weight: int) -> Callable:
    """Marks a method as a step, which is drawn in proportion to its weight."""

    def mark(method: Callable) -> Callable:
        method.weight = weight
        return method

    return mark


class LiveMachine:
    """One live index, its model, a follower, and snapshots of earlier moments."""

    def __init__(self, folder: Path, draw: Random, world: World, missing: Missing) -> None:
        self.folder, self.draw, self.world, self.missing = folder, draw, world, missing
        self.clock = Clock()
        self.held: Held = {}
        self.live = self.open()
        self.moment = self.live.store.moment  # the latest that the index has seen
        self.follower = self.follow()
        self.snapshots: deque[tuple[Index, Held, datetime]] = deque(maxlen=3)
        self.past: deque[tuple[int, Held, datetime]] = deque(maxlen=20)  # after some changes
        self.change = 0  # the last one
        self.steps: deque[str] = deque(maxlen=N_SHOWN)

    def open(self, folder: Path | None = None, **options: Any) -> LiveIndex:
        return LiveIndex.open(
            folder or self.folder / "live",
            schema=self.world.schema,
            missing=self.missing,
            operators=self.world.toys.registry,
            clock=self.clock,
            **options,
        )

    def follow(self) -> Index:
        return follow(self.folder / "live", operators=self.world.toys.registry, is_started=False)

    def run(self, n_steps: int) -> None:
        """Live for some steps."""
        named = [getattr(type(self), name) for name in vars(LiveMachine)]
        rules = [own for own in named if hasattr(own, "weight")]
        weights = [own.weight for own in rules]
        for chosen in self.draw.choices(rules, weights, k=n_steps):
            self.steps.append(chosen.__name__)
            chosen(self)
            self.check()

    def check(self) -> None:
        """The index has what the model has, at most with subscriptions that are over."""
        ids = list(self.live)
        assert len(ids) == len(set(ids))
        assert set(self.see()) <= set(ids)
        assert self.live.store.moment == self.moment
        if self.live.change != self.change and self.draw.random() < 0.1:
            self.past.append((self.live.change, dict(self.held), self.moment))
        self.change = self.live.change
        at = self.draw.randrange(len(self.world.events))
        found = self.live.match(self.world.events[at])
        assert sorted(found) == self.wanted(self.held, at, self.moment)

    def close(self) -> None:
        self.follower.close()
        self.live.close()

    # ── the model ──────────────────────────────────────────────────────────────────────────

    def see(self) -> Held:
        """The subscriptions that are not over."""
        self.moment = max(self.moment, self.clock.now)
        over = [name for name, own in self.held.items() if own.is_over(self.moment)]
        for name in over:
            del self.held[name]
        return self.held

    def wanted(self, held: Held, event: int, moment: datetime) -> list[str]:
        """The ids that match an event, sorted."""
        truth = self.world.truth[event]
        return sorted(
            name for name, own in held.items() if truth[own.text] and own.is_valid(moment)
        )

    def expect_lists(self, index: Index, held: Held, moment: datetime, **options) -> None:
        """The index finds what the reference finds."""
        lists = index.match_lists(self.world.events, **options).to_pylist()
        for event, found in enumerate(lists):
            assert sorted(found) == self.wanted(held, event, moment)

    def expect_all(self, index: Index, held: Held, moment: datetime, engines=ENGINES) -> None:
        """The index answers as the reference in every way."""
        ids = list(index)
        valid = [name in held and held[name].is_valid(moment) for name in ids]
        is_timeless = all(own.start is None for own in held.values())
        texts = [held[name].text if name in held else 0 for name in ids]
        truth = self.world.truth[:, texts] & np.array(valid, dtype=np.bool_)
        for engine in engines:
            if engine.name == "wide" and not (all(valid) and is_timeless):
                continue  # it has another clock
            got = engine.ask(index, self.world.events)
            assert np.array_equal(got, engine.expected(truth)), engine.name

    # ── arguments ──────────────────────────────────────────────────────────────────────────

    def draw_name(self) -> str:
        return self.draw.choice(NAMES)

    def draw_names(self, most: int) -> list[str]:
        return self.draw.choices(NAMES, k=self.draw.randint(0, most))

    def draw_text(self) -> int:
        return self.draw.randrange(len(self.world.texts))

    def draw_held(self) -> str:
        """An id, most often one that is there."""
        held = list(self.see())
        return self.draw.choice(held) if held and self.draw.random() < 0.8 else self.draw_name()

    def after(self, least: int, most: int) -> datetime:
        self.see()
        return self.moment + timedelta(seconds=self.draw.randint(least, most))

    def say(self, text: int) -> str:
        return self.world.texts[text]

    # ── changes ────────────────────────────────────────────────────────────────────────────

    @rule(240)
    def add(self) -> None:
        name, text, tag = self.draw_name(), self.draw_text(), self.draw.choice(TAGS)
        start = self.after(-5, 20) if self.draw.random() < 0.2 else None
        end = self.after(-5, 60) if self.draw.random() < 0.5 else None
        own = Own(text, tag, start, end)
        is_right = (
            name not in self.held
            and not own.is_over(self.moment)
            and not (start and end and start >= end)
        )
        try:
            self.live.add(name, self.say(text), tags=[tag], valid_from=start, valid_until=end)
        except tamis.errors.RefusedError:
            assert not is_right
        else:
            assert is_right
            self.held[name] = own

    @rule(40)
    def add_many(self) -> None:
        held = self.see()
        rows = [(name, self.draw_text()) for name in self.draw_names(12)]
        results = self.live.add_many([(name, self.say(text)) for name, text in rows])
        for (name, text), result in zip(rows, results, strict=True):
            assert isinstance(result, Accepted) == (name not in held)
            held.setdefault(name, Own(text, ""))

    @rule(160)
    def replace(self) -> None:
        name, text = self.draw_held(), self.draw_text()
        try:
            self.live.replace(name, self.say(text))
        except tamis.errors.RefusedError:
            assert name not in self.held
        else:
            self.held[name] = self.held[name]._replace(text=text)

    @rule(60)
    def retag(self) -> None:
        """The expression stays."""
        name, tag = self.draw_held(), self.draw.choice(TAGS)
        try:
            self.live.replace(name, tags=[tag])
        except tamis.errors.RefusedError:
            assert name not in self.held
        else:
            self.held[name] = self.held[name]._replace(tag=tag)

    @rule(160)
    def renew(self) -> None:
        name = self.draw_held()
        end = None if self.draw.random() < 0.2 else self.after(1, 90)
        known = self.held.get(name)
        is_right = known is not None and (
            end is None or (known.end is not None and end >= known.end)
        )
        try:
            self.live.renew(name, end)
        except tamis.errors.RefusedError:
            assert not is_right
        else:
            assert is_right
            self.held[name] = self.held[name]._replace(end=end)

    @rule(160)
    def remove(self) -> None:
        name = self.draw_held()
        try:
            self.live.remove(name)
        except tamis.errors.RefusedError:
            assert name not in self.held
        else:
            del self.held[name]

    @rule(20)
    def remove_many(self) -> None:
        held, some = self.see(), self.draw_names(8)
        for name, result in zip(some, self.live.remove_many(some), strict=True):
            assert isinstance(result, Accepted) == (name in held)
            held.pop(name, None)

    @rule(50)
    def change_many_at_once(self) -> None:
        held = self.see()
        rows = [
            (name, None if self.draw.random() < 0.3 else self.draw_text())
            for name in self.draw_names(8)
        ]
        asked = [
            Unsubscribe(name)
            if text is None
            else (Replace if name in held else Subscribe)(name, self.say(text))
            for name, text in rows
        ]
        for (name, text), request, result in zip(rows, asked, self.live.apply(asked), strict=True):
            is_new = isinstance(request, Subscribe)
            assert isinstance(result, Accepted) == ((name in held) != is_new)
            if not isinstance(result, Accepted):
                continue
            if text is None:
                del held[name]
            else:
                held[name] = held[name]._replace(text=text) if name in held else Own(text, "")

    @rule(40)
    def add_what_is_wrong(self) -> None:
        wrong = self.draw.choice(("no_such_attribute = 1", "no_such_operator()", "a = ", "a = 'x'"))
        with pytest.raises(tamis.TamisError):
            self.live.add(self.draw_name(), wrong)

    @rule(140)
    def move_clock(self) -> None:
        """Also back, which resurrects nothing."""
        self.clock.move(self.draw.randint(-20, 20))

    # ── maintenance ────────────────────────────────────────────────────────────────────────

    @rule(60)
    def maintain(self) -> None:
        self.live._maintenance._next_expiry = 0.0
        step(self.live)

    @rule(10)
    def compact(self) -> None:
        self.live.compact()
        assert len(self.live.view.engines) == 1

    @rule(10)
    def reopen(self) -> None:
        """If the clock was set back, no lease begins again."""
        self.live.close()
        self.live = self.open()
        self.moment = self.live.store.moment

    @rule(10)
    def crash(self) -> None:
        """If the clock was set back, it goes on there, but no lease begins again."""
        crash(self.live)
        self.live = self.open()
        self.moment = self.live.store.moment

    @rule(4)
    def prune(self) -> None:
        """Then saved versions may be too old, and the follower too far behind: it begins again."""
        before = self.draw.randint(0, self.live.change)
        self.live.store.prune(before)
        # The moment of the first change that is left may be pruned, not those after it.
        self.past = deque((own for own in self.past if own[0] > before), maxlen=self.past.maxlen)

    @rule(6)
    def copy_in_flight(self) -> None:
        """What a crash would leave between the steps of a merge and of a save."""
        held, change = dict(self.see()), self.live.change
        with crashing_copies(self.folder) as copies:
            self.live.compact()
        for copy in copies:
            with self.open(copy) as left:
                assert left.change == change
                self.expect_lists(left, held, self.moment, at=self.moment)
                left.compact()
                self.expect_lists(left, held, self.moment, at=self.moment)
            shutil.rmtree(copy)

    @rule(30)
    def keep_a_snapshot(self) -> None:
        held = dict(self.see())
        self.snapshots.append((self.live.snapshot(), held, self.moment))

    # ── answers ────────────────────────────────────────────────────────────────────────────

    @rule(60)
    def match_many(self) -> None:
        self.expect_lists(self.live, self.see(), self.moment)

    @rule(30)
    def match_tagged(self) -> None:
        tags = self.draw.sample(TAGS, self.draw.randint(1, 2))
        held = {name: own for name, own in self.see().items() if own.tag in tags}
        self.expect_lists(self.live, held, self.moment, tagged=tags)

    @rule(30)
    def match_later(self) -> None:
        """What will be valid then, if nothing changes."""
        moment = self.after(0, 60)
        self.expect_lists(self.live, self.see(), moment, at=moment)

    @rule(15)
    def match_in_every_way(self) -> None:
        held = self.see()
        self.expect_all(self.live.snapshot(), held, self.moment)

    @rule(15)
    def match_with_bindings(self) -> None:
        """The values of variables are those of the first substitution."""
        held, events = self.see(), self.world.events
        wanted = [
            {name: self.world.bindings[at][held[name].text] for name in found}
            for at, found in enumerate(
                self.wanted(held, at, self.moment) for at in range(len(events))
            )
        ]
        at = self.draw.randrange(len(events))
        assert self.live.match_bindings(events[at]) == wanted[at]
        batch: list[dict] = [{} for _ in events]
        for row in self.live.match_batch(events, bindings=True).to_pylist():
            batch[row["event_row"]][row["subscription_id"]] = json.loads(row["bindings"] or "{}")
        assert batch == wanted

    @rule(15)
    def explain(self) -> None:
        name, at = self.draw_held(), self.draw.randrange(len(self.world.events))
        if name not in self.held:
            assert (
                name not in self.live or not self.live.explain(name, self.world.events[at]).matches
            )
            return
        explanation = self.live.explain(name, self.world.events[at])
        assert explanation.matches == (name in self.wanted(self.held, at, self.moment))
        assert (explanation.truth is True) == self.world.truth[at, self.held[name].text]

    @rule(15)
    def look_at_snapshots(self) -> None:
        for index, held, moment in self.snapshots:
            self.expect_all(index, held, moment, ENGINES[:3])

    @rule(6)
    def look_back(self) -> None:
        if self.past:
            change, held, moment = self.draw.choice(self.past)
            self.expect_lists(self.live.as_of(change), held, moment)

    @rule(6)
    def publish(self) -> None:
        held, target = self.see(), self.folder / "published"
        self.live.publish(target)
        with tamis.open(target, operators=self.world.toys.registry) as index:
            assert set(held) <= set(index)
            self.expect_lists(index, held, self.moment, at=self.moment)

    @rule(30)
    def catch_up(self) -> None:
        assert self.follower.refresh() == self.live.change
        assert sorted(self.follower) == sorted(self.live)
        self.expect_lists(self.follower, self.see(), self.moment, at=self.moment)

    @rule(6)
    def follow_again(self) -> None:
        self.follower.close()
        self.follower = self.follow()
        assert sorted(self.follower) == sorted(self.live)

    @rule(40)
    def look_at_the_store(self) -> None:
        assert self.live.change == self.live.store.last_change
        held = self.see()
        page = self.live.list(limit=100)
        assert {one.id for one in page.subscriptions} == set(held)
        for one in page.subscriptions:
            own = held[one.id]
            assert (one.expression, one.valid_from, one.valid_until) == (
                self.say(own.text),
                own.start,
                own.end,
            )
        stored = self.live.store.state_at(self.live.change)
        assert sorted(self.live) == sorted(one.id for one in stored)


@contextmanager
def crashing_copies(folder: Path):
    """Copies of the live folder from before a merged part is shown, and before a version that is
    written becomes the newest.
    """
    copies: list[Path] = []

    def copying(act: Callable) -> Callable:
        def copy_and_act(*args, **options):
            copies.append(folder / f"copy{len(copies)}")
            shutil.copytree(folder / "live", copies[-1])
            return act(*args, **options)

        return copy_and_act

    with (
        patch.object(live_set.LiveSet, "swap", copying(live_set.LiveSet.swap)),
        patch.object(IndexStore, "publish", copying(IndexStore.publish)),
    ):
        yield copies
