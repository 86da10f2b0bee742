"""The thread that changes a live set.

It takes all waiting requests at once, builds the newest part with them, writes them to the store in
one transaction, and shows the new set; then the callers get their results. So an expression is
checked before it is stored, and what was acknowledged is durable and visible.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.errors import StoreError
from tamis.live.live_set import unreadable
from tamis.subscriptions.checking import Checked, check
from tamis.subscriptions.model import Accepted, ChangeKind, Reason, Refused
from tamis.subscriptions.rows import predict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.live.live_set import BuiltPart, LiveSet
    from tamis.subscriptions import Change, Subscription, SubscriptionStore
    from tamis.subscriptions.model import Request, Result

GROUP_SIZE: Final = 10_000  # requests; a group of this size takes no more


class _Requests(NamedTuple):
    requests: Sequence[Checked | Refused]
    future: Future[list[Result]]

    def ids(self) -> list[str]:
        """The ids that would change."""
        return [own.subscription_id for own in self.requests if isinstance(own, Checked)]


class _Task(NamedTuple):
    run: Callable[[LiveSet], LiveSet]
    future: Future[LiveSet]


class Committer:
    """Owns the current set: only its thread changes it."""

    def __init__(
        self,
        store: SubscriptionStore,
        live_set: LiveSet,
        changes: list[Change],
        show: Callable[[LiveSet], None],
    ) -> None:
        """`changes` is filled by the store's `on_commit`; `show` makes a set visible."""
        self.current = live_set
        self._store = store
        self._changes = changes
        self._show = show
        self._queue: SimpleQueue[_Requests | _Task | None] = SimpleQueue()
        self._left: _Requests | _Task | None = None  # taken from the queue, for the next group
        self._closing = Lock()
        self._is_closed = False
        self._thread = Thread(target=self._run, name="tamis-live", daemon=True)
        self._thread.start()

    def submit(self, requests: Sequence[Request | Refused]) -> Future[list[Result]]:
        """Apply requests; the results are there once the changes are durable and visible."""
        checked = [own if isinstance(own, Refused) else check(own) for own in requests]
        job = _Requests(checked, Future())
        self._put(job)
        return job.future

    def run(self, change: Callable[[LiveSet], LiveSet]) -> LiveSet:
        """Replace the set by what a function makes of it; returns that."""
        job = _Task(change, Future())
        self._put(job)
        return job.future.result()

    def expire(self) -> LiveSet:
        """Write the leases that have ended to the log, and drop their subscriptions."""
        return self.run(self._expire)

    def _expire(self, live_set: LiveSet) -> LiveSet:
        self._changes.clear()
        self._store.expire()
        return live_set.apply(self._committed_since(live_set))

    def close(self) -> None:
        """Finish the waiting jobs."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._queue.put(None)
        self._thread.join()

    def _put(self, job: _Requests | _Task) -> None:
        with self._closing:
            if self._is_closed:
                raise StoreError("the live index is closed", hint="open it again")
            self._queue.put(job)

    # ── on the thread ───────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while jobs := self._gather():
            try:
                self._do(jobs)
            except Exception as error:
                for job in jobs:
                    if not job.future.done():
                        job.future.set_exception(error)

    def _gather(self) -> list[Any]:
        """The next task, or the requests of the next transaction: each id occurs once in it."""
        jobs: list[Any] = []
        taken: set[str] = set()
        while len(taken) < GROUP_SIZE:
            job = self._next(wait=not jobs)
            if job is None:
                if self._is_closed:
                    self._queue.put(None)  # the end: it is taken again after these jobs
                break
            own = job.ids() if isinstance(job, _Requests) else []
            is_apart = isinstance(job, _Task) or not taken.isdisjoint(own)
            if jobs and is_apart:
                self._left = job
                break
            if job.future.set_running_or_notify_cancel():
                jobs.append(job)
                taken.update(own)
            if isinstance(job, _Task) and jobs:
                break
        return jobs

    def _next(self, *, wait: bool) -> _Requests | _Task | None:
        if self._left is not None:
            job, self._left = self._left, None
            return job
        with suppress(Empty):
            return self._queue.get(block=wait)
        return None

    def _do(self, jobs: list[Any]) -> None:
        first = jobs[0]
        if isinstance(first, _Task):
            self._set(first.run(self.current))
            first.future.set_result(self.current)
            return
        self._commit(jobs)

    def _commit(self, jobs: list[_Requests]) -> None:
        requests = [request for job in jobs for request in job.requests]
        results: list[Result | None] = [
            own if isinstance(own, Refused) else None for own in requests
        ]
        start = 0
        while start < len(requests):  # one caller may name an id twice
            end = _distinct_end(requests, start)
            self._apply(requests, results, range(start, end))
            start = end
        done = iter(results)
        for job in jobs:
            job.future.set_result([next(done) for _ in job.requests])  # type: ignore[misc]

    def _apply(
        self,
        requests: Sequence[Checked | Refused],
        results: list[Result | None],
        places: range,
    ) -> None:
        """Apply requests with distinct ids, in one transaction."""
        left = [at for at in places if results[at] is None]
        states = self._predict([requests[at] for at in left])  # type: ignore[misc]
        built = self._build(requests, results, left, states)
        left = [at for at in left if results[at] is None]
        if not left:
            return
        self._changes.clear()
        found = self._store.submit_checked([requests[at] for at in left]).result()
        for at, result in zip(left, found, strict=True):
            results[at] = result
        if any(isinstance(result, Refused) for result in found):
            built = None  # it has what was refused
        self.catch_up(built)

    def catch_up(self, built: BuiltPart | None = None) -> None:
        """Show the changes that the store has committed."""
        changes = self._committed_since(self.current)
        if changes:
            is_complete = len(changes) == len(self._changes)
            self._set(self.current.apply(changes, built if is_complete else None))

    def _committed_since(self, live_set: LiveSet) -> list[Change]:
        """The changes after those of the set, which the last transactions have committed."""
        changes = list(self._changes)
        if changes and changes[0].number != live_set.change + 1:
            # The store has committed something whose acknowledgement failed.
            changes = []
            while more := self._store.changes(after=live_set.change + len(changes)):
                changes += more
        return changes

    def _predict(self, requests: Sequence[Checked]) -> dict[str, Subscription]:
        """The states after these requests, if the store accepts them."""
        kept = [own for own in requests if own.kind is not ChangeKind.UNSUBSCRIBE]
        known = self._store.latest_rows(
            [own.subscription_id for own in kept if own.kind is not ChangeKind.SUBSCRIBE]
        )
        states = (predict(own, known.get(own.subscription_id)) for own in kept)
        return {state.id: state for state in states if state is not None}

    def _build(
        self,
        requests: Sequence[Checked | Refused],
        results: list[Result | None],
        places: Sequence[int],
        states: dict[str, Subscription],
    ) -> BuiltPart | None:
        """The newest part with these states; expressions that are wrong are refused."""
        named = [own for at in places if isinstance(own := requests[at], Checked)]
        gone = {own.subscription_id for own in named} - states.keys()
        while states:
            built = self.current.build(states, gone)
            if not built.rejects:
                return built
            wrong = {error.subscription_id: error for error in built.rejects}
            if wrong.keys().isdisjoint(states):
                raise unreadable(built.rejects)  # of subscriptions that were accepted earlier
            for at in places:
                request = requests[at]
                if isinstance(request, Checked) and request.subscription_id in wrong:
                    error = wrong[request.subscription_id]
                    results[at] = Refused(Reason.INVALID, error.message, error=error)
                    del states[request.subscription_id]
        return None

    def _set(self, live_set: LiveSet) -> None:
        self._show(live_set)
        self.current = live_set


def _distinct_end(requests: Sequence[Checked | Refused], start: int) -> int:
    """The end of the requests from `start` on that have distinct ids."""
    seen: set[str] = set()
    for at in range(start, len(requests)):
        request = requests[at]
        if isinstance(request, Checked):
            if request.subscription_id in seen:
                return at
            seen.add(request.subscription_id)
    return len(requests)


def expect(result: Result) -> int:
    """The number of the change; raises the error of a refused request."""
    if isinstance(result, Accepted):
        return result.number
    raise result.to_error()
