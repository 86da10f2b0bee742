"""A server, its subscriptions that stay, and everybody who works with it."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from random import Random
from typing import NamedTuple

import orjson
from httpx2 import Client

from tests.server.load.consumers import Consumer, WebhookConsumer
from tests.server.load.oracle import Oracle
from tests.server.load.workers import LONG, Worker, expect_answer, open_client
from tests.server.load.worlds import ATTRIBUTES, draw_expression, draw_rare, with_bell
from tests.server.processes import ServerProcess
from tests.server.receiver import Receiver
from tests.waiting import wait_until

KEPT = [f"kept-{at}" for at in range(6)]
RARE = ["rare-0", "rare-1"]  # matched by few events
CHANNEL = "all"
MOST_TRIES = 100
# Small segments, so that they are closed often; some events are judged again by the server too.
# Nobody is given up because the machine is busy.
SETTINGS = {
    "TAMIS_LIMITS_HEADER_TIMEOUT": "1 h",
    "TAMIS_LIMITS_REQUEST_TIMEOUT": "1 h",
    "TAMIS_DELIVERY_WEBHOOK_TIMEOUT": "1 h",
    "TAMIS_ARCHIVE_SEGMENT_SIZE": "40000",
    "TAMIS_DELIVERY_ALLOW_PRIVATE_ADDRESSES": "true",
    "TAMIS_OPERATIONS_AUDIT_SHARE": "0.2",
    "TAMIS_LIMITS_REQUESTS_PER_SECOND": "1000000",
}


class Mailbox(NamedTuple):
    """The path of a mailbox, and the numbers of its subscriptions."""

    path: str
    numbers: list[int]


class Scene:
    """A folder, the server that runs in it now, and the workers."""

    def __init__(self, folder: Path, seed: int, store: str | None = None, **settings: str) -> None:
        self.folder, self.store = folder, store
        self.draw = Random(seed)
        self.seed = seed
        self.settings = SETTINGS | settings
        self.actors: list[Worker] = []  # publish and subscribe
        self.consumers: list[Consumer] = []
        self.hooks: list[WebhookConsumer] = []
        self.server: ServerProcess | None = None
        self.is_over = threading.Event()
        self.numbers: dict[str, int] = {}  # of the subscriptions that stay
        schema = folder.with_name("schema.json")
        schema.write_bytes(orjson.dumps(ATTRIBUTES))
        self.settings["TAMIS_SUBSCRIPTIONS_SCHEMA"] = str(schema)

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        if self.server is not None and self.server.process.poll() is None:
            self.kill()  # a test has failed

    # ── the server ──────────────────────────────────────────────────────────────────────────

    def open(self) -> ServerProcess:
        """Start a server, and wait until it listens."""
        options = [] if self.store is None else ["--store", self.store]
        self.server = ServerProcess(self.folder, *options, **self.settings)
        return self.server

    def close(self) -> None:
        """Stop the server in order."""
        assert self.server is not None
        assert self.server.stop() == 0, self.read_log()

    def kill(self) -> None:
        """End the server in disorder."""
        assert self.server is not None
        self.server.stop(signal.SIGKILL)

    def client(self) -> Client:
        """A client of the server that runs."""
        assert self.server is not None
        return open_client(self.server.url)

    def read_log(self) -> str:
        """What all servers have written to their log."""
        return self.folder.with_name(f"{self.folder.name}.log").read_text()

    # ── what stays ──────────────────────────────────────────────────────────────────────────

    def prepare(self) -> None:
        """Subscriptions that stay, and a channel of all of them."""
        with self.client() as client:
            for name in (*KEPT, *RARE):
                drawn = draw_rare(self.draw) if name in RARE else draw_expression(self.draw)
                asked = {"id": name, "expression": with_bell(drawn), "lease": LONG}
                made = expect_answer(client.post("/v1/subscriptions", json=asked), 201)
                self.numbers[name] = made["number"]
            asked = {"name": CHANNEL, "subscriptions": KEPT}
            expect_answer(client.post("/v1/channels", json=asked), 201)

    def mailbox(self, name: str) -> Mailbox:
        """The mailbox of one of the subscriptions that stay."""
        return Mailbox(f"/v1/subscriptions/{name}", [self.numbers[name]])

    @property
    def channel(self) -> Mailbox:
        """The mailbox of all of them but the rare ones."""
        return Mailbox(f"/v1/channels/{CHANNEL}", [self.numbers[name] for name in KEPT])

    def add_hook(self, receiver: Receiver, name: str) -> None:
        """A webhook of one of the subscriptions that stay."""
        with self.client() as client:
            self.hooks.append(WebhookConsumer(client, receiver, name, self.numbers[name]))

    # ── work ────────────────────────────────────────────────────────────────────────────────

    def start_work(self) -> None:
        """Everybody begins to work with the server that runs."""
        assert self.server is not None
        self.is_over.clear()
        for actor in self.actors:
            actor.start(self.server.url, self.is_over)
        for consumer in self.consumers:
            consumer.start(self.server.url, threading.Event())

    def stop_actors(self) -> None:
        """No more events and changes; consumers go on."""
        self.is_over.set()
        for actor in self.actors:
            actor.join()

    def kill_under_load(self) -> None:
        """End the server in disorder; everybody is cut off."""
        self.kill()
        self.stop_actors()
        for consumer in self.consumers:
            consumer.join()

    def finish(self) -> Oracle:
        """Publish the last event, wait until everybody has it, and compare all that was
        acknowledged and delivered with the log and the archive.
        """
        self.stop_actors()
        with self.client() as client:
            expect_answer(client.post("/v1/events", json={"name": "bell", "bell": True}))
        for consumer in self.consumers:
            self.let_finish(consumer)
        for hook in self.hooks:
            wait_until(hook.has_bell, "a webhook has got everything")
        return self.expect()

    def let_finish(self, consumer: Consumer) -> None:
        """Wait until a consumer has got everything; one that was too slow comes again."""
        assert self.server is not None
        consumer.join()
        for _ in range(MOST_TRIES):
            if consumer.is_done:
                return
            consumer.start(self.server.url, threading.Event())
            consumer.join()
        raise AssertionError(f"{consumer.name} is cut off: {consumer.cut}")

    def expect(self) -> Oracle:
        """Compare all that was acknowledged and delivered with the log and the archive."""
        with self.client() as client:
            stats = expect_answer(client.get("/v1/stats"))
            assert stats["ready"], stats["not_ready_because"]
            assert stats["audit"]["n_disagreements"] == stats["audit"]["n_faults"] == 0
        self.close()
        oracle = Oracle(self.folder, self.store)
        oracle.expect_mailboxes(self.folder)
        for own in (*self.actors, *self.consumers, *self.hooks):
            own.expect(oracle)
        log = self.read_log()
        assert "Traceback" not in log, log
        return oracle
