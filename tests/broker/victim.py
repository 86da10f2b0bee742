"""Servers that are killed at random moments: `python -m tests.broker.victim PLACE RUNS SEED`.

Each run forks a process whose threads acknowledge events, make keys, send dead letters again and
change channels. Each announces what it does before, and reports afterwards. The process is killed;
then what was reported must be there, and what was only announced wholly or not at all.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import defaultdict
from threading import Thread

from tamis.broker.mailbox import Mailbox, Position
from tamis.broker.retries import DELAYS, DeliveryResult
from tamis.broker.rights import LOCAL
from tamis.broker.store import Broker
from tamis.broker.webhooks import Sent
from tamis.subscriptions import Subscribe, SubscriptionStore, sqlite
from tests.broker.places import SECRET
from tests.subscriptions.victim import open_after_a_kill

N_THREADS = 6
ARCHIVE = Position("one", 10**9)
BOX = Mailbox.of_subscription(1)

# Small logs: kills also meet checkpoints.
sqlite._PRAGMAS = (*sqlite._PRAGMAS, "wal_autocheckpoint = 8")


def act(broker: Broker, thread: int, draw: random.Random, say) -> None:
    """One random action, announced and reported as lists of JSON values."""
    kind = draw.choice(["acknowledge", "acknowledge", "deliver", "key", "channel"])
    consumer = f"c{thread}"
    if kind == "acknowledge":
        cursor = broker.cursors.get(BOX, consumer)
        event = (0 if cursor is None else cursor.position.event) + draw.randint(1, 9)
        say("asked", thread, kind, event)
        broker.cursors.acknowledge(BOX, consumer, Position("one", event), ARCHIVE)
        say("done", thread, kind, event)
    elif kind == "deliver":
        hook = broker.webhooks.get(find_hook(broker, thread))
        event = hook.position.event + 1
        status = draw.choice([200, 500])
        say("asked", thread, kind, event)
        for begun in range(hook.attempt.n_failed, len(DELAYS)):
            result = DeliveryResult(status, 1, "x")
            sent = Sent(hook.number, Position("one", event), [thread], begun, result)
            if broker.webhooks.record(sent).verdict in ("delivered", "dead"):
                break
        say("done", thread, kind, event)
    elif kind == "key":
        made = broker.keys.create(LOCAL, consumer, ["read"])
        say("done", thread, kind, made.secret.reveal())
    else:
        name = f"channel {thread} {draw.random()}"
        channel = broker.channels.create(LOCAL, name, owner=consumer)
        broker.channels.add(LOCAL, name, [1])
        say("done", thread, kind, channel.number)


def find_hook(broker: Broker, thread: int) -> int:
    return broker.webhooks.list().items[thread].number


def prepare(place: str) -> None:
    with SubscriptionStore.open(place) as store:
        broker = Broker(store, SECRET)
        store.apply([Subscribe("a", "x = 1", owner="ann")])
        for _ in range(N_THREADS):
            broker.webhooks.create(LOCAL, BOX, "https://example.com", Position("one", 0))


def serve_until_killed(place: str, seed: int, report: int) -> None:
    def say(*words) -> None:
        os.write(report, json.dumps(words).encode() + b"\n")

    def work(thread: int) -> None:
        draw = random.Random(f"{seed} {thread}")
        while True:
            act(broker, thread, draw, say)

    with SubscriptionStore.open(place) as store:
        broker = Broker(store, SECRET)
        threads = [Thread(target=work, args=(n,), daemon=True) for n in range(N_THREADS)]
        os.write(report, b"[]\n")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def run_and_kill(place: str, seed: int, seconds: float) -> list:
    """What a server reported before it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            serve_until_killed(place, seed, writing)
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as reports:
        reports.readline()  # the store is open
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        lines = reports.readlines()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), lines[-1:]
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def check(place: str, reached: dict, reports: list) -> None:
    """Compare the store with what was reported; `reached` is kept from run to run."""
    asked: dict = {}
    keys, channels = [], []
    for word, thread, kind, what in reports:
        if word == "asked":
            asked[thread, kind] = what
        elif kind == "key":
            keys.append(what)
        elif kind == "channel":
            channels.append(what)
        else:
            assert asked.pop((thread, kind)) == what
            reached[thread, kind] = what
    with open_after_a_kill(place) as store:
        broker = Broker(store, SECRET)
        for thread in range(N_THREADS):
            cursor = broker.cursors.get(BOX, f"c{thread}")
            check_reached(reached, asked, (thread, "acknowledge"), cursor and cursor.position.event)
            hook = broker.webhooks.get(find_hook(broker, thread))
            check_reached(reached, asked, (thread, "deliver"), hook.position.event)
            letters = broker.webhooks.dead_letters.list(hook.number, limit=10_000).items
            events = [letter.position.event for letter in letters]
            assert len(set(events)) == len(events)  # given up once
            assert all(event <= hook.position.event for event in events)
        for key in keys:
            assert broker.keys.authenticate(key) is not None
        for channel in channels:
            assert broker.channels.numbers(Mailbox.of_channel(channel)) == [1]


def check_reached(reached: dict, asked: dict, key: tuple, found: int | None) -> None:
    allowed = {reached.get(key, 0), asked.get(key, reached.get(key, 0))}
    assert (found or 0) in allowed, (key, found, allowed)
    reached[key] = found or 0


def main(place: str, n_runs: int, seed: int) -> None:
    draw = random.Random(seed)
    prepare(place)
    reached: dict = defaultdict(int)
    n_reports = 0
    for run in range(n_runs):
        reports = run_and_kill(place, seed + run, draw.random() * 0.15)
        check(place, reached, reports)
        n_reports += len(reports)
    print(n_runs, "runs", n_reports, "reports")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
