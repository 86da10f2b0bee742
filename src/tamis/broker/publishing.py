"""Publishes events: matches them, and writes events and matches to the archive.

Two threads form a pipeline. The first takes all waiting requests and matches their events; the
second writes the results of all that are matched, with one flush to disk, and then answers. So an
event is matched while the one before it is written, and many small requests share one flush.

If a Spark stream matches the events, they are only checked and stored: `taking` stores the matches.
"""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from queue import Empty, Queue, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import orjson

from tamis.archive import Answer, Entry
from tamis.broker.audit import Answered, Auditor
from tamis.broker.matching import Matched, Publication, accept_requests, match_requests
from tamis.broker.outcomes import PublishCounts, Published
from tamis.errors import InputError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.archive import Archive
    from tamis.broker.hub import Hub
    from tamis.live.index import LiveIndex

MOST_GATHERED: Final = 8 << 20  # bytes of events that are matched before they are written
MOST_WRITTEN: Final = 10_000  # requests that share one flush to disk
MOST_WAITING: Final = 4  # matched groups that wait to be written: a slow disk holds up publishers


class _Request(NamedTuple):
    asked: Publication
    future: Future[Published]


class _Answered(NamedTuple):
    """A request whose events are matched and not yet written."""

    request: _Request
    matched: Matched

    @property
    def n_events(self) -> int:
        """How many events are published."""
        return len(self.matched.lists.starts) - 1

    def answered(self, published: Published) -> Answered:
        """What was answered, to be judged again."""
        assert published.first_event is not None
        own = self.matched
        return Answered(own.view, published.moment, own.events, own.lists, published.first_event)


class Publisher:
    """The two threads. `publish` may be called from any thread."""

    def __init__(
        self,
        live: LiveIndex,
        archive: Archive,
        hub: Hub | None,
        auditor: Auditor | None = None,
        list_open: Callable[[], list[int]] = list,
    ) -> None:
        """Without a hub, events are stored and not matched.

        `list_open` returns subscriptions of which the next events may be history: those who wait
        for them are woken without a match.
        """
        self._list_open = list_open
        self._live = live
        self._archive = archive
        self._hub = hub
        if hub is not None:
            hub.reached = archive.last_event
        self._auditor = auditor or Auditor()
        self._asked: SimpleQueue[_Request | None] = SimpleQueue()
        self._matched: Queue[list[_Answered] | None] = Queue(MOST_WAITING)
        self._pending: dict[bytes, _Request] = {}  # by idempotency key: not yet answered
        self._lock = Lock()
        self._is_closed = False
        self.counts = PublishCounts()
        self._threads = [
            Thread(target=self._match_all, name="tamis-match", daemon=True),
            Thread(target=self._write_all, name="tamis-publish", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def publish(self, asked: Publication) -> Future[Published]:
        """Publish events; the answer is there once events and matches are on disk.

        With the key of an earlier request, the answer is that of the earlier one, and nothing is
        published; raises an `InputError` if that had other events.
        """
        with self._lock:
            if self._is_closed:
                raise StoreError("the server is shutting down", hint="try again in a moment")
            if asked.key is not None:
                earlier = self._pending.get(asked.key)
                if earlier is not None:
                    _expect_same(asked, earlier.asked.request)
                    return earlier.future
                stored = self._archive.find_answer(asked.key)
                if stored is not None:
                    _expect_same(asked, stored.request)
                    done: Future[Published] = Future()
                    done.set_result(Published.from_json(orjson.loads(stored.answer)))
                    return done
            request = _Request(asked, Future())
            if asked.key is not None:
                self._pending[asked.key] = request
            self._asked.put(request)
        return request.future

    @property
    def is_running(self) -> bool:
        """Whether requests are answered."""
        return not self._is_closed and all(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        """Answer the waiting requests, and end the threads."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._asked.put(None)
        for thread in self._threads:
            thread.join()

    # ── the first thread ───────────────────────────────────────────────────────────────────

    def _match_all(self) -> None:
        while (group := _gather(self._asked)) is not None:
            answer = accept_requests if self._hub is None else match_requests
            found = answer(self._live, [request.asked for request in group])
            matched = []
            for request, own in zip(group, found, strict=True):
                if isinstance(own, Exception):
                    self._fail(request, own)
                else:
                    matched.append(_Answered(request, own))
            if matched:
                self._matched.put(matched)
        self._matched.put(None)

    # ── the second thread ──────────────────────────────────────────────────────────────────

    def _write_all(self) -> None:
        while (group := _gather_matched(self._matched)) is not None:
            try:
                self._write(group)
            except Exception as error:
                self.counts.n_failed += len(group)
                for own in group:
                    self._fail(own.request, error)

    def _write(self, group: list[_Answered]) -> None:
        epoch = self._archive.epoch
        entries = [_to_entry(own, epoch) for own in group if own.n_events]
        is_open = np.array(self._list_open(), np.int64)
        firsts = iter(self._archive.append(entries))
        answered: list[Answered] = []
        for own in group:
            published = own.matched.published(epoch, next(firsts) if own.n_events else 0)
            self.counts.add(published)
            self._answer(own.request, published)
            answered += [own.answered(published)] if own.n_events else []
        if self._hub is None:
            return
        numbers = np.concatenate([is_open, *(own.matched.lists.numbers for own in group)])
        self._hub.notify(numbers, self._archive.last_event)
        for one in answered:  # last: an error there harms no publisher and no reader
            self._auditor.offer(one)

    def _answer(self, request: _Request, published: Published) -> None:
        self._forget(request)
        with suppress(InvalidStateError):  # nobody waits for it any more
            request.future.set_result(published)

    def _fail(self, request: _Request, error: Exception) -> None:
        self._forget(request)
        with suppress(InvalidStateError):
            request.future.set_exception(error)

    def _forget(self, request: _Request) -> None:
        if request.asked.key is not None:
            with self._lock:
                self._pending.pop(request.asked.key, None)


def _gather(queue: SimpleQueue[_Request | None]) -> list[_Request] | None:
    """The waiting requests, at least one and of bounded size; None at the end."""
    first = queue.get()
    if first is None:
        return None
    group, n_bytes = [first], first.asked.n_bytes
    with suppress(Empty):
        while n_bytes < MOST_GATHERED:
            request = queue.get_nowait()
            if request is None:
                queue.put(None)  # taken again after this group
                break
            group.append(request)
            n_bytes += request.asked.n_bytes
    return group


def _gather_matched(queue: Queue[list[_Answered] | None]) -> list[_Answered] | None:
    first = queue.get()
    if first is None:
        return None
    group = list(first)
    with suppress(Empty):
        while len(group) < MOST_WRITTEN:
            more = queue.get_nowait()
            if more is None:
                queue.put(None)  # taken again after this group
                break
            group += more
    return group


def _expect_same(asked: Publication, earlier: bytes) -> None:
    if asked.request != earlier:
        raise InputError(
            "the idempotency key was used for another request",
            hint="use a new key for each request; repeat a key only with the same events, media "
            "type and form of the answer",
        )


def _to_entry(own: _Answered, epoch: str) -> Entry:
    asked, matched = own.request.asked, own.matched
    make_answer = None
    if asked.key is not None:
        key = asked.key

        def make_answer(first: int) -> Answer:
            spelled = orjson.dumps(matched.published(epoch, first).to_json())
            return Answer(key, asked.request, spelled)

    starts, numbers = matched.lists
    return Entry(matched.events, matched.moment, matched.change, starts, numbers, make_answer)
