"""A draft over the archive: how often would it have matched, and which part decides?"""

from __future__ import annotations

import time
from collections import Counter, deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import ExpressionError, InputError
from tamis.events.json_source import hold_arrow_texts
from tamis.language.ast import And, Or
from tamis.language.limits import NO_LIMITS
from tamis.language.parser import parse
from tamis.language.printer import print_expression
from tamis.language.types.moments import from_microseconds
from tamis.match.readouts.numbers import Numbers
from tamis.search.unseen import SeenAttributes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tamis.archive import Archive
    from tamis.live.index import LiveIndex
    from tamis.match.index import Index

MOST_PARTS: Final = 50  # operands of an AND or OR that are counted apart
AT_ONCE: Final = 20_000  # events that are read at a time, the newest first
TIMED_EVENTS: Final = 512  # on which the cost of each part is measured
TIMED_RUNS: Final = 3
_DAY: Final = 86_400_000_000  # microseconds
_DRAFT, _BEFORE, _FIRST_PART = 1, 2, 3  # numbers of expressions in the index of a forecast


class Budget(NamedTuple):
    """How much a forecast may read."""

    n_events: int
    seconds: float
    is_cancelled: Callable[[], bool] = lambda: False
    timer: Callable[[], float] = time.monotonic


class AskedForecast(NamedTuple):
    """What is to be forecast."""

    expression: str
    days: int
    n_samples: int = 10
    before: str | None = None  # the expression in force, to compare with


class DraftOperand(NamedTuple):
    """An operand of the AND or OR that a draft is."""

    expression: str
    n_matches: int
    microseconds: float | None  # CPU time per event, if it was measured


class _Sampled(NamedTuple):
    """An event."""

    number: int
    moment: datetime
    text: bytes


class Matches(NamedTuple):
    """Some events: how many, and the newest of them."""

    n_events: int
    sample: list[_Sampled]


class Forecast(NamedTuple):
    """What a draft would have matched."""

    first: int | None  # the events that were looked at; None if there are none
    last: int | None
    n_events: int  # looked at; those whose texts are not archived are not among them
    n_without_text: int
    is_complete: bool  # whether all events of these days were looked at
    stopped_by: str | None  # "events", "time" or "cancelled"
    days: list[tuple[datetime, int, int]]  # day, events, matches
    matches: Matches
    parts: list[DraftOperand]
    new: Matches | None  # matched by the draft, and not by the expression in force
    lost: Matches | None
    combined_by: str | None = None  # "and" or "or": what the parts are operands of
    notes: tuple[str, ...] = ()  # on attributes that no event has


def forecast(live: LiveIndex, archive: Archive, asked: AskedForecast, budget: Budget) -> Forecast:
    """Match a draft with the events of the last days, the newest first.

    Raises the `ExpressionError` of an expression that is wrong.
    """
    combined_by, parts = _split(asked.expression)
    texts = [asked.expression, asked.before or asked.expression, *parts]
    index = live.draft({str(number): text for number, text in enumerate(texts, start=1)})
    if index.view.has_operators:
        raise InputError(
            "a forecast does not call operators",
            hint="forecast the rest of the expression: operators may be slow, and cost money",
        )
    since = live.store.moment - timedelta(days=asked.days, microseconds=1)
    tally = _Tally(len(parts), asked)
    seen = SeenAttributes(index)
    stopped_by = _read_all(archive, archive.event_at(since), index, tally, budget, seen)
    costs = [None] * len(parts) if tally.timed is None else _measure(live, parts, tally.timed)
    found = tally.finish(parts, costs, stopped_by)
    is_whole = found.is_complete and found.first == 1
    notes = tuple(seen.describe(is_whole=is_whole))
    return found._replace(combined_by=combined_by, notes=notes)


def _split(expression: str) -> tuple[str | None, list[str]]:
    """What combines the operands of an AND or OR, and their texts; none if it is something else,
    or has very many.
    """
    condition = parse(expression, NO_LIMITS)
    if not isinstance(condition, And | Or) or len(condition.operands) > MOST_PARTS:
        return None, []
    texts = [print_expression(own) for own in condition.operands]
    return "and" if isinstance(condition, And) else "or", texts


def _read_all(  # noqa: PLR0913 - what is read, and who looks at it
    archive: Archive, start: int, index: Index, tally: _Tally, budget: Budget, seen: SeenAttributes
) -> str | None:
    """Count the events after `start`; returns what stopped it before all were counted."""
    deadline = budget.timer() + budget.seconds
    end = archive.last_event
    while end > start:
        begin = max(start, end - AT_ONCE)
        for batch in archive.scan(after=begin, up_to=end):
            if budget.is_cancelled():
                return "cancelled"
            tally.add(batch, _match(index, batch, seen))
        tally.end_range(begin + 1, end)
        end = begin
        if end > start and tally.n_seen >= budget.n_events:
            return "events"
        if end > start and budget.timer() >= deadline:
            return "time"
    return None


