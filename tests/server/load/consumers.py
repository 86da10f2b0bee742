"""Consumers of every kind, and what each of them has got."""

from __future__ import annotations

import socket
import time
from bisect import bisect_left
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import orjson
from httpx2 import Client, ReadError
from websockets.exceptions import ConnectionClosed, InvalidMessage
from websockets.sync.client import connect

from tests.server.load.oracle import Oracle
from tests.server.load.workers import Worker, expect_answer
from tests.server.receiver import Receiver
from tests.server.running import read_stream
from tests.waiting import HANG_SECONDS

FEED_ENTRIES = 50
BUSY = 1011  # the code with which a WebSocket ends if nobody answers pings


class Consumer(Worker):
    """Reads a mailbox until it has got the last event of the run, which rings a bell."""

    def __init__(self, name: str, seed: int, path: str, numbers: list[int]) -> None:
        """`path` is that of the mailbox, `numbers` those of its subscriptions."""
        super().__init__(name, seed)
        self.path, self.numbers = path, numbers
        self.got: list[int] = []  # events, each once
        self.matches: list[tuple[list[str], Any]] = []  # of each: the ids, and the content

    def take(self, match: dict[str, Any]) -> None:
        """A match that was delivered for the first time."""
        assert not self.got or match["event"] > self.got[-1], "out of order, or twice"
        self.got.append(match["event"])
        self.matches.append((match["subscriptions"], match["content"]))
        self.is_done |= "bell" in match["content"]

    def take_again(self, match: dict[str, Any]) -> None:
        """A match that may have been delivered before: its number tells."""
        if not self.got or match["event"] > self.got[-1]:
            self.take(match)
        else:
            at = bisect_left(self.got, match["event"])
            assert self.got[at] == match["event"], "it was left out at first"

    def expect(self, oracle: Oracle) -> None:
        """It has got everything, and nothing else."""
        assert self.is_done
        assert self.got == oracle.of(self.numbers), self.name
        self.expect_contents(oracle)

    def expect_contents(self, oracle: Oracle) -> None:
        """What it has got is right."""
        for event, (ids, content) in zip(self.got, self.matches, strict=True):
            assert ids == oracle.who(event, self.numbers), (self.name, event)
            assert content == oracle.content(event), (self.name, event)


class PageConsumer(Consumer):
    """Reads pages and acknowledges them: what it had not acknowledged comes again."""

    def __init__(self, name: str, seed: int, path: str, numbers: list[int]) -> None:
        super().__init__(name, seed, path, numbers)
        self.acknowledged = 0
        self.asked = 0  # an acknowledgement that may have been cut

    def begin(self, client: Client) -> None:
        found = expect_answer(client.get(f"{self.path}/consumers"))["consumers"]
        reached = next((own["event"] for own in found if own["consumer"] == self.name), 0)
        assert reached in (self.acknowledged, self.asked), (self.name, reached)
        self.acknowledged = reached

    def step(self, client: Client) -> None:
        asked = {"consumer": self.name, "limit": self.draw.randint(1, 40), "wait": 0.2}
        page = expect_answer(client.get(f"{self.path}/matches", params=asked))
        assert page["missed"] is None
        events = [match["event"] for match in page["matches"]]
        assert events == sorted(set(events))
        assert not events or events[0] > self.acknowledged
        for match in page["matches"]:
            self.take_again(match)
        if events and self.draw.random() < 0.8:
            self.acknowledge(client, page["epoch"], self.draw.choice(events))

    def acknowledge(self, client: Client, epoch: str, event: int) -> None:
        """Acknowledge up to an event."""
        self.asked = event
        body = {"event": event, "epoch": epoch, "consumer": self.name}
        found = expect_answer(client.post(f"{self.path}/acknowledge", json=body))
        assert found["event"] == event
        self.acknowledged = event


