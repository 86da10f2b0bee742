"""What all routes share."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from anyio import to_thread

from tamis.broker.anatomy import Anatomist
from tamis.broker.live_mail import LiveMail
from tamis.broker.similar import SimilarSearch
from tamis.server.delivery import Deliveries
from tamis.server.feed_reading import FeedReading
from tamis.server.lags import FeedMarks
from tamis.server.stream_counts import StreamCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from starlette.requests import HTTPConnection

    from tamis.broker.match_server import MatchServer
    from tamis.broker.readiness import Readiness
    from tamis.broker.secrets import Secret
    from tamis.server.metrics import HandedOver, Metrics
    from tamis.server.owner_counts import OwnerCounts
    from tamis.server.rates import RateLimits
    from tamis.server.settings import Settings
    from tamis.server.stream_rights import OpenStream

_T = TypeVar("_T")


@dataclass
class ServerContext:
    """The match server, its settings, and the state of the HTTP layer."""

    match_server: MatchServer
    settings: Settings
    rates: RateLimits
    owners: OwnerCounts
    readiness: Readiness
    metrics: Metrics
    is_open: bool = False  # no keys are needed, as long as there are none
    local_key: Secret | None = None  # of commands on this machine
    heartbeat: float = 15.0  # seconds between signs of life on an idle stream
    # Distinguishes this run of the server from others.
    instance: str = field(default_factory=lambda: secrets.token_hex(8))
    is_closing: asyncio.Event = field(default_factory=asyncio.Event)
    streams: StreamCounts = field(default_factory=StreamCounts)
    open_streams: set[OpenStream] = field(default_factory=set)
    feed_marks: FeedMarks = field(default_factory=FeedMarks)
    # Forecasts read much: the others wait.
    forecasts: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))
    live_mail: LiveMail = field(init=False)
    deliveries: Deliveries = field(init=False)
    anatomist: Anatomist = field(init=False)
    similar: SimilarSearch = field(init=False)
    feed_reading: FeedReading = field(init=False)

    def __post_init__(self) -> None:
        self.live_mail = LiveMail(self.match_server.mailboxes, self.match_server.hub)
        self.deliveries = Deliveries(self.match_server, self.settings, self.observe_delivery)
        self.anatomist = Anatomist(self.match_server.live)
        self.similar = SimilarSearch(self.match_server.live)
        self.feed_reading = FeedReading(self.match_server, self.settings)
        self.metrics.add(self.feed_reading)

    def begin_closing(self) -> None:
        """End the streams: the server waits for them before it stops."""
        self.is_closing.set()
        self.live_mail.close()

    def observe_delivery(self, kind: str, matches: Sequence[HandedOver]) -> None:
        """Measure how late matches are handed over."""
        if matches:
            server = self.match_server
            head, now = server.archive.last_event, server.live.store.moment
            self.metrics.observe_delivery(kind, matches, head, now)


async def needs_no_key(context: ServerContext) -> bool:
    """Whether requests need no key; that ends for good when the first key is made."""
    if not context.is_open:
        return False
    keys = context.match_server.broker.keys
    exist = keys.exist_if_known()
    if exist is None:
        exist = await in_thread(keys.exist)
    context.is_open = context.is_open and not exist
    return context.is_open


def context_of(request: HTTPConnection) -> ServerContext:
    """The context of a request."""
    return cast("ServerContext", request.app.state.context)


async def in_thread(function: Callable[..., _T], *args: Any, **options: Any) -> _T:
    """The result of a function that waits for a disk or a database."""
    return await to_thread.run_sync(lambda: function(*args, **options))


async def result_of(future: Future[_T]) -> _T:
    """The result of a future of another thread. If the client goes away, the work goes on."""
    return await asyncio.shield(asyncio.wrap_future(future))
