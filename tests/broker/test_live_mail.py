"""Many readers follow mailboxes on one event loop."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from tamis.broker import followers
from tamis.broker.live_mail import LiveMail
from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import MatchServer
from tamis.broker.publishing import Publication
from tamis.broker.rights import LOCAL
from tamis.events.json_source import JsonObjects
from tests.broker.gates import hold_first_names
from tests.waiting import HANG_SECONDS


@pytest.fixture
def server(tmp_path):
    with MatchServer.open(tmp_path / "server") as opened:
        yield opened


@pytest.fixture
def reads(server, monkeypatch) -> list[int]:
    """The number of subscriptions of each read of the archive."""
    found: list[int] = []
    whole = server.archive.read_matches

    def read(numbers, **options):
        found.append(len(numbers))
        return whole(numbers, **options)

    monkeypatch.setattr(server.archive, "read_matches", read)
    return found


def subscribe(server, name: str, expression: str) -> Mailbox:
    server.live.add(name, expression)
    return Mailbox.of_subscription(server.live.get(name).created)


async def publish(server, *events: dict) -> None:
    texts = [orjson.dumps(event) for event in events]
    published = server.publisher.publish(Publication(JsonObjects(texts), sum(map(len, texts))))
    await asyncio.wrap_future(published)


async def settle(live: LiveMail, readers) -> None:
    """Let all readers read what is there."""
    for reader in readers:
        await live.next(reader, 0.001)


def run(main) -> None:
    asyncio.run(asyncio.wait_for(main, HANG_SECONDS))


def test_a_wake_up_costs_one_read_for_all(server, reads):
    boxes = [subscribe(server, f"s{n}", f"x >= {n}") for n in range(20)]

    async def main() -> None:
        live = LiveMail(server.mailboxes, server.hub)
        readers = [await live.join(box, 0) for box in boxes for _ in range(3)]
        await settle(live, readers)
        reads.clear()
        await publish(server, {"x": -1}, {"x": -2})
        assert reads == []  # nothing for anybody
        await publish(server, {"x": 9})
        news = [await live.next(reader, HANG_SECONDS) for reader in readers[:30]]
        assert [own.matches[0].event for own in news] == [3] * 30
        assert news[0].matches[0] is news[1].matches[0]  # the text is shared
        assert reads == [10]
        idle = await live.next(readers[-1], 0.001)
        assert (idle.matches, idle.after) == ([], 3)  # it did not match, and is not missed later
        for reader in readers:
            live.leave(reader)
        assert len(live) == len(server.hub) == 0
        live.shut_down()

    run(main())


def test_a_slow_reader_reads_by_itself(server, monkeypatch):
    monkeypatch.setattr(followers, "MOST_QUEUED", 5)
    box = subscribe(server, "a", "x = 1")

    async def main() -> None:
        live = LiveMail(server.mailboxes, server.hub)
        fast, slow = await live.join(box, 0), await live.join(box, 0)
        await settle(live, [fast, slow])
        seen = []
        for n in range(20):
            await publish(server, {"x": 1, "n": n})
            news = await live.next(fast, HANG_SECONDS)
            seen += [match.event for match in news.matches]
        assert not slow.is_live
        late = await live.next(slow, HANG_SECONDS)
        assert [match.event for match in late.matches] == seen == list(range(1, 21))
        await publish(server, {"x": 1})
        assert (await live.next(slow, HANG_SECONDS)).matches[0].event == 21
        live.shut_down()
        assert await live.next(slow, HANG_SECONDS) is None

    run(main())


def test_a_failed_read_loses_nothing(server, monkeypatch):
    box = subscribe(server, "a", "x = 1")

    async def main() -> None:
        live = LiveMail(server.mailboxes, server.hub)
        reader = await live.join(box, 0)
        await settle(live, [reader])
        whole = server.mailboxes.read_named

        def fail(*_, **__):
            monkeypatch.setattr(server.mailboxes, "read_named", whole)
            raise OSError("the disk is away")

        monkeypatch.setattr(server.mailboxes, "read_named", fail)
        await publish(server, {"x": 1})
        assert [match.event for match in (await live.next(reader, HANG_SECONDS)).matches] == [1]
        live.shut_down()

    run(main())


def test_a_late_reader_joins_a_topic_that_is_being_read(server):
    box = subscribe(server, "a", "x = 1")

    async def main() -> None:
        live = LiveMail(server.mailboxes, server.hub)
        first = await live.join(box, 0)
        await settle(live, [first])
        for n in range(1, 30):
            publishing = asyncio.create_task(publish(server, {"x": 1}))
            late = await live.join(box, 0)
            seen: list[int] = []
            while len(seen) < n:
                seen += [own.event for own in (await live.next(late, HANG_SECONDS)).matches]
            assert seen == list(range(1, n + 1))
            live.leave(late)
            await publishing
        live.shut_down()

    run(main())


def make_channel(server) -> Mailbox:
    """A channel with the first of two subscriptions."""
    first = subscribe(server, "a", "x = 1")
    subscribe(server, "b", "x = 2")
    channel = server.broker.channels.create(LOCAL, "c", owner="ann")
    server.broker.channels.add(LOCAL, "c", [first.number])
    return Mailbox.of_channel(channel.number)


def add_second(server) -> None:
    server.broker.channels.add(LOCAL, "c", [server.live.get("b").created])


def test_members_that_were_read_late_do_not_replace_newer_ones(server, monkeypatch):
    box = make_channel(server)

    async def main() -> None:
        live = LiveMail(server.mailboxes, server.hub)
        reader = await live.join(box, 0)
        await settle(live, [reader])
        gate = hold_first_names(server.mailboxes, monkeypatch)
        early = asyncio.create_task(live.refresh(box))
        await gate.reached()
        add_second(server)
        await live.refresh(box)
        gate.open()
        await early
        await publish(server, {"x": 2})
        assert [own.event for own in (await live.next(reader, HANG_SECONDS)).matches] == [1]
        live.leave(reader)
        assert len(server.hub) == 0
        live.shut_down()

    run(main())


def test_members_that_change_while_a_reader_joins(server, monkeypatch):
    box = make_channel(server)

    async def main() -> None:
        live = LiveMail(server.mailboxes, server.hub)
        gate = hold_first_names(server.mailboxes, monkeypatch)
        joining = asyncio.create_task(live.join(box, 0))
        await gate.reached()
        add_second(server)
        await live.refresh(box)
        gate.open()
        reader = await joining
        await publish(server, {"x": 2})
        assert [own.event for own in (await live.next(reader, HANG_SECONDS)).matches] == [1]
        live.shut_down()

    run(main())
