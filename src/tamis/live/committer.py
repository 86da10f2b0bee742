"""The thread that changes a live set.

It takes all waiting requests at once, builds the newest part with them, writes them to the store in
one transaction, and shows the new set; then the callers get their results. So an expression is
checked before it is stored, and what was acknowledged is durable and visible.
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.errors import StoreError
from tamis.language.types.moments import to_microseconds
from tamis.live.live_set import unreadable
from tamis.live.rehearsal import Rehearsal, find_distinct_end, find_refused
from tamis.subscriptions.checking import Checked, check
from tamis.subscriptions.model import Accepted, ChangeKind, Reason, Refused
from tamis.subscriptions.rows import predict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.live.live_set import BuiltPart, LiveSet
    from tamis.live.settings import Settings
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
        self._process = os.getpid()
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
        self._forget_seen(live_set)
        self._store.expire()
        return live_set.apply(self._committed_since(live_set))

    def read_changes(self) -> None:
        """Show what others have written to the store directly."""
        self.run(lambda live_set: live_set.apply(self._committed_since(live_set)))

    def close(self) -> None:
        """Finish the waiting jobs."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._queue.put(None)
        self._thread.join()

    def _put(self, job: _Requests | _Task) -> None:
        if os.getpid() != self._process:  # a fork has no thread that would answer
            raise StoreError(
                "the live index was opened in another process, of which this one is a copy",
                hint="open it in this process, or follow it: tamis.live.follow(folder)",
            )
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
                _fail(jobs, error)
            # Not kept while the thread waits: a task that swaps parts holds the old ones.
            jobs.clear()

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
        done = iter(self._apply(requests))
        for job in jobs:
            job.future.set_result([next(done) for _ in job.requests])

    def _apply(self, requests: Sequence[Checked | Refused]) -> list[Result]:
        """Apply requests in one transaction: all that are accepted are durable, or none is."""
        results: list[Result | None] = [
            own if isinstance(own, Refused) else None for own in requests
        ]
        built, settings = None, self.current.settings
        if find_distinct_end(requests, 0) == len(requests):
            built = self._refuse_wrong(requests, results)
        else:
            settings = self._refuse_wrong_in_order(requests, results)
        left = [at for at, result in enumerate(results) if result is None]
        if left:
            self._forget_seen(self.current)
            found = self._store.submit_checked([requests[at] for at in left]).result()
            for at, result in zip(left, found, strict=True):
                results[at] = result
            self.current = replace(self.current, settings=settings)
            self.catch_up(built)
        return results  # type: ignore[return-value] # each has a result now

    def catch_up(self, built: BuiltPart | None = None) -> None:
        """Show the changes that the store has committed."""
        changes = self._committed_since(self.current)
        if changes:
            # Others may write to the store: their changes come before ours, or between.
            is_same = built is not None and built.leads_to(changes)
            self._set(self.current.apply(changes, built if is_same else None))

    def is_behind(self) -> bool:
        """Whether the store has committed changes that the set does not have: those of others, who
        write to the store directly.
        """
        newest = self._changes[-1:]
        return bool(newest) and newest[0].number > self.current.change

    def _forget_seen(self, live_set: LiveSet) -> None:
        seen = 0
        while seen < len(self._changes) and self._changes[seen].number <= live_set.change:
            seen += 1
        del self._changes[:seen]  # in one step: the store's thread appends to it

    def _committed_since(self, live_set: LiveSet) -> list[Change]:
        """The changes after those of the set, which the last transactions have committed."""
        self._forget_seen(live_set)
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

    def _refuse_wrong(
        self, requests: Sequence[Checked | Refused], results: list[Result | None]
    ) -> BuiltPart | None:
        """The newest part after requests with distinct ids; expressions that are wrong are
        refused.
        """
        named = [own for own in requests if isinstance(own, Checked)]
        states = self._predict(named)
        gone = {own.subscription_id for own in named} - states.keys()
        is_asked = False
        while states:
            built = self.current.build(states, gone)
            if not built.rejects:
                return built
            # First those that are refused anyway: the others were read with their types too.
            wrong = {} if is_asked else self._find_refused(named)
            is_asked = True
            if wrong.keys().isdisjoint(states):
                wrong = {
                    str(error.subscription_id): Refused(Reason.INVALID, error.message, error=error)
                    for error in built.rejects
                }
            if wrong.keys().isdisjoint(states):
                raise unreadable(built.rejects)  # of subscriptions that were accepted earlier
            for at, request in enumerate(requests):
                if isinstance(request, Checked) and request.subscription_id in wrong:
                    results[at] = wrong[request.subscription_id]
                    states.pop(request.subscription_id, None)
        return None

    def _find_refused(self, requests: Sequence[Checked]) -> dict[str, Refused]:
        """What the store refuses, whatever the expressions say."""
        rows = self._store.latest_rows(own.subscription_id for own in requests)
        return find_refused(requests, rows, to_microseconds(self._store.settled_moment()))

    def _refuse_wrong_in_order(
        self, requests: Sequence[Checked | Refused], results: list[Result | None]
    ) -> Settings:
        """The same for one caller who names an id twice: each request is checked against what those
        before it would leave. Returns the settings with the types that they fix.
        """
        rehearsal = Rehearsal(self._store, self.current.settings, self.current.change)
        for at, result in enumerate(rehearsal.decide(requests)):
            if isinstance(result, Refused):
                results[at] = result
        return rehearsal.settings

    def _set(self, live_set: LiveSet) -> None:
        self._show(live_set)
        self.current = live_set


def _fail(jobs: Sequence[_Requests | _Task], error: Exception) -> None:
    for job in jobs:
        if not job.future.done():
            job.future.set_exception(error)


def expect(result: Result) -> int:
    """The number of the change; raises the error of a refused request."""
    if isinstance(result, Accepted):
        return result.number
    raise result.to_error()
