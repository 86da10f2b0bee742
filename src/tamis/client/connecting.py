"""What both clients need of the network."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from tamis.client.operations import find_pause, read_json, refuse_answer
from tamis.client.records import ConnectionFailedError, Match, ServerError
from tamis.errors import InputError, warn

if TYPE_CHECKING:
    import ssl

    import httpx2

    from tamis.client.records import Subscription

STREAM_PATIENCE: Final = 60.0  # seconds without a heartbeat, which comes every 15
COMEBACK: Final = 120.0  # seconds in which a server may start again
MOST_TICKETS: Final = 100_000
_LONGEST_PAUSE: Final = 5.0  # between attempts to go on with a stream
_RESTARTING: Final = (502, 503, 504)
_LOSSES: Final = {  # events of a stream that are no matches
    "missed": "events {first:,} to {last:,} were removed by retention before they were read",
    "lost-history": "the history of {subscription} cannot be read: {reason}",
}


class Tickets:
    """The tickets of the subscriptions that a client has made, the latest ones."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, str] = OrderedDict()
        self._lock = Lock()

    def remember(self, made: Subscription) -> None:
        """Keep the ticket of a new subscription."""
        if made.ticket is not None:
            with self._lock:
                self._held[made.id] = made.ticket
                if len(self._held) > MOST_TICKETS:
                    self._held.popitem(last=False)

    def find(self, subscription_id: str) -> str | None:
        """The ticket of a subscription; None if it is not known."""
        return self._held.get(subscription_id)


def make_options(
    address: str, key: str | None, timeout: float, trust: ssl.SSLContext | None
) -> dict[str, Any]:
    """The options of an HTTP client."""
    if not isinstance(address, str) or not address.startswith(("http://", "https://")):
        raise InputError(f"the address of the server is {address!r}; http://HOST:PORT is expected")
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return {
        "base_url": address,
        "headers": headers,
        "timeout": timeout,
        "follow_redirects": False,
        **({} if trust is None else {"verify": trust}),
    }


def unreachable(address: str, error: Exception | None) -> ConnectionFailedError:
    """The error of a server that does not answer, or ends its answer at once."""
    reason = "it ended the connection" if error is None else str(error) or type(error).__name__
    return ConnectionFailedError(
        f"the server at {address} does not answer: {reason}",
        hint="is it running? start it with: tamis serve",
    )


class StreamPlace:
    """Where a stream is, and how long it tries to go on after a lost connection."""

    def __init__(self, address: str, after: str | None) -> None:
        self.after = after  # the cursor to go on from; None for a stream that begins now
        self._address = address
        self._has_begun = False
        self._n_failed = 0
        self._lost: float | None = None  # when the connection was lost

    def take(self, event: httpx2.ServerSentEvent) -> Match | None:
        """The match of an event of the stream; None for other events. The first event tells where
        the stream begins. What cannot be delivered any more is a warning.
        """
        self._has_begun, self._n_failed, self._lost = True, 0, None
        self.after = event.id or self.after
        try:
            if event.event == "match":
                return Match.of(read_json(event.data), event.id.rpartition(":")[0])
            if event.event in _LOSSES:
                warn(_LOSSES[event.event].format(**read_json(event.data)))
        except (KeyError, TypeError, ValueError) as error:
            raise refuse_answer(f"has another form: {error!r:.100}") from None
        return None

    def find_pause(self, error: Exception | None) -> float:
        """How many seconds to wait before the next attempt; raises the error if that is of no use.

        A server that has been reached may take a while to start again; one that never was is
        probably not there.
        """
        self._n_failed += 1
        now = time.monotonic()
        self._lost = now if self._lost is None else self._lost
        is_lost = not isinstance(error, ServerError) or error.status in _RESTARTING
        if is_lost and self._has_begun and now - self._lost < COMEBACK:
            return min(0.1 * 2.0**self._n_failed, _LONGEST_PAUSE)
        pause = find_pause(None, self._n_failed) if is_lost and not self._has_begun else None
        if pause is not None:
            return pause
        raise error if isinstance(error, ServerError) else unreachable(self._address, error)
