"""Publishes the events of new items, each once.

An event is stored in the outbox together with its item, and removed when it is published. If the
process is killed in between, it is looked for in the archive, after the last event that was there
when it was stored; its idempotency key finds it too if the archive keeps no texts.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from tamis.broker.matching import Publication
from tamis.events.json_source import JsonObjects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.broker.match_server import MatchServer
    from tamis.broker.source_fetches import OutboxEvent

_PAGE: Final = 1_000


class Outbox:
    """The outbox of a server. Methods wait for disks."""

    def __init__(self, server: MatchServer) -> None:
        self._server = server
        self._fetches = server.broker.source_fetches

    def publish(self, source: int) -> int:
        """Publish what a fetch of a source has just stored; returns how many events."""
        n_published = 0
        while waiting := self._fetches.list_outbox(source=source, limit=_PAGE):
            self._publish(waiting)
            n_published += len(waiting)
        return n_published

    def recover(self) -> int:
        """Publish what is left of an earlier process, or of a failure; returns how many events."""
        n_published = 0
        while waiting := self._fetches.list_outbox(limit=_PAGE):
            done = self._find_published(waiting)
            self._fetches.settle([own.number for own in waiting if own.number in done])
            rest = [own for own in waiting if own.number not in done]
            self._publish(rest)
            n_published += len(rest)
        return n_published

    def _publish(self, waiting: Sequence[OutboxEvent]) -> None:
        publisher = self._server.publisher
        asked = [
            Publication(
                JsonObjects([own.event]),
                len(own.event),
                key=own.key,
                request=hashlib.sha256(own.event).digest(),
            )
            for own in waiting
        ]
        for future in [publisher.publish(one) for one in asked]:
            future.result()
        self._fetches.settle([own.number for own in waiting])

    def _find_published(self, waiting: Sequence[OutboxEvent]) -> set[int]:
        """The numbers of those that are in the archive."""
        archive = self._server.published
        # After a restored backup, numbers of events mean others, and the events may be lost.
        own = [one for one in waiting if one.epoch == archive.epoch]
        numbers = {one.event: one.number for one in own}
        found: set[int] = set()
        after = min((one.fence for one in own), default=archive.last_event)
        while numbers and (page := archive.read_events(after=after, limit=_PAGE)).events:
            for event in page.events:
                if event.event in numbers:
                    found.add(numbers[event.event])
            after = page.after
        return found
