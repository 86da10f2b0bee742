"""A stream and a server that are killed: `python -m tests.broker.stream_victim PLACE RUNS SEED`.

One process writes batches as Spark does: it notes which batch is done after it was written, and
writes a batch again that was not noted. Another one takes them. In each run one of them is killed,
or both. Afterwards every mailbox has every match of every batch once, in order.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

from tamis.broker import stream_entries, taking
from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import MatchServer, MatchServerSettings, StreamSettings
from tamis.errors import StoreInUseError
from tamis.versions.log_position import LogPosition
from tamis.versions.storage import Storage
from tamis.versions.stream_output import BatchRecord, list_batches
from tests.broker.stream_writer import StreamWriter
from tests.waiting import HANG_SECONDS

NAMES = [f"s{n}" for n in range(5)]
taking.POLL_SECONDS = 0.001
stream_entries.MOST_MATCHES = 7  # several entries for a batch


def rows_of(batch: int) -> list:
    """The rows of a batch: the same whenever it runs."""
    draw = random.Random(f"batch {batch}")
    found = []
    for n in range(draw.randint(0, 12)):
        event = 100 * batch + n
        matched = [name for name in NAMES if draw.random() < 0.4]
        found += [(event, name, f'{{"x": {event}}}') for name in matched]
    return found


def open_server(place: Path) -> MatchServer:
    settings = MatchServerSettings(stream=StreamSettings(str(place / "matches")))
    for _ in range(100 * HANG_SECONDS):
        with suppress(StoreInUseError):  # until the system has released the locks of the dead
            return MatchServer.open(place / "server", settings)
        time.sleep(0.01)
    raise AssertionError("a dead server keeps its locks")


def write_until_killed(place: Path, position: LogPosition) -> None:
    writer = StreamWriter(place / "matches")
    writer.position = position
    commits = Storage(place / "commits")
    batch = 1 + max((int(own.name) for own in commits.list() if own.name.isdigit()), default=-1)
    while True:
        found = rows_of(batch)
        random.shuffle(found)
        writer.write(batch, found, n_files=random.randint(1, 3))
        commits.write(str(batch), b"done")
        batch += 1


def serve_until_killed(place: Path) -> None:
    with open_server(place):
        time.sleep(HANG_SECONDS)


def fork(run, *arguments) -> int:
    child = os.fork()
    if not child:
        try:
            run(*arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return child


def kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)


def check(place: Path) -> int:
    """Take what is left, and compare all mailboxes with the batches; returns their number."""
    storage = Storage(place / "matches")
    n_batches = sum(1 for own in list_batches(storage) if BatchRecord.read(storage, own))
    with open_server(place) as server:
        for _ in range(100 * HANG_SECONDS):
            if server.taker.describe()["batch"] == n_batches - 1:
                break
            time.sleep(0.01)
        for name in NAMES:
            expected = [
                text for batch in range(n_batches) for _, own, text in rows_of(batch) if own == name
            ]
            mailbox = Mailbox.of_subscription(server.live.get(name).created)
            page = server.mailboxes.read(mailbox, after=0, limit=1_000_000)
            assert page.is_last
            assert [own.content.decode() for own in page.matches] == expected, name
        assert not any(server.taker.counts.undelivered.values())
        assert not server.taker.counts.n_lost_batches
    return n_batches


def main(place: Path, n_runs: int, seed: int) -> None:
    draw = random.Random(seed)
    with open_server(place) as server:
        for name in NAMES:
            server.live.add(name, "x >= 0")
        position = LogPosition(server.live.store.epoch, server.live.change)
    n_batches = 0
    children: dict[str, int] = {}
    for run in range(n_runs):
        for kind in {"stream", "server"} - children.keys():
            arguments = (place, position) if kind == "stream" else (place,)
            work = write_until_killed if kind == "stream" else serve_until_killed
            children[kind] = fork(work, *arguments)
        time.sleep(draw.random() * 0.5)
        for kind in draw.choice([["stream"], ["server"], ["stream", "server"]]):
            kill(children.pop(kind))
        if run % 10 == 9 or run == n_runs - 1:
            for kind in list(children):
                kill(children.pop(kind))
            n_batches = check(place)
    print(n_runs, "runs", n_batches, "batches")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
