"""Readers that are killed: `python -m tests.feeds.victim FOLDER RUNS SEED`.

Each run forks a process that reads a feed whose documents show more and more items. It is killed at
a random step of storing and publishing, and started again days later, when idempotency keys are
forgotten. In the end, every item that the feed has shown is published exactly once.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from tamis.broker.match_server import MatchServer
from tamis.broker.publishing import Publisher
from tamis.broker.rights import LOCAL
from tamis.broker.source_fetches import SourceFetches
from tamis.broker.sources import NewSource
from tamis.feeds.fetching import Answer
from tamis.feeds.outbox import Outbox
from tamis.feeds.worker import FeedWorker
from tests.feeds.conftest import OPTIONS, OwnProcess
from tests.feeds.places import item, rss

N_FETCHES = 4  # of a run that is not killed before
# Where a process is killed: a method of a class, before or after the nth call of it.
STEPS = [
    (SourceFetches, "record"),
    (SourceFetches, "settle"),
    (SourceFetches, "find_items"),
    (Outbox, "publish"),
    (Outbox, "recover"),
    (Publisher, "publish"),
    (Publisher, "_write"),
]


class GrowingFeed:
    """A fetcher whose documents have more items at each fetch; their number is in a file."""

    def __init__(self, file: Path, draw: random.Random) -> None:
        self._file = file
        self._draw = draw

    async def fetch(self, url: str, *_: object, **__: object) -> Answer:
        n_items = count_shown(self._file) + self._draw.randint(0, 3)
        self._file.write_text(str(n_items))
        return Answer(200, {}, make_document(n_items), url, url)

    async def close(self) -> None:
        pass


def count_shown(file: Path) -> int:
    return int(file.read_text()) if file.exists() else 0


def make_document(n_items: int) -> bytes:
    # Without dates: the moment of the fetch is used, which is another after a kill.
    return rss(*(item(f"t{n}", guid=str(n)) for n in range(n_items, 0, -1)))


def read(folder: Path, moment: datetime, draw: random.Random, n_fetches: int) -> None:
    async def main(server: MatchServer) -> None:
        feed = GrowingFeed(folder / "shown", draw)
        worker = FeedWorker(server, OPTIONS, fetcher=feed, parser=OwnProcess(), polls=False)
        try:
            for _ in range(n_fetches):
                await worker.fetch(server.broker.sources.list().items[0].number)
        finally:
            await worker.close()

    with MatchServer.open(folder / "server", clock=lambda: moment) as server:
        asyncio.run(main(server))


def die_at(step: tuple[type, str], n_calls: int, is_before: bool) -> None:
    """Kill this process before or after the nth call of a method."""
    owner, name = step
    own, left = getattr(owner, name), [n_calls]

    def wrapped(*args, **options):
        left[0] -= 1
        if is_before and not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        result = own(*args, **options)
        if not is_before and not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, wrapped)


def run_and_kill(folder: Path, moment: datetime, draw: random.Random) -> bool:
    """Read until the process is killed; returns whether it was."""
    step, n_calls, is_before = draw.choice(STEPS), draw.randint(1, 4), draw.random() < 0.5
    seed = draw.random()
    child = os.fork()
    if not child:
        try:
            die_at(step, n_calls, is_before)
            read(folder, moment, random.Random(seed), N_FETCHES)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def check(folder: Path, moment: datetime, draw: random.Random) -> int:
    """Compare what was published with what was shown; returns the number of items."""
    read(folder, moment, draw, 1)
    with MatchServer.open(folder / "server", clock=lambda: moment) as server:
        page = server.archive.read_events(after=0, limit=1_000_000)
        counts = Counter(orjson.loads(event.event)["id"] for event in page.events)
        assert server.broker.source_fetches.list_outbox() == []
        (source,) = server.broker.sources.list().items
    n_items = count_shown(folder / "shown")
    assert counts == {str(n): 1 for n in range(1, n_items + 1)}, counts
    assert source.n_items == n_items
    return n_items


def main(folder: Path, n_runs: int, seed: int) -> None:
    draw = random.Random(seed)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    with MatchServer.open(folder / "server", clock=lambda: moment) as server:
        server.broker.sources.create(LOCAL, NewSource("https://example.com/feed"))
    n_killed = 0
    for _ in range(n_runs):
        moment += timedelta(days=2)
        n_killed += run_and_kill(folder, moment, draw)
    n_items = check(folder, moment + timedelta(days=2), draw)
    print(n_runs, "runs", n_killed, "killed", n_items, "items")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
