"""Entries for tests, and a plain list that says what an archive must answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from tamis.archive import Answer, ArrowEvents, Entry, JsonEvents, Match
from tamis.archive.model import Keep

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def json_events(texts: Sequence[bytes], gap: bytes = b"\n") -> JsonEvents:
    """Events as lines."""
    lengths = np.array([len(text) for text in texts], np.int64)
    ends = np.cumsum(lengths + len(gap)) - len(gap)
    return JsonEvents(gap.join(texts), ends - lengths, ends)


def make_entry(
    texts: Sequence[bytes],
    matches: Sequence[Sequence[int]],
    *,
    moment: int = 0,
    change: int = 1,
    answer: bytes | None = None,
    gap: bytes = b"\n",
) -> Entry:
    """An entry of JSON texts; `answer` is also the key's first bytes."""
    return with_events(json_events(texts, gap), matches, moment, change, answer)


def with_events(events, matches, moment: int, change: int, answer: bytes | None) -> Entry:
    starts = np.cumsum([0, *map(len, matches)])
    flat = np.array([one for own in matches for one in own], np.int64)
    make = None
    if answer is not None:

        def make(first: int) -> Answer:
            return Answer(key_of(answer), b"r" * 32, b"%s from %d" % (answer, first))

    return Entry(events, moment, change, starts, flat, make)


def key_of(name: bytes) -> bytes:
    return name.ljust(32, b".")


class Model:
    """The same as an archive, in lists."""

    def __init__(self, keep: Keep = "all") -> None:
        self.keep = keep
        self.events: list[tuple[datetime, int, bytes | None, tuple[int, ...]]] = []
        self.answers: dict[bytes, bytes] = {}
        self.moment = 0
        self.first = 1

    def append(self, entry: Entry, texts: Sequence[bytes]) -> int:
        first = len(self.events) + 1
        self.moment = max(self.moment, entry.moment)
        moment = EPOCH + timedelta(microseconds=self.moment)
        for at, text in enumerate(texts):
            own = entry.matches[entry.match_starts[at] : entry.match_starts[at + 1]]
            is_kept = self.keep == "all" or (self.keep == "matched" and len(own) > 0)
            row = (moment, entry.change, text if is_kept else None, tuple(sorted(own.tolist())))
            self.events.append(row)
        if entry.make_answer is not None:
            answer = entry.make_answer(first)
            self.answers[answer.key] = answer.answer
        return first

    def find_matches(self, wanted: Sequence[int], after: int, up_to: int | None) -> list[Match]:
        end = len(self.events) if up_to is None else min(up_to, len(self.events))
        found = []
        for number in range(max(after + 1, self.first), end + 1):
            moment, change, _, own = self.events[number - 1]
            if both := tuple(sorted(set(own) & set(wanted))):
                found.append(Match(number, moment, change, both))
        return found

    def expect(self, archive, draw: random.Random) -> None:
        """Everything that can be read is what the lists have."""
        last = len(self.events)
        assert (archive.first_event, archive.last_event) == (self.first, last)
        self.expect_events(archive, draw)
        self.expect_matches(archive, draw)
        for key, answer in self.answers.items():
            assert archive.find_answer(key).answer == answer
        assert archive.find_answer(b"?" * 32) is None

    def expect_events(self, archive, draw: random.Random) -> None:
        last = len(self.events)
        after, found, missed = 0, [], None
        while after < last:
            page = archive.read_events(after=after, limit=draw.randint(1, 9))
            missed = page.missed or missed
            assert page.after > after
            after, found = page.after, found + page.events
        held = range(self.first, last + 1)
        assert [tuple(own) for own in found] == [(n, *self.events[n - 1][:3]) for n in held]
        assert missed == (range(1, self.first) if self.first > 1 else None)
        kept = {n: self.events[n - 1][2] for n in held if self.events[n - 1][2] is not None}
        assert archive.get_events([*range(last + 2), *range(3)]) == kept
        begin, end = draw.randint(0, last), draw.randint(0, last)
        table = pa.Table.from_batches(archive.scan(after=begin, up_to=end), SCHEMA)
        wanted = [n for n in kept if begin < n <= end]
        assert table["number"].to_pylist() == wanted
        assert table["event"].cast(pa.binary()).to_pylist() == [kept[n] for n in wanted]
        assert table["moment"].to_pylist() == [self.events[n - 1][0] for n in wanted]
        assert table["change"].to_pylist() == [self.events[n - 1][1] for n in wanted]
        for number in {draw.randint(1, last) for _ in range(5) if last}:
            moment = self.events[number - 1][0]
            same = [n for n in held if self.events[n - 1][0] <= moment]
            assert archive.event_at(moment) == (same[-1] if same else self.first - 1)

    def expect_matches(self, archive, draw: random.Random) -> None:
        last = len(self.events)
        known = sorted({one for *_, own in self.events for one in own})
        for _ in range(4):
            wanted = [*draw.sample(known, min(len(known), draw.choice([1, 2, 50]))), 10**6]
            start = after = draw.randint(0, last)
            up_to = draw.choice([None, draw.randint(0, last + 1)])
            limit, found, missed = draw.choice([1, 2, 100]), [], None
            end = last if up_to is None else min(up_to, last)
            while after < end:
                page = archive.read_matches(wanted, after=after, limit=limit, up_to=up_to)
                assert after < page.after <= end
                assert len(page.matches) <= limit
                after, found = page.after, found + page.matches
                missed = page.missed or missed
            assert found == self.find_matches(wanted, start, up_to)
            assert missed == (range(start + 1, min(self.first, end + 1)) or None)
            counts = archive.count_matches(wanted, after=start, up_to=up_to)
            expected = dict.fromkeys(wanted, 0)
            for match in found:
                for one in match.subscriptions:
                    expected[one] += 1
            assert counts == expected


SCHEMA = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("moment", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("change", pa.int64(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
    ]
)


def draw_entry(draw: random.Random, moment: int) -> tuple[Entry, list[bytes]]:
    """A random entry, and the texts of its events."""
    n_events = draw.choice([0, 1, 1, 2, 7, 30])
    change = draw.randint(1, 99)
    answer = b"%d" % draw.getrandbits(60) if draw.random() < 0.3 or not n_events else None
    wide = 1 << draw.choice([3, 8, 8, 20, 40])
    matches = [
        draw.sample(range(1, wide), min(wide - 1, draw.choice([0, 0, 1, 3, 20])))
        for _ in range(n_events)
    ]
    numbers = [draw.randrange(10**6) for _ in range(n_events)]
    texts = [b'{"a":%d}' % number for number in numbers]
    if draw.random() < 0.3:
        batch = pa.record_batch({"a": pa.array(numbers, pa.int64())})
        return with_events(ArrowEvents(batch), matches, moment, change, answer), texts
    gap = draw.choice([b"", b"\n", b" " * 40])
    return make_entry(texts, matches, moment=moment, change=change, answer=answer, gap=gap), texts
