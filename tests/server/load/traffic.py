"""Load without kills: publishers, churn, and consumers of all kinds, slow and dead ones too."""

from __future__ import annotations

from httpx2 import Client

from tests.server.load.consumers import (
    DeadConsumer,
    FeedConsumer,
    MovingConsumer,
    PageConsumer,
    SocketConsumer,
    StreamConsumer,
)
from tests.server.load.memory import Sample, expect_flat, measure_memory
from tests.server.load.oracle import Oracle
from tests.server.load.scene import KEPT, RARE, Mailbox, Scene
from tests.server.load.workers import KeyedPublisher, Publisher, Subscriber, Worker, expect_answer
from tests.server.receiver import Received, run_receiver
from tests.waiting import wait_until

MOVING = "moving"  # a channel whose members change
NOWHERE = "http://127.0.0.1:9/hook"  # nobody listens there


class Rewirer(Worker):
    """Adds and removes members of a channel; the first member stays."""

    def step(self, client: Client) -> None:
        chosen = {"subscriptions": self.draw.sample(KEPT[1:], 2)}
        way = self.draw.choice(("members", "members/remove"))
        expect_answer(client.post(f"/v1/channels/{MOVING}/{way}", json=chosen))


def run(scene: Scene, n_steps: int) -> Oracle:
    """Let every publisher and subscriber do so many steps; then compare everything."""
    with run_receiver() as receiver, run_receiver() as failing:
        scene.open()
        scene.prepare()
        scene.add_hook(receiver, RARE[0])
        scene.add_hook(failing, RARE[1])
        failing.answer = fail_first(failing)
        add_workers(scene, n_steps)
        memory = []
        scene.start_work()

        def is_done() -> bool:
            memory.append(take_sample(scene))
            return all(own.is_done or own.error for own in scene.actors)

        wait_until(is_done, "all is published")
        expect_flat(memory)
        return scene.finish()


def fail_first(receiver):
    """The answers of a receiver that fails once, so that an event has to be sent again."""

    def answer(_: Received) -> int:
        return 500 if len(receiver.received) == 1 else 204

    return answer


def add_workers(scene: Scene, n_steps: int) -> None:
    """Everybody."""
    seed, boxes = scene.seed, [scene.mailbox(name) for name in KEPT]
    scene.actors += [
        Publisher("plain", seed),
        Publisher("many", seed, most_events=20),
        KeyedPublisher("keyed", seed),
        Subscriber("ann", seed),
        Subscriber("bob", seed, lease=0.5),
        Rewirer("rewirer", seed),
    ]
    for own in scene.actors:
        own.n_wanted = n_steps
    with scene.client() as client:
        asked = {"name": MOVING, "subscriptions": KEPT[:1]}
        expect_answer(client.post("/v1/channels", json=asked), 201)
        hook = {"subscription": KEPT[0], "url": NOWHERE}
        expect_answer(client.post("/v1/webhooks", json=hook), 201)
    moving = Mailbox(f"/v1/channels/{MOVING}", scene.channel.numbers)
    scene.consumers += [
        PageConsumer("pages", seed, *boxes[0]),
        PageConsumer("channel-pages", seed, *scene.channel),
        StreamConsumer("stream", seed, *boxes[0]),
        StreamConsumer("fleeting", seed, *boxes[1], is_fleeting=True),
        StreamConsumer("slow", seed, *boxes[2], pause=0.02),
        StreamConsumer("channel-stream", seed, *scene.channel),
        MovingConsumer("moving", seed, *moving),
        SocketConsumer("socket", seed, *boxes[3]),
        SocketConsumer("channel-socket", seed, *scene.channel),
        FeedConsumer("feed", seed, *boxes[4]),
        FeedConsumer("channel-feed", seed, *scene.channel),
        DeadConsumer("dead", seed, *scene.channel),
    ]


def take_sample(scene: Scene) -> Sample:
    """The memory of the server, and the events that were acknowledged until now."""
    assert scene.server is not None
    n_events = sum(len(own.acknowledged) for own in scene.actors if isinstance(own, Publisher))
    return Sample(n_events, measure_memory(scene.server.process.pid))