class StreamConsumer(Consumer):
    """Follows a stream of Server-Sent Events, and resumes with the last id."""

    def __init__(
        self,
        name: str,
        seed: int,
        path: str,
        numbers: list[int],
        *,
        pause: float = 0,
        is_fleeting: bool = False,
    ) -> None:
        """With `pause`, it is slow: it waits so many seconds after some of the events. If it
        `is_fleeting`, it often goes and comes again.
        """
        super().__init__(name, seed, path, numbers)
        self.pause = pause
        self.is_fleeting = is_fleeting
        self.last_id = "0"

    def step(self, client: Client) -> None:
        headers = {"last-event-id": self.last_id}
        with client.stream("GET", f"{self.path}/stream", headers=headers) as answer:
            assert answer.status_code == 200
            for own in read_stream(answer):
                assert own.get("event") != "missed"
                self.last_id = own.get("id", self.last_id)
                if "data" in own:
                    self.take(own["data"])
                if self.is_done or (self.is_fleeting and self.draw.random() < 0.05):
                    return
                if self.pause and self.draw.random() < 0.05:
                    time.sleep(self.pause)


class MovingConsumer(StreamConsumer):
    """Follows a channel whose members change: what it gets depends on the moment of each change."""

    def expect(self, oracle: Oracle) -> None:
        assert self.is_done
        for event, (ids, content) in zip(self.got, self.matches, strict=True):
            assert ids
            assert set(ids) <= set(oracle.who(event, self.numbers))
            assert content == oracle.content(event)


class SocketConsumer(Consumer):
    """Follows a WebSocket and acknowledges on it; resumes after what it has acknowledged."""

    def step(self, client: Client) -> None:
        url = self.url.replace("http://", "ws://")
        path = f"{self.path}/socket?consumer={self.name}"
        try:
            with connect(url + path, open_timeout=HANG_SECONDS, proxy=None) as connection:
                while not self.is_done:
                    message = orjson.loads(connection.recv(HANG_SECONDS))
                    if message["type"] == "match":
                        self.take_again(message["match"])
                        if self.draw.random() < 0.2:
                            answer = {"type": "acknowledge", "cursor": message["cursor"]}
                            connection.send(orjson.dumps(answer).decode())
                    else:
                        assert message["type"] in ("ready", "idle", "acknowledged"), message
        except ConnectionClosed as error:
            # The server was killed; or one of both was too busy to answer pings: it comes again.
            if error.rcvd is not None and error.rcvd.code != BUSY:
                raise
        except (InvalidMessage, OSError, EOFError) as error:
            raise ReadError(str(error)) from error


class FeedConsumer(Consumer):
    """Polls a feed: the newest matches, the newest first."""

    def begin(self, client: Client) -> None:
        if not hasattr(self, "feed"):
            kind, _, name = self.path.removeprefix("/v1/").partition("/")
            asked = {kind.removesuffix("s"): name}
            made = expect_answer(client.post("/v1/feeds", json=asked), 201)
            self.feed = urlsplit(made["json_feed"]).path

    def step(self, client: Client) -> None:
        found = expect_answer(client.get(self.feed))["items"]
        events = [int(own["id"].split("/")[2]) for own in reversed(found)]
        assert events == sorted(set(events))
        self.got = sorted({*self.got, *events})
        self.newest = events
        self.is_done = bool(found) and "bell" in found[0]["content_text"]

    def expect(self, oracle: Oracle) -> None:
        expected = oracle.of(self.numbers)
        assert self.newest == expected[-FEED_ENTRIES:]
        assert set(self.got) <= set(expected)


class DeadConsumer(Consumer):
    """Opens a stream and never reads it."""

    def begin(self, client: Client) -> None:
        host, port = urlsplit(self.url).netloc.split(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = f"GET {self.path}/stream?after=0 HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
        self._socket.sendall(request.encode())
        self.is_done = True

    def expect(self, oracle: Oracle) -> None:
        with suppress(OSError):
            self._socket.close()


class WebhookConsumer:
    """A webhook of a mailbox, and its receiver in this process."""

    def __init__(self, client: Client, receiver: Receiver, name: str, number: int) -> None:
        self.receiver, self.numbers = receiver, [number]
        asked = {"subscription": name, "url": receiver.url}
        self.number = expect_answer(client.post("/v1/webhooks", json=asked), 201)["number"]

    def has_bell(self) -> bool:
        """Whether the last event of the run has come."""
        return any(b'"bell"' in own.body for own in self.receiver.received[-20:])

    def expect(self, oracle: Oracle) -> None:
        """It got everything in order; what came twice has the same id."""
        first: dict[str, int] = {}
        for own in self.receiver.received:
            assert first.setdefault(own.id, own.event) == own.event
        assert len(set(first.values())) == len(first)
        assert self.receiver.events() == oracle.of(self.numbers)
