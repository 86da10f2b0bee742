"""Random lives of an archive, compared with a plain list."""

from __future__ import annotations

import random
import shutil
from datetime import timedelta

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tamis import durable
from tamis.archive import Archive, ArchiveSettings
from tests.archive.places import Model, draw_entry
from tests.effort import examples
from tests.subscriptions.places import new_folder

FOREVER = timedelta(days=40_000)  # moments of tests are soon after 1970


class Life(RuleBasedStateMachine):
    """An archive that is filled, closed, pruned, copied, killed and opened again."""

    def __init__(self) -> None:
        super().__init__()
        self.place = new_folder()
        self.n_copies = 0

    @initialize(
        seed=st.integers(0, 2**32),
        keep=st.sampled_from(["all", "matched", "none"]),
        segment_bytes=st.sampled_from([1, 2000, 1 << 20]),
    )
    def begin(self, seed, keep, segment_bytes) -> None:
        self.draw = random.Random(seed)
        self.settings = ArchiveSettings(
            keep, segment_bytes, segment_age=FOREVER, answers_for=FOREVER
        )
        self.model = Model(keep)
        self.archive = self.open()
        self.reader = Archive.open(self.folder, settings=self.settings, read_only=True)

    @property
    def folder(self):
        return self.place / f"archive{self.n_copies}"

    def open(self) -> Archive:
        return Archive.open(self.folder, settings=self.settings)

    @rule(n_entries=st.integers(1, 3), moment=st.integers(0, 1000))
    def append(self, n_entries, moment) -> None:
        pairs = [draw_entry(self.draw, moment) for _ in range(n_entries)]
        numbers = self.archive.append([entry for entry, _ in pairs])
        assert numbers == [self.model.append(*pair) for pair in pairs]

    @rule()
    def poll(self) -> None:
        self.model.expect_matches(self.archive, self.draw)

    @rule()
    def rotate(self) -> None:
        self.archive._maintenance.rotate()

    @rule()
    def seal(self) -> None:
        self.archive.seal()
        assert self.archive.stats()["waiting_segments"] == 0

    @rule()
    def maintain(self) -> None:
        self.archive.maintain()

    @rule(share=st.floats(0, 1.2))
    def prune(self, share) -> None:
        before = int(share * len(self.model.events)) + 1
        n_removed = self.archive.prune(before=before)
        first = self.archive.first_event
        assert first - n_removed == self.model.first
        assert first <= max(before, self.model.first)
        self.model.first = first

    @rule()
    def reopen(self) -> None:
        self.archive.close()
        self.archive = self.open()

    @rule()
    def crash(self) -> None:
        durable.unlock(self.archive._lock)
        self.archive = self.open()

    @rule()
    def copy(self) -> None:
        """Go on with a copy; the original changes no more."""
        old, last = self.archive, self.archive.last_event
        self.n_copies += 1
        assert old.backup(self.folder) == last
        old.append([draw_entry(self.draw, 0)[0]])
        old.seal()
        old.prune(before=last)
        old.close()
        self.reader.close()
        self.archive = self.open()
        self.archive.renew_epoch()
        self.reader = Archive.open(self.folder, settings=self.settings, read_only=True)

    @rule()
    def read(self) -> None:
        self.model.expect(self.archive, self.draw)

    @rule()
    def follow(self) -> None:
        self.model.expect(self.reader, self.draw)
        assert self.reader.epoch == self.archive.epoch

    @invariant()
    def has_no_leftovers(self) -> None:
        assert not list(self.place.rglob(".tamis-*"))

    def teardown(self) -> None:
        if hasattr(self, "archive"):
            self.model.expect(self.archive, self.draw)
            self.archive.seal()
            self.model.expect(self.archive, self.draw)
            self.archive.close()
        shutil.rmtree(self.place)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=examples(30), stateful_step_count=25)
