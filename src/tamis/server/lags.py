"""How far behind is each way of delivery, now? What was delivered is measured when it is."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.core import Metric

    from tamis.broker.mail import MailedMatch
    from tamis.server.context import ServerContext

MOST_FEEDS: Final = 10_000  # whose last event is remembered


class FeedMarks:
    """The last event that each feed has shown; used on the event loop only.

    A feed shows an event again and again, and only the first time is its delivery. What a feed
    showed before the server started is not known: its first answer only begins.
    """

    def __init__(self) -> None:
        self._marks: OrderedDict[int, int] = OrderedDict()

    def take_new(self, feed: int, matches: Sequence[MailedMatch]) -> list[MailedMatch]:
        """Those of the matches that a feed shows for the first time."""
        mark = self._marks.pop(feed, None)
        newest = max((match.event for match in matches), default=0)
        self._marks[feed] = max(newest, mark or 0)
        while len(self._marks) > MOST_FEEDS:
            self._marks.popitem(last=False)
        return [] if mark is None else [match for match in matches if match.event > mark]


class Behind(NamedTuple):
    """How far the last of those who are served in one way is behind."""

    kind: str
    n_events: int = 0
    seconds: float = 0.0


class BacklogCollector(Collector):
    """What is not delivered yet, for the server's own ways: a client that reads pages or feeds is
    behind as it likes.
    """

    def __init__(self, context: ServerContext) -> None:
        self._context = context

    def describe(self) -> list[Metric]:
        """Nothing: their names need no check, and the server may not be asked yet."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The numbers."""
        events = GaugeMetricFamily(
            "tamis_delivery_behind_events",
            "Events after the last one that the furthest behind has got.",
            labels=["kind"],
        )
        seconds = GaugeMetricFamily(
            "tamis_delivery_behind_seconds",
            "How long the furthest behind has not had everything.",
            labels=["kind"],
        )
        for own in measure_backlogs(self._context):
            events.add_metric([own.kind], own.n_events)
            seconds.add_metric([own.kind], own.seconds)
        yield events
        yield seconds


def measure_backlogs(context: ServerContext) -> list[Behind]:
    """How far each way is behind; not on the event loop."""
    server = context.match_server
    head, now = server.mailboxes.head, server.live.store.now()
    found = [_measure_streams(context, kind) for kind in ("stream", "socket")]
    for kind, backlog in (
        ("webhook", server.broker.webhooks.backlog(head.epoch)),
        ("digest", server.broker.digests.backlog(head.epoch)),
    ):
        if backlog is None:
            found.append(Behind(kind))
        else:
            n_events = max(0, head.event - backlog.position)
            found.append(Behind(kind, n_events, max(0.0, (now - backlog.since) / 1e6)))
    return found


def _measure_streams(context: ServerContext, kind: str) -> Behind:
    head = context.match_server.archive.last_event
    n_events, seconds = 0, 0.0
    for stream in list(context.open_streams):
        if stream.kind == kind and (own := stream.follower.seconds_behind()):
            n_events = max(n_events, head - stream.follower.after)
            seconds = max(seconds, own)
    return Behind(kind, n_events, seconds)
