"""Servers that are killed while people subscribe with a history and others publish.

`python -m tests.broker.history_victim FOLDER RUNS SEED`: each run forks a server with threads that
publish and threads that subscribe; what was acknowledged is reported. The process is killed. Then
the mailbox of every subscription that exists must have each archived event that it matches since
the beginning of its history, once and in order. Each check reads everything, so a new server
is made after a few kills: the last of many runs takes no longer than the first ones.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Final

from tamis.broker.match_server import MatchServer
from tests.broker.history_places import (
    WORDS,
    draw_title,
    make_publication,
    read_all,
    subscribe,
)

LIVES: Final = 4  # of a server


def publish(server: MatchServer, draw: random.Random) -> None:
    while True:
        titles = [draw_title(draw) for _ in range(draw.choice([1, 1, 5]))]
        server.publisher.publish(make_publication(titles)).result()


def make_subscriptions(server: MatchServer, draw: random.Random, name: str, pipe: int) -> None:
    at = 0
    while True:
        at += 1
        since = draw.choice([0, server.archive.last_event // 2])
        word = draw.choice(WORDS)
        number = subscribe(server, f"{name}-{at}-{word}-{since}", word, since)
        os.write(pipe, f"{json.dumps(number)}\n".encode())


def run_victim(folder: Path, seed: int, pipe: int) -> None:
    server = MatchServer.open(folder)
    threads = [Thread(target=publish, args=(server, random.Random(seed + at))) for at in range(3)]
    for at in range(3):
        draw = random.Random(seed + 100 + at)
        own = (server, draw, f"{seed}-{at}", pipe)
        threads.append(Thread(target=make_subscriptions, args=own))
    for thread in threads:
        thread.start()
    os.write(pipe, b"0\n")
    for thread in threads:
        thread.join()


def check(folder: Path, acknowledged: set[int], draw: random.Random) -> int:
    """The number of subscriptions; all mailboxes are as they must be."""
    with MatchServer.open(folder) as server:
        page = server.archive.read_events(after=0, limit=1 << 40)
        titles = {own.number: json.loads(own.event)["title"].split() for own in page.events}
        known = {own.created: own.id for own in server.live.list(limit=10_000).subscriptions}
        assert acknowledged <= known.keys()
        for number, name in known.items():
            *_, word, since = name.split("-")
            wanted = [at for at, own in titles.items() if at > int(since) and word in own]
            found = read_all(server, [number], 0, draw)
            assert [event for event, _ in found] == wanted, name
        return len(known)


def main() -> None:
    place, n_runs, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    draw = random.Random(seed)
    n_all = 0
    for run in range(n_runs):
        if run % LIVES == 0:
            folder, acknowledged, n_known = place / f"server-{run}", set[int](), 0
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                run_victim(folder, seed + 1_000 * run, writing)
            finally:
                os._exit(1)
        os.close(writing)
        with os.fdopen(reading, "rb") as reports:
            reports.readline()  # it has begun
            # On a slow machine too, there is something to check.
            first = b"" if n_known else reports.readline()
            time.sleep(draw.uniform(0.1, 0.6))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            lines = [line for line in (first + reports.read()).split(b"\n")[:-1] if line]
        acknowledged |= {json.loads(line) for line in lines} - {0}
        n_new = check(folder, acknowledged, draw) - n_known
        n_known, n_all = n_known + n_new, n_all + n_new
    print(f"{n_runs} runs, {n_all} subscriptions")


if __name__ == "__main__":
    main()
