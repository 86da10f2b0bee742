"""Judges some of the published events again, by the reference evaluator.

An index that answers wrongly would do so silently. A thread of low priority takes a share of the
events, with the set that matched them, and judges the subscriptions that were found and a sample
of those that were not. It never holds up publishing: what it cannot keep up with is skipped.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from contextlib import suppress
from queue import Full, Queue
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tamis.archive import ArrowEvents
from tamis.events.json_texts import parse_exactly
from tamis.events.rows import EventRows
from tamis.language.check import check
from tamis.language.limits import NO_LIMITS
from tamis.language.parser import parse
from tamis.logic.evaluate import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from tamis.archive import Events
    from tamis.kernels.arrays import Int64
    from tamis.match.readouts.numbers import NumberLists
    from tamis.match.view import View

MOST_WAITING: Final = 64  # events; more are skipped
SAMPLE: Final = 100  # subscriptions that were found, and as many that were not
KEPT: Final = 20  # disagreements that are shown
_LOG: Final = logging.getLogger(__name__)


class Answered(NamedTuple):
    """Events that were published, and what they matched."""

    view: View
    moment: datetime
    events: Events
    lists: NumberLists
    first_event: int


class Disagreement(NamedTuple):
    """A subscription for which the index and the reference evaluator differ."""

    event: int
    change: int
    subscription: str
    is_match: bool  # what the index said


class _Waiting(NamedTuple):
    view: View
    moment: datetime
    event: Any  # a JSON text, or a batch of one row
    matches: Int64
    number: int


class Auditor:
    """The thread. `offer` may be called from any thread, and returns at once."""

    def __init__(
        self, share: float = 0.0, seed: int | None = None, *, off: str | None = None
    ) -> None:
        """`share` of the events is judged; 0 starts no thread. `off` says why nothing is judged,
        where that is not what the owner of the server chose.
        """
        self.share = 0.0 if off is not None else share
        self._off = off
        self._draw = Random(seed)
        self._queue: Queue[_Waiting | None] = Queue(MOST_WAITING)
        self._n_events = self._n_pairs = self._n_skipped = self._n_disagreements = 0
        self._n_faults = 0
        self._last: deque[Disagreement] = deque(maxlen=KEPT)
        self._is_closed = False
        self._thread: threading.Thread | None = None
        if self.share > 0:
            self._thread = threading.Thread(target=self._run, name="tamis-audit", daemon=True)
            self._thread.start()

    def offer(self, answered: Answered) -> None:
        """Take a sample of these events, if there is room."""
        if self._thread is None or self._is_closed:
            return
        starts = answered.lists.starts
        for row in self._choose(len(starts) - 1):
            matches = answered.lists.numbers[starts[row] : starts[row + 1]].copy()
            waiting = _Waiting(
                answered.view,
                answered.moment,
                _pick(answered.events, row),
                matches,
                answered.first_event + row,
            )
            try:
                self._queue.put_nowait(waiting)
            except Full:
                self._n_skipped += 1

    def _choose(self, n_rows: int) -> Iterator[int]:
        """Each row with the probability `share`, without a draw for each of them."""
        if self.share >= 1:
            yield from range(n_rows)
            return
        row = -1
        while True:
            row += 1 + int(np.log(1 - self._draw.random()) / np.log1p(-self.share))
            if row >= n_rows:
                return
            yield row

    def describe(self) -> dict[str, Any]:
        """The numbers so far, and the last disagreements."""
        return {
            "share": self.share,
            "off": self._off,
            "n_events": self._n_events,
            "n_pairs": self._n_pairs,
            "n_skipped": self._n_skipped,
            "n_faults": self._n_faults,
            "n_disagreements": self._n_disagreements,
            "disagreements": [own._asdict() for own in self._last],
        }

    def close(self) -> None:
        """End the thread; events that wait are not judged."""
        self._is_closed = True
        if self._thread is not None:
            with suppress(Full):
                self._queue.put_nowait(None)
            self._thread.join()

    # ── on the thread ───────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        with suppress(OSError, AttributeError):  # on Linux a thread has its own priority
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        while not self._is_closed:
            waiting = self._queue.get()
            if waiting is None:
                return
            try:
                self._judge(waiting)
            except Exception:
                self._n_faults += 1
                _LOG.exception("event %d could not be judged again", waiting.number)

    def _judge(self, waiting: _Waiting) -> None:
        view = waiting.view
        event = _read(waiting.event, view)
        for number, local, is_match in self._sample(waiting):
            if self._is_closed:
                return
            contents = view.engines[number].contents
            text = str(contents.texts[local].as_py())
            condition = check(parse(text, NO_LIMITS), contents.schema, NO_LIMITS, text)
            self._n_pairs += 1
            if (evaluate(condition, event, contents.missing) is True) != is_match:
                self._report(waiting, str(contents.ids[local].as_py()), is_match)
        self._n_events += 1

    def _sample(self, waiting: _Waiting) -> Iterator[tuple[int, int, bool]]:
        """Parts and ordinals in them to judge, and whether the index found them.

        Subscriptions with operators are left out: to judge them would call the operators again.
        """
        n_found = 0
        for number, part in enumerate(waiting.view.catalogue.parts):
            engine, moments = waiting.view.engines[number], waiting.view.moments[number]
            is_valid = moments.find(waiting.moment).flags()
            if part.is_hidden is not None:
                is_valid = is_valid & ~part.is_hidden
            is_match = np.isin(part.contents.numbers, waiting.matches) & is_valid
            n_found += int(np.count_nonzero(is_match))
            is_judged = is_valid
            if engine.has_operators:
                is_judged = is_valid & ~engine.operators.is_decided_here
            for own, said in ((is_match, True), (~is_match, False)):
                locals_ = np.flatnonzero(own & is_judged)
                chosen = self._draw.sample(range(len(locals_)), min(SAMPLE, len(locals_)))
                yield from ((number, int(locals_[at]), said) for at in chosen)
        if n_found != len(waiting.matches):
            self._report(waiting, f"{len(waiting.matches) - n_found} that are not valid", True)

    def _report(self, waiting: _Waiting, subscription: str, is_match: bool) -> None:
        change = waiting.view.change or 0
        self._n_disagreements += 1
        self._last.append(Disagreement(waiting.number, change, subscription, is_match))
        _LOG.error(
            "audit: event %d and subscription %r: the index says %s as of change %d, the reference "
            "evaluator does not",
            waiting.number,
            subscription,
            "match" if is_match else "no match",
            change,
        )


def _pick(events: Events, row: int) -> Any:
    """One event, as it was archived."""
    if isinstance(events, ArrowEvents):
        return events.batch.slice(row, 1)
    return bytes(events.buffer[events.starts[row] : events.ends[row]])


def _read(event: Any, view: View) -> Mapping[str, Any]:
    if isinstance(event, bytes):
        found: Mapping[str, Any] = parse_exactly(event)
        return found
    return EventRows(event, None, view.catalogue.schema)[0] or {}
