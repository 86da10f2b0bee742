"""Kills servers under load, one after the other in one folder."""

from __future__ import annotations

import subprocess
import sys
import time

from tests.cli.shell import environment
from tests.server.load.consumers import (
    FeedConsumer,
    PageConsumer,
    SocketConsumer,
    StreamConsumer,
)
from tests.server.load.oracle import Oracle
from tests.server.load.scene import KEPT, RARE, Scene
from tests.server.load.workers import KeyedPublisher, Publisher, Subscriber
from tests.server.receiver import run_receiver
from tests.waiting import wait_until

MOST_STEPS = 100  # of all workers together, before a server is killed
LONGEST_PAUSE = 0.1  # seconds after the last step; a moment is drawn, and nothing depends on it
LONGEST_START = 3.0
N_AT_LEAST = 3  # steps of each worker in the last life


def attack(scene: Scene, n_kills: int) -> Oracle:
    """Kill the server so many times, then compare everything."""
    with run_receiver() as receiver:
        scene.open()
        scene.prepare()
        scene.add_hook(receiver, RARE[0])
        add_workers(scene)
        for _ in range(n_kills):
            work_for_a_while(scene)
            scene.kill_under_load()
            if scene.draw.random() < 0.2:
                kill_while_starting(scene)
            scene.open()
        before = {own.name: own.n_steps for own in scene.actors}
        scene.start_work()
        wait_until(
            lambda: all(
                own.error or own.n_steps - before[own.name] >= N_AT_LEAST for own in scene.actors
            ),
            "everybody has worked with the last server",
        )
        return scene.finish()


def work_for_a_while(scene: Scene) -> None:
    """Let everybody work, for a random number of steps and a moment."""
    end = count_steps(scene) + scene.draw.randrange(MOST_STEPS)
    scene.start_work()
    wait_until(
        lambda: count_steps(scene) >= end or any(own.error for own in scene.actors),
        "some steps are done",
    )
    time.sleep(scene.draw.random() * LONGEST_PAUSE)


def count_steps(scene: Scene) -> int:
    return sum(own.n_steps for own in scene.actors)


def add_workers(scene: Scene) -> None:
    """Publishers, subscribers and consumers of all kinds."""
    seed, boxes = scene.seed, [scene.mailbox(name) for name in KEPT]
    scene.actors += [
        Publisher("plain", seed),
        Publisher("many", seed, most_events=200),
        KeyedPublisher("keyed", seed),
        KeyedPublisher("keyed-many", seed, most_events=50),
        Subscriber("ann", seed),
        Subscriber("bob", seed, lease=0.5),
    ]
    scene.consumers += [
        PageConsumer("pages", seed, *boxes[0]),
        PageConsumer("channel-pages", seed, *scene.channel),
        StreamConsumer("stream", seed, *boxes[1]),
        StreamConsumer("channel-stream", seed, *scene.channel),
        SocketConsumer("socket", seed, *boxes[2]),
        FeedConsumer("feed", seed, *boxes[3]),
    ]


def kill_while_starting(scene: Scene) -> None:
    """Kill a server that may not have started completely."""
    command = [sys.executable, "-m", "tamis", "serve", str(scene.folder), "--port", "0"]
    options = [] if scene.store is None else ["--store", scene.store]
    process = subprocess.Popen(
        [*command, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(**scene.settings),
    )
    time.sleep(scene.draw.random() * LONGEST_START)
    process.kill()
    process.wait()
