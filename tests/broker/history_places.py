"""Subscriptions with a history, and what their mailboxes must have."""

from __future__ import annotations

import random
from typing import Any

from tamis.broker.histories import subscribe_since
from tamis.broker.match_server import MatchServer
from tamis.broker.matching import Matched, Publication, match_requests
from tamis.broker.publishing import _Answered, _Request, _to_entry
from tamis.events.json_source import JsonObjects
from tamis.live.committer import expect
from tamis.subscriptions import Subscribe

WORDS = ("oil", "gas", "tin", "iron", "zinc")


def draw_title(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(1, 3)))


def make_publication(titles: list[str]) -> Publication:
    texts = [b'{"title": "%s"}' % own.encode() for own in titles]
    return Publication(JsonObjects(texts), 100)


def match_now(server: MatchServer, titles: list[str]) -> Matched:
    """What the first thread of the publisher does: match by the set as it is now."""
    (found,) = match_requests(server.live, [make_publication(titles)])
    assert isinstance(found, Matched)
    return found


def write(server: MatchServer, matched: Matched) -> None:
    """What the second thread does, maybe much later."""
    own: Any = _Answered(_Request(make_publication([]), None), matched)
    server.archive.append([_to_entry(own, server.archive.epoch)])


def subscribe(server: MatchServer, name: str, word: str, since: int | None) -> int:
    """Subscribe to a word, as the route does; returns the number."""
    ticket = server.broker.tickets.make()
    wanted = Subscribe(name, f"matches(title, '{word}')", ticket_hash=ticket.hash)
    if since is None:
        (result,) = server.live.submit([wanted]).result()
    else:
        result = subscribe_since(server.live, server.broker.histories, wanted, since)
    expect(result)
    return int(result.number)


def read_all(
    server: MatchServer, numbers: list[int], after: int, draw: random.Random
) -> list[tuple[int, tuple[int, ...]]]:
    """All events of a mailbox after a cursor, read in pages of random sizes."""
    found: list[tuple[int, tuple[int, ...]]] = []
    names = {number: str(number) for number in numbers}
    while True:
        page = server.mailboxes.read_named(names, after=after, limit=draw.choice([1, 2, 7, 50]))
        assert all(match.event > after for match in page.matches)
        found += [(match.event, match.numbers) for match in page.matches]
        after = page.after
        if page.is_last:
            return found
