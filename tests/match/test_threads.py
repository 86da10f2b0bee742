"""One index, many threads: each gets its own answer."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from tamis.match.build import build
from tamis.match.index import Index
from tests.match.engines import ENGINES, ONE_BY_ONE, reopened
from tests.match.examples import RANDOM_EVENTS, Example, draw_example, reference, spread

pytestmark = RANDOM_EVENTS

N_THREADS = 8
N_DRAWN = 60


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads take turns as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def example(seed: int) -> Example:
    return draw_example(seed, n_subscriptions=150, n_events=N_DRAWN, n_attributes=12)


@pytest.fixture(scope="module", params=["as-built", "opened"])
def index(request: pytest.FixtureRequest, example: Example) -> Iterator[Index]:
    built = build(example.texts, example.schema)
    if request.param == "as-built":
        yield built
    else:
        with reopened(built) as opened:
            yield opened


def run_together(task, arguments) -> list:
    """The task with each argument, all threads starting at once."""
    barrier = Barrier(len(arguments))

    def start(argument):
        barrier.wait()
        return task(argument)

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(start, arguments))


# Threads share the filters of warnings: an engine cannot set its own here.
@pytest.mark.filterwarnings("ignore:no subscription has a weight:tamis.TamisWarning")
def test_all_engines_at_once(index, example, impatient):
    """Eight threads ask different questions about different batches, single events among them."""
    truth = reference(example.conditions.values(), example.events, index.contents.missing)

    def ask(thread: int) -> list[str]:
        rng = random.Random(thread)
        wrong = []
        for _ in range(6):
            engine = rng.choice(ENGINES)
            rows = spread(rng, N_DRAWN, rng.choice((1, 20, 64, 65, 513, 600)))[:600]
            rows = rows[:30] if engine.name in ONE_BY_ONE else rows
            got = engine.ask(index, [example.events[row] for row in rows])
            if not np.array_equal(got, engine.expected(truth[rows])):
                wrong.append(f"thread {thread}, {engine.name}, {len(rows)} events")
        return wrong

    wrong = [text for found in run_together(ask, range(N_THREADS)) for text in found]
    assert wrong == [], f"seed {example.seed}"


def test_single_events_at_once(index, example, impatient):
    alone = [index.match(event) for event in example.events]

    def ask(thread: int) -> bool:
        rows = random.Random(thread).sample(range(N_DRAWN), N_DRAWN)
        return all(index.match(example.events[row]) == alone[row] for row in rows)

    assert all(run_together(ask, range(N_THREADS)))


def test_one_batch_for_all(index, example, impatient):
    """A batch encoded once may be asked about by all threads."""
    batch = index.encode(example.events * 20)
    alone = index.match_batch(batch)
    answers = run_together(
        lambda n_threads: index.match_batch(batch, threads=n_threads), [1, 2, 3, 4]
    )
    assert all(answer.equals(alone) for answer in answers)


def test_streams_side_by_side(index, example):
    """Chunks of several streams taken in turns belong to their own stream."""
    events = [example.events * 20, example.events[::-1] * 25, example.events[:7] * 100]
    streams = [index.match_chunks(own, threads=2) for own in events]
    taken: list[list] = [[] for _ in streams]
    while any(streams):
        for at, stream in enumerate(streams):
            chunk = next(stream, None) if stream else None
            if chunk is None:
                streams[at] = None
            else:
                taken[at].extend(chunk.to_pylist())
    for own, rows in zip(events, taken, strict=True):
        assert rows == index.match_batch(own).to_pylist()


def test_a_stream_left_early(index, example):
    stream = index.match_chunks(example.events * 40, threads=2)
    next(stream)
    stream.close()
    assert index.match_batch(example.events).num_rows == int(
        index.count_by_event(example.events).sum()
    )


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_any_number_of_threads(index, example, threads):
    events = example.events * 30
    one = index.match_batch(events)
    assert index.match_batch(events, threads=threads).equals(one)
    assert np.array_equal(
        index.count_by_subscription(events, threads=threads), index.count_by_subscription(events)
    )
    assert np.array_equal(
        index.count_by_event(events, threads=threads), index.count_by_event(events)
    )