def _match(index: Index, batch: pa.RecordBatch, seen: SeenAttributes) -> np.ndarray:
    """bool[n_expressions + 1, n_events], by number of the expression."""
    view = index.view
    texts = batch.column("event")
    encoded = view.encoder.encode(hold_arrow_texts([texts]))
    seen.add(encoded, texts)
    lists = view.ask(None, None, None).put([encoded], Numbers())
    is_true = np.zeros((len(index) + 1, len(batch)), dtype=np.bool_)
    events = np.repeat(np.arange(len(batch)), np.diff(lists.starts))
    is_true[lists.numbers, events] = True
    return is_true


def _measure(live: LiveIndex, parts: Sequence[str], batch: pa.RecordBatch) -> list[float | None]:
    """The CPU time that each part takes alone, in microseconds per event; the least of some
    runs, since the first ones compile and load.
    """
    texts = hold_arrow_texts([batch.column("event")])
    costs: list[float | None] = []
    for part in parts:
        try:
            view = live.draft({"part": part}).view
        except ExpressionError:  # only another part says which type an attribute has
            costs.append(None)
            continue
        best = float("inf")
        for _ in range(TIMED_RUNS):
            began = time.thread_time()
            view.ask(None, None, None).put([view.encoder.encode(texts)], Numbers())
            best = min(best, time.thread_time() - began)
        costs.append(1e6 * best / max(1, len(batch)))
    return costs


class _Tally:
    """Counts, as ranges of events come: the newest range first, its events in order."""

    def __init__(self, n_parts: int, asked: AskedForecast) -> None:
        self._n_samples = asked.n_samples
        self._has_before = asked.before is not None
        self._parts = np.zeros(n_parts, dtype=np.int64)
        self._events: Counter[int] = Counter()  # by day
        self._matches: Counter[int] = Counter()
        self._counts = [0, 0, 0]  # matches, new, lost
        self._samples: list[list[_Sampled]] = [[], [], []]  # the newest first
        self._last_of_range: list[deque[_Sampled]] = [deque(maxlen=asked.n_samples) for _ in "123"]
        self._first: int | None = None
        self._last: int | None = None
        self._n_events = 0
        self.n_seen = 0  # events with and without texts
        self.timed: pa.RecordBatch | None = None

    def add(self, batch: pa.RecordBatch, is_true: np.ndarray) -> None:
        """Count the next events of a range."""
        if self.timed is None and len(batch):
            self.timed = batch.slice(max(0, len(batch) - TIMED_EVENTS))
        moments = batch.column("moment").cast("int64").to_numpy()
        days, draft, before = moments // _DAY, is_true[_DRAFT], is_true[_BEFORE]
        self._n_events += len(batch)
        self._events.update(_count(days))
        self._matches.update(_count(days[draft]))
        self._parts += is_true[_FIRST_PART:].sum(axis=1)
        for at, chosen in enumerate((draft, draft & ~before, before & ~draft)):
            self._counts[at] += int(np.count_nonzero(chosen))
            rows = np.flatnonzero(chosen)[-self._n_samples :] if self._n_samples else ()
            self._last_of_range[at].extend(_take(batch, rows))

    def end_range(self, first: int, last: int) -> None:
        """All events of a range have been counted."""
        self._first, self._last = first, self._last or last
        self.n_seen = self._last - first + 1
        for kept, found in zip(self._samples, self._last_of_range, strict=True):
            kept.extend(reversed(found))
            del kept[self._n_samples :]
            found.clear()

    def finish(
        self, parts: Sequence[str], costs: Sequence[float | None], stopped_by: str | None
    ) -> Forecast:
        found = [Matches(*own) for own in zip(self._counts, self._samples, strict=True)]
        return Forecast(
            self._first,
            self._last,
            self._n_events,
            self.n_seen - self._n_events,
            stopped_by is None,
            stopped_by,
            list(self._list_days()),
            found[0],
            [DraftOperand(*own) for own in zip(parts, self._parts.tolist(), costs, strict=True)],
            found[1] if self._has_before else None,
            found[2] if self._has_before else None,
        )

    def _list_days(self) -> Iterator[tuple[datetime, int, int]]:
        """The days from the first event that was looked at to the last."""
        for day in range(min(self._events, default=0), max(self._events, default=-1) + 1):
            start = datetime.fromtimestamp(day * 86_400, UTC)
            yield start, self._events[day], self._matches[day]


def _take(batch: pa.RecordBatch, rows: Sequence[int] | np.ndarray) -> Iterator[_Sampled]:
    if len(rows):
        chosen = batch.take(pa.array(rows))
        texts = chosen.column("event").cast(pa.binary())
        moments = chosen.column("moment").cast(pa.int64())
        for number, moment, text in zip(chosen.column("number"), moments, texts, strict=True):
            yield _Sampled(number.as_py(), from_microseconds(moment.as_py()), text.as_py())


def _count(days: np.ndarray) -> dict[int, int]:
    found, counts = np.unique(days, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))
